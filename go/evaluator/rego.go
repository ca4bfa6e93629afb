package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/util"
)

type regoParams struct {
	tree
	Input json.RawMessage `json:"input"`
}

// finding is one result of a rule.
type finding struct {
	Package  string         `json:"package"`
	Rule     string         `json:"rule"`
	Kind     string         `json:"kind"`
	Message  string         `json:"message"`
	Metadata map[string]any `json:"metadata,omitempty"`
}

// compiledRego is the policies of a tree; compiling costs more than asking.
type compiledRego struct {
	compiler *ast.Compiler
	rules    []regoRule
}

type regoRule struct {
	pkg, name, kind string
	annotations     map[string]any
}

var compiledPolicies = map[tree]*compiledRego{}

// regoVerb asks every rule that is called deny, warn or violation, or begins so.
func regoVerb(p regoParams) (any, error) {
	compiled, known := compiledPolicies[p.tree]
	if !known || p.Digest == "" {
		var err error
		if compiled, err = p.compile(); err != nil {
			return nil, err
		}
		if len(compiledPolicies) >= keptPackages {
			clear(compiledPolicies)
		}
		compiledPolicies[p.tree] = compiled
	}
	var input any
	if err := util.UnmarshalJSON(p.Input, &input); err != nil {
		return nil, &failure{Kind: badRequest, Message: err.Error()}
	}
	findings := []finding{}
	for _, rule := range compiled.rules {
		found, err := compiled.ask(rule, input)
		if err != nil {
			return nil, &failure{Kind: badModule, Message: fmt.Sprintf("%s.%s: %s", rule.pkg, rule.name, p.unplaced(err))}
		}
		findings = append(findings, found...)
	}
	return map[string]any{"findings": findings}, nil
}

func (p regoParams) compile() (*compiledRego, error) {
	place, err := p.inside()
	if err != nil {
		return nil, err
	}
	if err := p.contained(place, map[string]bool{}); err != nil {
		return nil, err
	}
	modules := map[string]*ast.Module{}
	err = filepath.WalkDir(place, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".rego") || strings.HasSuffix(name, "_test.rego") {
			return err
		}
		modules[p.relative(name)], err = parseRego(p.relative(name), name)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(modules) == 0 {
		return nil, &failure{Kind: missing, Message: "there is no .rego file"}
	}
	compiler := ast.NewCompiler().WithCapabilities(harmless())
	if compiler.Compile(modules); compiler.Failed() {
		return nil, &failure{Kind: badModule, Message: compiler.Errors.Error()}
	}
	return &compiledRego{compiler: compiler, rules: rulesOf(modules)}, nil
}

// parseRego reads a policy in the syntax of Rego 1, or in the one before.
func parseRego(name, file string) (*ast.Module, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	options := ast.ParserOptions{ProcessAnnotation: true, RegoVersion: ast.RegoV1, Capabilities: harmless()}
	parsed, err := ast.ParseModuleWithOpts(name, string(text), options)
	if err != nil {
		options.RegoVersion = ast.RegoV0
		if old, oldErr := ast.ParseModuleWithOpts(name, string(text), options); oldErr == nil {
			return old, nil
		}
		return nil, &failure{Kind: badModule, Message: err.Error()}
	}
	return parsed, nil
}

// harmless is Rego without what reaches out, and without what answers differently each time.
func harmless() *ast.Capabilities {
	all := ast.CapabilitiesForThisVersion()
	kept := all.Builtins[:0:0]
	for _, builtin := range all.Builtins {
		if !builtin.IsNondeterministic() && builtin.Name != "opa.runtime" {
			kept = append(kept, builtin)
		}
	}
	all.Builtins = kept
	all.AllowNet = []string{}
	return all
}

func rulesOf(modules map[string]*ast.Module) []regoRule {
	found := map[string]regoRule{}
	for _, module := range modules {
		pkg := module.Package.Path.String()
		for _, rule := range module.Rules {
			name := rule.Head.Ref()[0].String()
			kind, _, _ := strings.Cut(name, "_")
			if isFunction := len(rule.Head.Args) > 0; isFunction || kind != "deny" && kind != "warn" && kind != "violation" {
				continue
			}
			about := annotationsOf(rule)
			if other, twice := found[pkg+"."+name]; twice && !reflect.DeepEqual(other.annotations, about) {
				about = map[string]any{} // which of both finds something can't be told
			}
			found[pkg+"."+name] = regoRule{pkg: pkg, name: name, kind: kind, annotations: about}
		}
	}
	rules := make([]regoRule, 0, len(found))
	for _, rule := range found {
		rules = append(rules, rule)
	}
	sort.Slice(rules, func(a, b int) bool { return rules[a].pkg+rules[a].name < rules[b].pkg+rules[b].name })
	return rules
}

func annotationsOf(rule *ast.Rule) map[string]any {
	about := map[string]any{}
	for _, annotation := range rule.Annotations {
		if annotation.Title != "" {
			about["title"] = annotation.Title
		}
		if annotation.Description != "" {
			about["description"] = annotation.Description
		}
		for key, value := range annotation.Custom {
			about[key] = value
		}
	}
	return about
}

func (c *compiledRego) ask(rule regoRule, input any) ([]finding, error) {
	query := rego.New(rego.Compiler(c.compiler), rego.Query(rule.pkg+"."+rule.name), rego.Input(input), rego.StrictBuiltinErrors(true))
	answers, err := query.Eval(context.Background())
	if err != nil {
		return nil, err
	}
	findings := []finding{}
	for _, answer := range answers {
		for _, expression := range answer.Expressions {
			findings = append(findings, rule.findings(expression.Value)...)
		}
	}
	return findings, nil
}

// findings reads what the common styles yield: a set of texts or of objects with msg, a text, a
// boolean.
func (r regoRule) findings(value any) []finding {
	one := finding{Package: strings.TrimPrefix(r.pkg, "data."), Rule: r.name, Kind: r.kind, Metadata: r.annotations}
	switch result := value.(type) {
	case []any:
		all := []finding{}
		for _, item := range result {
			all = append(all, r.findings(item)...)
		}
		return all
	case map[string]any:
		text, isText := result["msg"].(string)
		if !isText {
			whole, _ := json.Marshal(result)
			return r.findings(string(whole))
		}
		one.Message = text
		one.Metadata = map[string]any{}
		for key, about := range r.annotations {
			one.Metadata[key] = about
		}
		for key, about := range result {
			if key != "msg" {
				one.Metadata[key] = about
			}
		}
	case string:
		one.Message = result
	case bool:
		if !result {
			return nil
		}
		one.Message = r.name
	default:
		one.Message = fmt.Sprint(result)
	}
	return []finding{one}
}
