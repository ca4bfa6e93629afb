package main

import (
	"encoding/json"
	"fmt"

	"cuelang.org/go/cue"
)

type policyParams struct {
	module
	Input      json.RawMessage            `json:"input"`
	Context    json.RawMessage            `json:"context"`
	Graph      json.RawMessage            `json:"graph"`
	Parameters map[string]json.RawMessage `json:"parameters"`
}

// policy is one rule of the platform, and what it found.
type policy struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Stage       string          `json:"stage"`
	Action      string          `json:"action"`
	Overridable bool            `json:"overridable"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Violations  []violation     `json:"violations"`
}

// policyVerb asks every policy of a package about an input, or about what was rendered from it.
func policyVerb(p policyParams) (any, error) {
	used, err := loaded(p.module)
	if err != nil {
		return nil, err
	}
	whole, err := used.filled(map[string]json.RawMessage{"input": p.Input, "context": p.Context, "graph": p.Graph})
	if err != nil {
		return nil, err
	}
	for name, parameters := range p.Parameters {
		place := cue.MakePath(cue.Str("policies"), cue.Str(name), cue.Str("parameters"))
		if !whole.LookupPath(place).Exists() {
			return nil, &failure{Kind: missing, Message: fmt.Sprintf("there is no policy %q with parameters", name)}
		}
		value, err := used.encoded(inputName, parameters)
		if err != nil {
			return nil, err
		}
		whole = whole.FillPath(place, value)
	}
	all := whole.LookupPath(policiesPath)
	if !all.Exists() {
		return nil, &failure{Kind: missing, Message: "the package has no policies: it must yield policies: {<name>: {...}}"}
	}
	fields, err := all.Fields()
	if err != nil {
		return nil, p.broken(err)
	}
	judged := []policy{}
	for fields.Next() {
		one, err := used.judged(fields.Selector().Unquoted(), fields.Value())
		if err != nil {
			return nil, err
		}
		judged = append(judged, *one)
	}
	return map[string]any{"policies": judged}, nil
}

// judged evaluates one policy; one that can't be evaluated fails, it doesn't pass.
func (c *cuePackage) judged(name string, value cue.Value) (*policy, error) {
	text, err := c.concrete(value)
	if err != nil {
		broken := asFailure(err)
		broken.Message = fmt.Sprintf("the policy %q cannot be evaluated: %s", name, broken.Message)
		return nil, broken
	}
	one := policy{Stage: "graph", Action: "Enforce"}
	if err := json.Unmarshal(text, &one); err != nil {
		return nil, &failure{Kind: badModule, Message: fmt.Sprintf("the policy %q is not of the shape of a policy: %s", name, err)}
	}
	one.Name = name
	one.Violations, err = c.ownViolations(value.LookupPath(violationsPath))
	return &one, err
}
