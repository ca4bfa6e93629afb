package main

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

type celParams struct {
	Expressions []string `json:"expressions"`
	Variables   objects  `json:"variables"`
	CostLimit   uint64   `json:"costLimit"`
}

// celAnswer is the value of one expression, or why it has none.
type celAnswer struct {
	Value   any      `json:"value"`
	Cost    uint64   `json:"cost"`
	Failure *failure `json:"failure,omitempty"`
}

// programs is what was compiled; it is dropped as a whole when it grows too large.
var programs = map[string]cel.Program{}

const keptPrograms = 1000

// celVerb evaluates expressions as an API server does, each by itself.
func celVerb(p celParams) (any, error) {
	answers := []celAnswer{}
	for _, expression := range p.Expressions {
		answers = append(answers, p.answer(expression))
	}
	return map[string]any{"answers": answers}, nil
}

func (p celParams) answer(expression string) celAnswer {
	program, err := p.compiled(expression)
	if err != nil {
		return celAnswer{Failure: asFailure(err)}
	}
	value, details, err := program.Eval(map[string]any(p.Variables))
	answer := celAnswer{}
	if details != nil && details.ActualCost() != nil {
		answer.Cost = *details.ActualCost()
	}
	if err == nil {
		answer.Value, err = plain(value, 0)
	}
	if err != nil {
		answer.Failure = &failure{Kind: kindOf(err), Message: err.Error()}
	}
	return answer
}

func kindOf(err error) string {
	switch text := err.Error(); {
	case strings.Contains(text, "cost limit"):
		return overLimit
	case strings.Contains(text, "no such key"), strings.Contains(text, "no such attribute"), strings.Contains(text, "index out of bounds"):
		return missing
	}
	return badModule
}

func (p celParams) compiled(expression string) (cel.Program, error) {
	names := make([]string, 0, len(p.Variables))
	for name := range p.Variables {
		names = append(names, name)
	}
	sort.Strings(names)
	key := fmt.Sprintf("%q %d %s", names, p.CostLimit, expression)
	if known, found := programs[key]; found {
		return known, nil
	}
	declared := []cel.EnvOption{}
	for _, name := range names {
		declared = append(declared, cel.Variable(name, cel.DynType))
	}
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: declared,
	})
	if err != nil {
		return nil, err
	}
	checked, issues := set.NewExpressionsEnv().Compile(expression)
	if issues.Err() != nil {
		return nil, &failure{Kind: badModule, Message: issues.Err().Error()}
	}
	program, err := set.NewExpressionsEnv().Program(checked, cel.CostLimit(p.CostLimit), cel.EvalOptions(cel.OptTrackCost))
	if err != nil {
		return nil, err
	}
	if len(programs) >= keptPrograms {
		clear(programs)
	}
	programs[key] = program
	return program, nil
}

// plain is a value of CEL as JSON has it, whole numbers as such.
func plain(value ref.Val, depth int) (any, error) {
	if depth > mostLevels {
		return nil, errors.New("the result has too many levels")
	}
	switch known := value.(type) {
	case types.Null:
		return nil, nil
	case types.Double:
		if number := float64(known); !math.IsNaN(number) && !math.IsInf(number, 0) {
			return number, nil
		}
		return nil, fmt.Errorf("%v is no JSON", known)
	case types.Bool, types.Int, types.Uint, types.String:
		return known.Value(), nil
	case types.Bytes:
		return []byte(known), nil
	case traits.Lister:
		return plainList(known, depth)
	case traits.Mapper:
		return plainMap(known, depth)
	case *types.Optional:
		if !known.HasValue() {
			return nil, nil
		}
		return plain(known.GetValue(), depth+1)
	case *types.Err:
		return nil, known
	}
	if text := value.ConvertToType(types.StringType); !types.IsError(text) {
		return text.Value(), nil
	}
	return nil, fmt.Errorf("a result of type %s is no JSON", value.Type().TypeName())
}

func plainList(list traits.Lister, depth int) (any, error) {
	all := []any{}
	for items := list.Iterator(); items.HasNext() == types.True; {
		item, err := plain(items.Next(), depth+1)
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}

func plainMap(mapping traits.Mapper, depth int) (any, error) {
	all := map[string]any{}
	for keys := mapping.Iterator(); keys.HasNext() == types.True; {
		key := keys.Next()
		value, err := plain(mapping.Get(key), depth+1)
		if err != nil {
			return nil, err
		}
		all[fmt.Sprint(key.Value())] = value
	}
	return all, nil
}
