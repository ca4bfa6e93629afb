package main

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
)

// kinds in the words of somebody who has never seen CUE.
var kinds = map[cue.Kind]string{
	cue.StringKind: "a text",
	cue.IntKind:    "a whole number",
	cue.FloatKind:  "a number",
	cue.NumberKind: "a number",
	cue.BoolKind:   "true or false",
	cue.ListKind:   "a list",
	cue.StructKind: "an object",
	cue.NullKind:   "null",
	cue.BytesKind:  "bytes",
}

var bounds = map[cue.Op]string{
	cue.GreaterThanEqualOp: "at least %s",
	cue.GreaterThanOp:      "more than %s",
	cue.LessThanEqualOp:    "at most %s",
	cue.LessThanOp:         "less than %s",
	cue.NotEqualOp:         "other than %s",
	cue.RegexMatchOp:       "a text that matches %s",
	cue.NotRegexMatchOp:    "a text that does not match %s",
}

// validators are functions of CUE's standard library that one meets in constraints.
var validators = map[string]string{
	"strings.MinRunes": "a text of at least %s characters",
	"strings.MaxRunes": "a text of at most %s characters",
	"list.MinItems":    "a list of at least %s items",
	"list.MaxItems":    "a list of at most %s items",
	"list.UniqueItems": "a list in which nothing is there twice",
	"struct.MinFields": "an object of at least %s fields",
	"struct.MaxFields": "an object of at most %s fields",
	"math.MultipleOf":  "a multiple of %s",
	"time.Duration":    "a duration, for example 90s or 5m",
	"time.Time":        "a time, for example 2026-01-31T12:00:00Z",
	"net.IP":           "an IP address",
	"net.FQDN":         "a host name",
}

// described says what a constraint asks for; nothing when that can't be said in words.
func described(constraint cue.Value) string {
	if !constraint.Exists() {
		return ""
	}
	return strings.Join(parts(constraint, 0), ", ")
}

func parts(constraint cue.Value, depth int) []string {
	if depth > 8 {
		return nil
	}
	operation, operands := constraint.Expr()
	switch operation {
	case cue.AndOp:
		return everyPart(operands, depth)
	case cue.OrOp:
		return alternatives(operands, depth)
	case cue.CallOp:
		return called(operands)
	case cue.SelectorOp, cue.IndexOp:
		if target := cue.Dereference(constraint); target != constraint {
			return parts(target, depth+1)
		}
	}
	if operation == cue.NoOp && len(operands) == 1 {
		if inner, _ := operands[0].Expr(); inner != cue.NoOp {
			return parts(operands[0], depth+1)
		}
	}
	if format, known := bounds[operation]; known && len(operands) == 1 {
		return []string{fmt.Sprintf(format, shown(operands[0]))}
	}
	if constraint.IsConcrete() && constraint.IncompleteKind()&(cue.StructKind|cue.ListKind) == 0 {
		return []string{shown(constraint)}
	}
	if word, known := kinds[constraint.IncompleteKind()]; known {
		return []string{word}
	}
	return nil
}

// everyPart is what several constraints ask for together: the kind first, nothing twice.
func everyPart(operands []cue.Value, depth int) []string {
	all := []string{}
	for _, operand := range operands {
		for _, part := range parts(operand, depth+1) {
			if !slices.Contains(all, part) {
				all = append(all, part)
			}
		}
	}
	if slices.ContainsFunc(all, func(part string) bool { return strings.HasPrefix(part, "a text ") }) {
		all = slices.DeleteFunc(all, func(part string) bool { return part == "a text" })
	}
	return all
}

// alternatives leaves out the values that another alternative covers, as defaults usually are.
func alternatives(operands []cue.Value, depth int) []string {
	all := []string{}
	for _, operand := range operands {
		covered := slices.ContainsFunc(operands, func(other cue.Value) bool {
			return !other.IsConcrete() && other.IncompleteKind() == operand.IncompleteKind()
		})
		one := strings.Join(parts(operand, depth+1), ", ")
		if one != "" && !slices.Contains(all, one) && !(operand.IsConcrete() && covered) {
			all = append(all, one)
		}
	}
	switch {
	case len(all) == 0:
		return nil
	case len(all) > 2:
		return []string{"one of " + strings.Join(all, ", ")}
	}
	return []string{strings.Join(all, " or ")}
}

// called is what a validator of the standard library asks for.
func called(operands []cue.Value) []string {
	if len(operands) == 0 {
		return nil
	}
	format, known := validators[fmt.Sprint(operands[0])]
	switch {
	case !known:
		return nil
	case strings.Contains(format, "%s") && len(operands) > 1:
		return []string{fmt.Sprintf(format, shown(operands[1]))}
	}
	return []string{format}
}
