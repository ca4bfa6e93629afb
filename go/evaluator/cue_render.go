package main

import (
	"encoding/json"
	"fmt"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/token"
	cuejson "cuelang.org/go/encoding/json"
	jsonschema "cuelang.org/go/encoding/jsonschema"
)

// inputName is the file name of what a user wrote, among the positions of an error.
const inputName = "input"

var (
	inputDefinition = cue.ParsePath("#Input")
	inputPath       = cue.ParsePath("input")
	graphPath       = cue.ParsePath("graph")
	violationsPath  = cue.ParsePath("violations")
	policiesPath    = cue.ParsePath("policies")
)

type renderParams struct {
	module
	Input   json.RawMessage `json:"input"`
	Context json.RawMessage `json:"context"`
}

type rendered struct {
	Graph      json.RawMessage `json:"graph,omitempty"`
	Violations []violation     `json:"violations"`
}

// checkInputVerb says everything that is wrong with an input.
func checkInputVerb(p renderParams) (any, error) {
	used, err := loaded(p.module)
	if err != nil {
		return nil, err
	}
	found, err := used.inputViolations(p.Input, p.Context)
	return rendered{Violations: found}, err
}

// renderVerb makes the graph of an input; with violations there is none. An input is almost always
// right, and evaluating costs: what is wrong with it is only asked when something is.
func renderVerb(p renderParams) (any, error) {
	used, err := loaded(p.module)
	if err != nil {
		return nil, err
	}
	filled, err := used.filled(map[string]json.RawMessage{"input": p.Input, "context": p.Context})
	if err != nil {
		return nil, err
	}
	if !used.checksInput || filled.LookupPath(inputPath).Validate(cue.Concrete(true), cue.Final()) != nil {
		found, err := used.inputViolations(p.Input, p.Context)
		if err != nil || blocks(found) {
			return rendered{Violations: found}, err
		}
	}
	own, err := used.ownViolations(filled.LookupPath(violationsPath), filled, "input")
	if err != nil || blocks(own) {
		return rendered{Violations: own}, err
	}
	graph := filled.LookupPath(graphPath)
	if !graph.Exists() {
		return nil, &failure{Kind: missing, Message: "the module has no graph: it must yield graph: {nodes: [...]}"}
	}
	text, err := used.concrete(graph, filled)
	return rendered{Graph: text, Violations: own}, err
}

// schemaVerb is the input of a module as JSON Schema.
func schemaVerb(m module) (any, error) {
	used, err := loaded(m)
	if err != nil {
		return nil, err
	}
	schema, err := inputSchema(used.value)
	if err != nil {
		return nil, err
	}
	expression, err := jsonschema.Generate(schema, nil)
	if err != nil {
		return nil, m.broken(err, used.value)
	}
	text, err := used.context.BuildExpr(expression).MarshalJSON()
	return json.RawMessage(text), err
}

func inputSchema(whole cue.Value) (cue.Value, error) {
	schema := whole.LookupPath(inputDefinition)
	if !schema.Exists() {
		return schema, &failure{Kind: missing, Message: "the module has no #Input: it must say what it takes"}
	}
	return schema, nil
}

// filled is the package with values of ours in the fields that it reads; all at once, since each
// time costs an evaluation.
func (c *cuePackage) filled(values map[string]json.RawMessage) (cue.Value, error) {
	fields := []any{}
	for _, name := range []string{"input", "context", "graph"} {
		if values[name] == nil {
			continue
		}
		expression, err := cuejson.Extract(name, values[name])
		if err != nil {
			return cue.Value{}, &failure{Kind: badRequest, Message: name + " is no JSON: " + err.Error()}
		}
		fields = append(fields, &ast.Field{Label: ast.NewIdent(name), Value: expression})
	}
	return c.value.Unify(c.context.BuildExpr(ast.NewStruct(fields...))), nil
}

func (c *cuePackage) encoded(name string, text json.RawMessage) (cue.Value, error) {
	expression, err := cuejson.Extract(name, text)
	if err != nil {
		return cue.Value{}, &failure{Kind: badRequest, Message: name + " is no JSON: " + err.Error()}
	}
	value := c.context.BuildExpr(expression)
	return value, value.Err()
}

// concrete is a value as JSON, with nothing left open; whole is what it is a part of.
func (c *cuePackage) concrete(value, whole cue.Value) (json.RawMessage, error) {
	if err := value.Validate(cue.Concrete(true), cue.Final()); err != nil {
		return nil, c.module.broken(err, whole)
	}
	text, err := value.MarshalJSON()
	if err != nil {
		return nil, c.module.broken(errors.Promote(err, ""), whole)
	}
	return text, nil
}

// ownViolations is what a module says about its input in `violations`, or a policy about what it
// judges; a violation that doesn't say where is about all of that.
func (c *cuePackage) ownViolations(list, whole cue.Value, about string) ([]violation, error) {
	found := []violation{}
	if !list.Exists() {
		return found, nil
	}
	text, err := c.concrete(list, whole)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, &failure{Kind: badModule, Message: "violations must be a list of {path, message, severity}: " + err.Error()}
	}
	for place := range found {
		if found[place].Severity == "" {
			found[place].Severity = "Error"
		}
		if found[place].Path == "" {
			found[place].Path = about
		}
		if problem := found[place].misshapen(); problem != "" {
			return nil, &failure{Kind: badModule, Message: fmt.Sprintf("violations[%d] %s", place, problem)}
		}
		found[place].Position = c.module.position([]token.Pos{sayingOf(list, place), list.Pos()})
	}
	return found, nil
}

// sayingOf is where the message of an item is written; a list that is made of others, as a set of
// policies makes one of each policy's findings, would be the same place for all of them.
func sayingOf(list cue.Value, item int) token.Pos {
	message := list.LookupPath(cue.MakePath(cue.Index(item), cue.Str("message")))
	return cue.Dereference(message).Pos()
}
