package main

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

type crdParams struct {
	Definitions []json.RawMessage `json:"definitions"`
	Objects     []objects         `json:"objects"`
}

// crdProblem is what a definition has against an object.
type crdProblem struct {
	Object  int    `json:"object"`
	Path    string `json:"path"`
	Message string `json:"message"`
}

// crdVerb validates objects as an API server would that has these definitions.
func crdVerb(p crdParams) (any, error) {
	schemas := map[string]*apiextensions.JSONSchemaProps{}
	for _, text := range p.Definitions {
		if err := addSchemas(schemas, text); err != nil {
			return nil, err
		}
	}
	problems, unknown := []crdProblem{}, []int{}
	for number, object := range p.Objects {
		properties, known := schemas[fmt.Sprintf("%v/%v", object["apiVersion"], object["kind"])]
		if !known {
			unknown = append(unknown, number)
			continue
		}
		found, err := against(properties, object)
		if err != nil {
			return nil, err
		}
		for _, one := range found {
			if one.Field == "<nil>" && len(found) > 1 {
				continue // says once more, without the place, what another has said
			}
			problems = append(problems, crdProblem{Object: number, Path: one.Field, Message: one.ErrorBody()})
		}
	}
	return map[string]any{"problems": problems, "unknown": unknown}, nil
}

func addSchemas(schemas map[string]*apiextensions.JSONSchemaProps, text json.RawMessage) error {
	var definition v1.CustomResourceDefinition
	if err := json.Unmarshal(text, &definition); err != nil {
		return &failure{Kind: badModule, Message: "a CustomResourceDefinition cannot be read: " + err.Error()}
	}
	for _, served := range definition.Spec.Versions {
		if served.Schema == nil || served.Schema.OpenAPIV3Schema == nil {
			continue
		}
		properties := &apiextensions.JSONSchemaProps{}
		if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(served.Schema.OpenAPIV3Schema, properties, nil); err != nil {
			return &failure{Kind: badModule, Message: fmt.Sprintf("%s: %s", definition.Name, err)}
		}
		schemas[fmt.Sprintf("%s/%s/%s", definition.Spec.Group, served.Name, definition.Spec.Names.Kind)] = properties
	}
	return nil
}

func against(properties *apiextensions.JSONSchemaProps, object map[string]any) (field.ErrorList, error) {
	structural, err := schema.NewStructural(properties)
	if err != nil {
		return nil, &failure{Kind: badModule, Message: "the schema is not structural: " + err.Error()}
	}
	found := field.ErrorList{}
	options := schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	for _, name := range pruning.PruneWithOptions(object, structural, true, options) {
		found = append(found, field.Forbidden(field.NewPath(name), "unknown field"))
	}
	defaulting.Default(object, structural)
	validator, _, err := validation.NewSchemaValidator(properties)
	if err != nil {
		return nil, err
	}
	found = append(found, validation.ValidateCustomResource(nil, object, validator)...)
	found = append(found, listtype.ValidateListSetsAndMaps(nil, structural, object)...)
	if rules := schemacel.NewValidator(structural, true, celconfig.PerCallLimit); rules != nil && len(found) == 0 {
		broken, _ := rules.Validate(context.Background(), nil, structural, object, nil, celconfig.RuntimeCELCostBudget)
		found = append(found, broken...)
	}
	return found, nil
}
