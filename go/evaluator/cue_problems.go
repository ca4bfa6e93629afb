package main

import (
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/token"
)

const (
	mostProblems = 50
	// mostExplained bounds the work: a loop that makes a thousand nodes makes its mistake a thousand times.
	mostExplained = 200
	longestQuoted = 80
)

// trouble is one thing that CUE has against a module, with what there is to explain it.
type trouble struct {
	module
	// whole is everything that was evaluated; it doesn't exist when the files could not be read.
	whole    cue.Value
	at       cue.Value
	segments []string
	places   []token.Pos
	// said is CUE's own sentence, of which values were taken apart.
	said      string
	arguments []any
	// because is what somebody else than CUE said about it, as a function of its library.
	because string
	written written
}

// sentences has what CUE says by its format, and what that means to somebody who has never seen CUE.
var sentences = map[string]func(trouble) string{
	"incomplete value %v":                                       trouble.incomplete,
	"non-concrete value %s (type %s)":                           trouble.incomplete,
	"non-concrete value %v in operand to %s":                    trouble.incomplete,
	"cannot reference optional field: %s":                       trouble.notGiven,
	"undefined field: %s":                                       trouble.undefined,
	"reference %q not found":                                    trouble.unresolved,
	"field not allowed":                                         trouble.notKnown,
	"field is required but not present":                         trouble.required,
	"conflicting values %s and %s":                              trouble.contradiction,
	"conflicting values %s and %s (mismatched types %s and %s)": trouble.contradiction,
	"invalid value %v (out of bound %s)":                        trouble.outOfBounds,
	"structural cycle":                                          trouble.endless,
	"imported and not used: %s":                                 trouble.unused,
	"imported and not used: %s as %s":                           trouble.unused,
	"builtin package %q undefined":                              trouble.noBuiltin,
}

// broken says everything that CUE has against a module, each thing once.
func (m module) broken(err error, whole cue.Value) *failure {
	problems, read := []problem{}, sources{}
	all := errors.Errors(err)
	for _, one := range all[:min(len(all), mostExplained)] {
		if heads(one) || len(problems) == mostProblems {
			continue
		}
		if told := m.troubled(one, whole, read).problem(); !slices.ContainsFunc(problems, told.repeats) {
			problems = append(problems, told)
		}
	}
	return &failure{Kind: badModule, Message: "the module is not valid", Problems: problems}
}

// unreadable is how a problem with the text of a file begins.
const unreadable = "cannot be read: "

// repeats is whether another problem has told of the same line, as of every node that a loop makes,
// or of the same file: after the first mistake in a text CUE finds others that are none.
func (p problem) repeats(told problem) bool {
	if strings.HasPrefix(p.Message, unreadable) && strings.HasPrefix(told.Message, unreadable) {
		file, _, _ := strings.Cut(p.Position, ":")
		return strings.HasPrefix(told.Position, file+":")
	}
	return p.Message == told.Message && p.Position == told.Position && (p.Position != "" || p.Path == told.Path)
}

// heads is whether an error only counts those that follow it.
func heads(err errors.Error) bool {
	format, _ := err.Msg()
	return format == "%d errors in empty disjunction:"
}

func (m module) troubled(err errors.Error, whole cue.Value, read sources) trouble {
	why := cause(err)
	made := trouble{module: m, whole: whole, segments: err.Path(), at: valueAt(whole, err.Path())}
	made.said, made.arguments = why.Msg()
	if plain := errors.Unwrap(why); plain != nil {
		made.because = ": " + plain.Error()
	}
	made.places = append(errors.Positions(why), errors.Positions(err)...)
	if m.position(made.places) == "" && made.at.Exists() {
		made.places = append(made.places, made.at.Pos())
	}
	made.written = read.writtenAt(made.places)
	return made
}

// cause is the innermost error: "invalid interpolation" and the like say nothing that helps.
func cause(err errors.Error) errors.Error {
	for {
		inner := errors.Errors(errors.Unwrap(err))
		if len(inner) == 0 {
			return err
		}
		if format, arguments := inner[0].Msg(); sprintf(format, arguments) == "" {
			return err
		}
		err = inner[0]
	}
}

func (t trouble) problem() problem {
	return problem{Path: t.path(), Message: t.sentence(), Position: t.position(t.places)}
}

func (t trouble) sentence() string {
	explain, known := sentences[t.said]
	raw := t.unplaced(errors.Newf(token.NoPos, "%s%s", sprintf(t.said, t.arguments), t.because))
	switch {
	case known:
		return explain(t)
	case t.written.imported != "":
		return t.notImported(raw)
	case !t.whole.Exists():
		return unreadable + tokens.Replace(raw) + ": correct what is written there"
	case t.written.isError:
		return raw
	case t.confidential():
		return "cannot be computed: correct what is written there; values are not shown"
	}
	return "cannot be computed: " + raw + ": correct what is written there"
}

// tokens are what CUE's parser calls the parts of a text.
var tokens = strings.NewReplacer("'EOF'", "the end of the file", "'IDENT'", "a name", "expected operand", "expected a value")

func (t trouble) notImported(raw string) string {
	why := " (" + raw + ")"
	if strings.HasPrefix(raw, "cannot find package") || strings.HasPrefix(raw, "imports are unavailable") {
		why = ""
	}
	return "imports " + t.written.imported + ", which is not there" + why + ": correct its name, name its module among " +
		"the deps of cue.mod/module.cue, or put its files below cue.mod/pkg"
}

// path is a place as policies name it, by the id of its node, or else as the module has it; before
// anything is evaluated, CUE counts loops as places, which have no name.
func (t trouble) path() string {
	if id, rest := t.node(); id != "" {
		if len(rest) > 0 && rest[0] == "object" {
			rest = rest[1:]
		}
		return joined("nodes."+id, rest)
	}
	named := slices.DeleteFunc(slices.Clone(t.segments), func(one string) bool { return strings.HasSuffix(one, "[]") })
	if len(named) == 0 || t.written.imported != "" {
		return ""
	}
	return joined(named[0], named[1:])
}

// node is the id of the node that this is about, and the place inside of it.
func (t trouble) node() (id string, rest []string) {
	if len(t.segments) < 3 || t.segments[0] != "graph" || t.segments[1] != "nodes" {
		return "", nil
	}
	return t.ofNode("id"), t.segments[3:]
}

// confidential is whether values must not be shown: those of Secrets, and what is named like one.
func (t trouble) confidential() bool {
	if confidential.MatchString(strings.Join(t.segments, ".")) {
		return true
	}
	if _, rest := t.node(); len(rest) == 0 {
		return false
	}
	return t.ofNode("object", "kind") == "Secret"
}

// ofNode is a text of the node that this is about; nothing where it has none.
func (t trouble) ofNode(rest ...string) string {
	found := valueAt(t.whole, append(slices.Clone(t.segments[:3]), rest...))
	if !found.Exists() {
		return ""
	}
	text, _ := found.String()
	return text
}

func (t trouble) incomplete() string {
	if missing := needs(t.at, 0); len(missing) > 0 {
		return "has no value: it needs " + missing[0] + remedy(missing[0])
	}
	asked := described(t.at)
	if asked == "" {
		return "has no value: write one, or take it from the input"
	}
	if operation, _ := t.at.Expr(); operation == cue.OrOp {
		return "has no value, but may be " + asked + ": choose one, or mark one as the default with *"
	}
	return "has no value, only what it must be (" + asked + "): write one, or take it from the input"
}

func (t trouble) notGiven() string {
	name := t.reference()
	return "has no value: it needs " + name + remedy(name)
}

// remedy is what gives a value to a name.
func remedy(name string) string {
	if strings.HasPrefix(name, "input.") {
		return ", which was not given: give it, or write a default for it into the module"
	}
	return ", which has none: write a value or a default for it into the module"
}

func (t trouble) undefined() string {
	name := t.reference()
	parent, asked := t.owner(name)
	if parent.Exists() && parent.Allows(cue.AnyString) && !strings.HasPrefix(name, "context.") {
		return "has no value: it needs " + name + remedy(name)
	}
	return "takes " + name + ", which is not known" + suggestion(asked, parent, "correct its name")
}

// reference is the name that the module uses and that leads nowhere, as it is written or, where
// that is a name of the module for a part of the input, as the user knows it.
func (t trouble) reference() string {
	name := t.written.name
	if !strings.HasPrefix(name, "input.") {
		for _, known := range needs(t.at, 0) {
			if name == "" || strings.HasPrefix(known, "input.") {
				return known
			}
		}
	}
	if name == "" {
		return t.argument(0)
	}
	return name
}

// owner is what a name is looked up in, and its last part.
func (t trouble) owner(name string) (parent cue.Value, asked string) {
	path := cue.ParsePath(name)
	selectors := path.Selectors()
	if path.Err() != nil || len(selectors) == 0 {
		return cue.Value{}, name
	}
	before := selectors[:len(selectors)-1]
	asked = unquoted(selectors[len(before)].String())
	if len(before) == 0 || !t.whole.Exists() {
		return cue.Value{}, asked
	}
	return t.whole.LookupPath(cue.MakePath(before...)), asked
}

func (t trouble) unresolved() string {
	return "takes " + t.argument(0) + ", which is not known: correct its name, or define or import it"
}

func (t trouble) notKnown() string {
	parent := valueAt(t.whole, t.segments[:max(0, len(t.segments)-1)])
	return "is not known" + suggestion(last(t.segments), parent, "remove it")
}

func (t trouble) required() string {
	return "is required and has no value: write one, or take it from the input"
}

func (t trouble) contradiction() string {
	if t.confidential() {
		return "has two values that contradict each other: keep one of them" + t.elsewhere()
	}
	return sprintf("cannot be both %s and %s: keep one of them%s", []any{t.inWords(0), t.inWords(1), t.elsewhere()})
}

func (t trouble) outOfBounds() string {
	if t.confidential() {
		return "must be " + t.inWords(1) + ": change it" + t.elsewhere()
	}
	return sprintf("is %s, but must be %s: change it%s", []any{t.inWords(0), t.inWords(1), t.elsewhere()})
}

// elsewhere names the other places that take part.
func (t trouble) elsewhere() string {
	others := []string{}
	first := t.position(t.places)
	for _, place := range t.places {
		one := t.position([]token.Pos{place})
		if place.Filename() == inputName {
			one = "the input"
		}
		if one != "" && one != first && !slices.Contains(others, one) && len(others) < 3 {
			others = append(others, one)
		}
	}
	if len(others) == 0 {
		return ""
	}
	return " (see also " + strings.Join(others, " and ") + ")"
}

func (t trouble) endless() string {
	return "contains itself, without an end: take out the reference to itself"
}

func (t trouble) unused() string {
	return "imports " + t.argument(0) + " and does not use it: remove the import"
}

func (t trouble) noBuiltin() string {
	return "imports " + strconv.Quote(t.argument(0)) + ", which is none of CUE's own packages: correct its name"
}

func (t trouble) argument(place int) string {
	if place >= len(t.arguments) {
		return "something"
	}
	return quoted(sprintf("%v", t.arguments[place:place+1]))
}

// inWords is a value or a constraint of CUE's, as far as there are words for it.
func (t trouble) inWords(place int) string {
	text := t.argument(place)
	if words := described(cuecontext.New().CompileString(text)); words != "" {
		return words
	}
	return text
}

// needs are the names that a value is made of and that have no value themselves.
func needs(value cue.Value, depth int) []string {
	if !value.Exists() || depth > 8 {
		return nil
	}
	if root, path := value.ReferencePath(); root.Exists() && len(path.Selectors()) > 0 {
		target, _ := root.LookupPath(path).Default()
		if !target.IsConcrete() {
			return []string{path.String()}
		}
		return nil
	}
	operation, operands := value.Expr()
	if operation == cue.NoOp {
		return nil
	}
	missing := []string{}
	for _, operand := range operands {
		missing = append(missing, needs(operand, depth+1)...)
	}
	return missing
}

// valueAt is what stands at a place; also what is hidden or a definition.
func valueAt(whole cue.Value, segments []string) cue.Value {
	at := whole
	for _, segment := range segments {
		if !at.Exists() {
			return cue.Value{}
		}
		at = member(at, segment)
	}
	return at
}

func member(of cue.Value, segment string) cue.Value {
	if index, err := strconv.Atoi(segment); err == nil && of.IncompleteKind() == cue.ListKind {
		return of.LookupPath(cue.MakePath(cue.Index(index)))
	}
	fields, err := of.Fields(cue.All())
	if err != nil {
		return of.LookupPath(cue.MakePath(cue.Str(unquoted(segment))))
	}
	for fields.Next() {
		if fields.Selector().String() == segment {
			return fields.Value()
		}
	}
	return cue.Value{}
}

func quoted(text string) string {
	if letters := []rune(text); len(letters) > longestQuoted {
		return string(letters[:longestQuoted]) + "…"
	}
	return text
}
