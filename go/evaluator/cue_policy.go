package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

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
	if whole, err = used.withParameters(whole, p.Parameters); err != nil {
		return nil, err
	}
	all := whole.LookupPath(policiesPath)
	if !all.Exists() {
		return nil, &failure{Kind: missing, Message: "the package has no policies: it must yield policies: {<name>: {...}}"}
	}
	fields, err := all.Fields()
	if err != nil {
		return nil, p.broken(err, whole)
	}
	judged := []policy{}
	for fields.Next() {
		one, err := used.judged(fields.Selector().Unquoted(), fields.Value(), whole)
		if err != nil {
			return nil, err
		}
		judged = append(judged, *one)
	}
	return map[string]any{"policies": judged}, nil
}

// judged evaluates one policy; one that can't be evaluated fails, it doesn't pass.
func (c *cuePackage) judged(name string, value, whole cue.Value) (*policy, error) {
	text, err := c.concrete(value, whole)
	if err != nil {
		return nil, unjudged(name, err)
	}
	one := policy{Stage: "graph", Action: "Enforce"}
	if err := json.Unmarshal(text, &one); err != nil {
		return nil, &failure{Kind: badModule, Message: fmt.Sprintf("the policy %q is not of the shape of a policy: %s", name, err)}
	}
	one.Name = name
	if one.Violations, err = c.ownViolations(value.LookupPath(violationsPath), whole, one.Stage); err != nil {
		return nil, unjudged(name, err)
	}
	return &one, nil
}

func unjudged(name string, err error) error {
	broken := asFailure(err)
	if len(broken.Problems) == 0 {
		broken.Problems = []problem{{Message: broken.Message}}
	}
	broken.Message = fmt.Sprintf("the policy %q cannot be evaluated", name)
	return broken
}

// withParameters is policies with parameters over their defaults, unless one is not known or not fit.
func (c *cuePackage) withParameters(whole cue.Value, given map[string]json.RawMessage) (cue.Value, error) {
	problems := []problem{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		place := cue.MakePath(cue.Str("policies"), cue.Str(name), cue.Str("parameters"))
		schema := whole.LookupPath(place)
		if !schema.Exists() {
			return whole, &failure{Kind: missing, Message: fmt.Sprintf("there is no policy %q with parameters", name)}
		}
		wrong, err := c.violationsOf(schema, "policies."+name+".parameters", given[name])
		if err != nil {
			return whole, err
		}
		for _, one := range wrong {
			problems = append(problems, problem{Path: one.Path, Message: one.Message, Position: one.Position})
		}
		value, err := c.encoded(inputName, given[name])
		if err != nil {
			return whole, err
		}
		whole = whole.FillPath(place, value)
	}
	if len(problems) > 0 {
		return whole, &failure{Kind: badModule, Message: "the parameters of policies are not accepted", Problems: problems}
	}
	return whole, nil
}
