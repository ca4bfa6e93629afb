package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/errors"
)

// violation is one thing that is wrong with an input, for somebody who has never seen CUE.
type violation struct {
	Path     string `json:"path"`
	Message  string `json:"message"`
	Severity string `json:"severity"`
	CuePath  string `json:"cuePath,omitempty"`
	Position string `json:"position,omitempty"`
}

func (v violation) misshapen() string {
	switch {
	case v.Message == "":
		return "has no message"
	case v.Severity != "Error" && v.Severity != "Warning" && v.Severity != "Info":
		return fmt.Sprintf("has the severity %q: use Error, Warning or Info", v.Severity)
	}
	return ""
}

func blocks(found []violation) bool {
	for _, one := range found {
		if one.Severity == "Error" {
			return true
		}
	}
	return false
}

func sprintf(format string, arguments []any) string { return fmt.Sprintf(format, arguments...) }

// mostRounds bounds how often an input is looked at again without what was wrong with it.
const mostRounds = 8

// inputViolations is everything that #Input has against an input.
func (c *cuePackage) inputViolations(input, context json.RawMessage) ([]violation, error) {
	whole, err := c.filled(map[string]json.RawMessage{"context": context})
	if err != nil {
		return nil, err
	}
	schema, err := inputSchema(whole)
	if err != nil {
		return nil, err
	}
	return c.violationsOf(schema, "input", input)
}

// violationsOf is everything that a schema has against what a user wrote, whose place has a name.
// CUE stops at what contradicts the schema, so the rest is looked at again without it.
func (c *cuePackage) violationsOf(schema cue.Value, name string, text json.RawMessage) ([]violation, error) {
	var rest any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&rest); err != nil {
		return nil, &failure{Kind: badRequest, Message: err.Error()}
	}
	given, err := c.encoded(inputName, text)
	if err != nil {
		return nil, err
	}
	found := map[string]violation{}
	for value, round := given, 0; round < mostRounds; round++ {
		wrong := errors.Errors(schema.Unify(value).Validate(cue.Concrete(true), cue.Final()))
		fresh := false
		for _, one := range wrong {
			segments := below(schema, one)
			path := joined(name, segments)
			if _, known := found[path]; !known {
				found[path] = c.explained(one, segments, schema, given)
				fresh = true
			}
			without(rest, segments)
		}
		if !fresh {
			break
		}
		text, err := json.Marshal(rest)
		if err != nil {
			return nil, err
		}
		if value, err = c.encoded(inputName, text); err != nil {
			return nil, err
		}
	}
	return sorted(found), nil
}

// without removes the field at a place; of a list whose item itself is wrong, the whole list.
func without(value any, segments []string) {
	for depth := range segments {
		last := depth == len(segments)-1
		switch known := value.(type) {
		case map[string]any:
			name := unquoted(segments[depth])
			if last || !holds(known[name], segments[depth+1:]) {
				delete(known, name)
				return
			}
			value = known[name]
		case []any:
			index, _ := strconv.Atoi(segments[depth])
			value = known[index]
		}
	}
}

// holds is whether a place below a value is a field of an object in it.
func holds(value any, segments []string) bool {
	switch known := value.(type) {
	case map[string]any:
		return true
	case []any:
		index, err := strconv.Atoi(segments[0])
		return err == nil && index < len(known) && len(segments) > 1 && holds(known[index], segments[1:])
	}
	return false
}

// below is the place of an error inside of a schema.
func below(schema cue.Value, err errors.Error) []string {
	segments := err.Path()
	for place, selector := range schema.Path().Selectors() {
		if place >= len(segments) || unquoted(segments[place]) != unquoted(selector.String()) {
			return segments
		}
	}
	return segments[len(schema.Path().Selectors()):]
}

func sorted(found map[string]violation) []violation {
	all := make([]violation, 0, len(found))
	for path, one := range found {
		one.Path = path
		all = append(all, one)
	}
	sort.Slice(all, func(a, b int) bool { return all[a].Path < all[b].Path })
	return all
}

// explained turns an error of CUE into a sentence: what the constraint asks for, what was given.
func (c *cuePackage) explained(err errors.Error, segments []string, schema, given cue.Value) violation {
	format, arguments := err.Msg()
	raw := sprintf(format, arguments)
	constraint, parent := constraintAt(schema, segments)
	value := given.LookupPath(pathOf(segments))
	position := c.module.position(append(errors.Positions(err), constraint.Pos(), parent.Pos()))
	return violation{
		Message:  sentence(raw, segments, constraint, parent, value),
		Severity: "Error",
		CuePath:  strings.Join(append([]string{schema.Path().String()}, segments...), "."),
		Position: position,
	}
}

// confidential are places whose values never stand in a message.
var confidential = regexp.MustCompile(`(?i)passw|secret|token|credential|private|api_?key`)

func sentence(raw string, segments []string, constraint, parent, value cue.Value) string {
	asked := described(constraint)
	help := firstLine(constraint)
	author := ofTheAuthor(constraint)
	there := shown(value)
	if confidential.MatchString(strings.Join(segments, ".")) {
		there = "something (which is not repeated here)"
	}
	demands := strings.HasPrefix(author, "must ")
	switch {
	case strings.Contains(raw, "field not allowed"):
		return "is not known here" + suggestion(last(segments), parent, "remove it")
	case !value.Exists() && demands:
		return "is required: it " + author + help
	case !value.Exists() && asked != "":
		return "is required: give " + asked + help
	case !value.Exists():
		return "is required" + help
	case raw == author && demands:
		return fmt.Sprintf("is %s, but %s", there, author)
	case raw == author:
		return author
	case asked != "":
		return fmt.Sprintf("is %s, but must be %s%s", there, asked, help)
	}
	if there != shown(value) {
		return "is not accepted" + help
	}
	return fmt.Sprintf("is %s, which is not accepted: %s%s", there, raw, help)
}

// ofTheAuthor is what a module says by `| error("…")`; nothing when it doesn't.
func ofTheAuthor(constraint cue.Value) string {
	operation, operands := constraint.Expr()
	if operation != cue.OrOp {
		return ""
	}
	for _, operand := range operands {
		for _, own := range errors.Errors(operand.Err()) {
			format, arguments := own.Msg()
			return sprintf(format, arguments)
		}
	}
	return ""
}

// constraintAt is what a schema has at a place, required or not, by name or by pattern, and what
// it has one step before.
func constraintAt(schema cue.Value, segments []string) (at, parent cue.Value) {
	at = schema
	for _, segment := range segments {
		parent, at = at, step(at, segment)
		if !at.Exists() {
			return at, parent
		}
	}
	return at, parent
}

func step(from cue.Value, segment string) cue.Value {
	if _, err := strconv.Atoi(segment); err == nil {
		if item := from.LookupPath(cue.MakePath(cue.AnyIndex)); item.Exists() {
			return item
		}
	}
	name := cue.Str(unquoted(segment))
	for _, selector := range []cue.Selector{name, name.Optional(), name.Required(), cue.AnyString} {
		if found := from.LookupPath(cue.MakePath(selector)); found.Exists() {
			return found
		}
	}
	return cue.Value{}
}

func pathOf(segments []string) cue.Path {
	selectors := []cue.Selector{}
	for _, segment := range segments {
		if index, err := strconv.Atoi(segment); err == nil {
			selectors = append(selectors, cue.Index(index))
		} else {
			selectors = append(selectors, cue.Str(unquoted(segment)))
		}
	}
	return cue.MakePath(selectors...)
}

func unquoted(segment string) string {
	if text, err := strconv.Unquote(segment); err == nil {
		return text
	}
	return segment
}

// joined is a place below another one as one writes it: input.env[0].name.
func joined(path string, segments []string) string {
	for _, segment := range segments {
		if _, err := strconv.Atoi(segment); err == nil {
			path += "[" + segment + "]"
		} else {
			path += "." + segment
		}
	}
	return path
}

func shown(value cue.Value) string {
	switch value.IncompleteKind() {
	case cue.StructKind:
		return "an object"
	case cue.ListKind:
		return "a list"
	}
	text, err := value.MarshalJSON()
	if err != nil {
		return "something else"
	}
	return quoted(string(text))
}

// firstLine is what the author of a module says about a field.
func firstLine(constraint cue.Value) string {
	for _, comment := range constraint.Doc() {
		if line, _, _ := strings.Cut(strings.TrimSpace(comment.Text()), "\n"); line != "" {
			return " (" + strings.TrimSuffix(line, ".") + ")"
		}
	}
	return ""
}

// suggestion is the known name that is nearest, and all the others; without one, what else to do.
func suggestion(asked string, parent cue.Value, otherwise string) string {
	known := slices.DeleteFunc(names(parent), func(name string) bool { return name == asked })
	if len(known) == 0 {
		return ": " + otherwise
	}
	best, nearest := "", 3
	for _, name := range known {
		if far := distance(asked, name); far < min(nearest, len(asked)) {
			best, nearest = name, far
		}
	}
	all := strings.Join(known, ", ")
	if best != "" {
		return fmt.Sprintf(": did you mean %s? Known are %s", best, all)
	}
	return ": " + otherwise + "; known are " + all
}

// last is the name at the end of a place.
func last(segments []string) string {
	if len(segments) == 0 {
		return ""
	}
	return unquoted(segments[len(segments)-1])
}

// names are those of the fields that a value has or may have.
func names(of cue.Value) []string {
	known := []string{}
	if !of.Exists() {
		return known
	}
	if fields, err := of.Fields(cue.Optional(true)); err == nil {
		for fields.Next() {
			known = append(known, fields.Selector().Unquoted())
		}
	}
	sort.Strings(known)
	return known
}

// distance is the number of letters in which two names differ (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for place := range row {
		row[place] = place
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
