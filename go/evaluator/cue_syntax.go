package main

import (
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"
)

// written is what the author of a module has written where something is wrong.
type written struct {
	// name is a reference, as in input.name.
	name string
	// imported is the path of an import, in quotes.
	imported string
	// isError is whether the author says by `error("…")` what is wrong.
	isError bool
	// short are the names that stand for something else there, as in `let` and `for`.
	short map[string]string
}

// sources are the files of a module as they are written, each read once.
type sources map[string]*ast.File

// file is nil when there is no such file, or it is not CUE.
func (t sources) file(name string) *ast.File {
	if known, read := t[name]; read {
		return known
	}
	file, err := parser.ParseFile(name, nil)
	if err != nil {
		file = nil
	}
	t[name] = file
	return file
}

// writtenAt looks it up at the first place, which is the one that is told; there is nothing to say of
// a file that cannot be read.
func (t sources) writtenAt(places []token.Pos) written {
	found := written{short: map[string]string{}}
	for _, place := range places {
		if !place.IsValid() || !strings.HasSuffix(place.Filename(), ".cue") {
			continue
		}
		file := t.file(place.Filename())
		if file == nil {
			return found
		}
		ast.Walk(file, func(node ast.Node) bool {
			found.look(node, place.Offset())
			found.abbreviate(node, place.Offset())
			return true
		}, nil)
		found.name = found.inFull(found.name, 0)
		break
	}
	return found
}

func (w *written) look(node ast.Node, offset int) {
	switch known := node.(type) {
	case *ast.SelectorExpr:
		if known.Sel.Pos().Offset() == offset || known.Pos().Offset() == offset {
			w.name = longer(w.name, known)
		}
	case *ast.ImportSpec:
		if known.Pos().Offset() == offset {
			w.imported = known.Path.Value
		}
	case *ast.CallExpr:
		if name, ok := known.Fun.(*ast.Ident); ok && name.Name == "error" && known.Pos().Offset() == offset {
			w.isError = true
		}
	}
}

// longer prefers the whole of a.b.c to the a.b that begins at the same place.
func longer(name string, expression ast.Expr) string {
	if text := formatted(expression); len(text) >= len(name) {
		return text
	}
	return name
}

// abbreviate notes the short names that hold where something is wrong; inner ones come last and win.
func (w *written) abbreviate(node ast.Node, offset int) {
	var inside []ast.Node
	switch known := node.(type) {
	case *ast.File:
		inside = nodes(known.Decls)
	case *ast.StructLit:
		inside = nodes(known.Elts)
	case *ast.Comprehension:
		inside = nodes(known.Clauses)
	}
	if len(inside) == 0 || offset < node.Pos().Offset() || offset > node.End().Offset() {
		return
	}
	for _, one := range inside {
		switch clause := one.(type) {
		case *ast.LetClause:
			w.short[clause.Ident.Name] = formatted(clause.Expr)
		case *ast.ForClause:
			w.short[clause.Value.Name] = formatted(clause.Source) + "[…]"
		}
	}
}

// inFull is a name without the short ones, as far as they are plain names themselves.
func (w *written) inFull(name string, depth int) string {
	first, rest, _ := strings.Cut(name, ".")
	full, known := w.short[first]
	if !known || strings.ContainsAny(full, " \n({") || depth > 8 {
		return name
	}
	if rest != "" {
		full += "." + rest
	}
	return w.inFull(full, depth+1)
}

func nodes[Kind ast.Node](list []Kind) []ast.Node {
	all := make([]ast.Node, len(list))
	for place, one := range list {
		all[place] = one
	}
	return all
}

func formatted(expression ast.Expr) string {
	text, err := format.Node(expression)
	if err != nil {
		return ""
	}
	return string(text)
}
