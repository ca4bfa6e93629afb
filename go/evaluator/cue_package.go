package main

import (
	"os"
	"path/filepath"
	"strings"

	"cuelabs.dev/go/oci/ociregistry/ocimem"
	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/inject/embed"
	"cuelang.org/go/cue/load"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"
	"cuelang.org/go/mod/modcache"
	"cuelang.org/go/mod/modregistry"
)

// module is a CUE package in a tree, and where the modules are that it imports.
type module struct {
	tree
	Modules string `json:"modules"`
}

// cuePackage is a package that was loaded. A context never forgets what it has seen, so a package
// has a context of its own and both are thrown away after a number of uses.
type cuePackage struct {
	module  module
	context *cue.Context
	value   cue.Value
	uses    int
	// checksInput is whether the module itself says `input: #Input`, as it should.
	checksInput bool
}

const (
	keptPackages = 4
	usesOfOne    = 50
)

// packages is what was loaded lately, the latest first; only what is named by a digest is kept.
var packages []*cuePackage

func loaded(m module) (*cuePackage, error) {
	for place, known := range packages {
		if m.Digest == "" || known.module != m {
			continue
		}
		packages = append(packages[:place], packages[place+1:]...)
		if known.uses < usesOfOne {
			return remembered(known), nil
		}
		break
	}
	fresh, err := m.load()
	if err != nil {
		return nil, err
	}
	if m.Digest == "" {
		return fresh, nil
	}
	return remembered(fresh), nil
}

func remembered(used *cuePackage) *cuePackage {
	used.uses++
	packages = append([]*cuePackage{used}, packages...)
	if len(packages) > keptPackages {
		packages = packages[:keptPackages]
	}
	return used
}

// load reads a package without running, asking or fetching anything.
func (m module) load() (*cuePackage, error) {
	folder := m.tree
	var name string
	folder.Path, name, _ = strings.Cut(m.Path, ":")
	dir, err := folder.inside()
	if err != nil {
		return nil, err
	}
	if name == "" {
		if name, err = packageName(dir); err != nil {
			return nil, err
		}
	}
	root := m.root(dir)
	if err := m.contained(root, map[string]bool{}); err != nil {
		return nil, err
	}
	registry, err := m.registry()
	if err != nil {
		return nil, err
	}
	found := load.Instances([]string{"."}, &load.Config{
		Dir:                 dir,
		ModuleRoot:          root,
		Package:             name,
		Registry:            registry,
		Env:                 []string{"HOME=" + os.TempDir()},
		AcceptLegacyModules: true,
	})
	if err := found[0].Err; err != nil {
		return nil, m.broken(err)
	}
	context := cuecontext.New(cuecontext.WithInjection(embed.New()))
	value := context.BuildInstance(found[0])
	if err := value.Err(); err != nil {
		return nil, m.broken(err)
	}
	owner, checked := value.LookupPath(inputPath).ReferencePath()
	own := owner.Exists() && owner.BuildInstance() == found[0]
	return &cuePackage{
		module: m, context: context, value: value, checksInput: own && checked.String() == inputDefinition.String(),
	}, nil
}

// root is the folder with cue.mod: the nearest one, but never above the tree.
func (m module) root(dir string) string {
	top, err := filepath.EvalSymlinks(m.Tree)
	if err != nil {
		return dir
	}
	for place := dir; ; place = filepath.Dir(place) {
		if info, err := os.Stat(filepath.Join(place, "cue.mod")); err == nil && info.IsDir() {
			return place
		}
		if place == top {
			return top
		}
	}
}

// registry holds the modules that were fetched beforehand, and knows of no other.
func (m module) registry() (*modcache.Cache, error) {
	place := m.Modules
	if place == "" {
		place = filepath.Join(os.TempDir(), "no-modules")
	}
	return modcache.New(modregistry.NewClient(ocimem.New()), place)
}

// packageName is the one package of a folder; files without a package clause are one as well.
func packageName(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.cue"))
	if err != nil {
		return "", err
	}
	names := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_tool.cue") || strings.HasSuffix(file, "_test.cue") {
			continue
		}
		syntax, err := parser.ParseFile(file, nil, parser.PackageClauseOnly)
		if err != nil {
			return "", &failure{Kind: badModule, Message: errors.Details(err, &errors.Config{Cwd: dir})}
		}
		names[nameOf(syntax)] = true
	}
	switch {
	case len(names) == 0:
		return "", &failure{Kind: missing, Message: "there is no CUE file"}
	case len(names) > 1:
		return "", &failure{Kind: badModule, Message: "there are several packages: say which, as in path:package"}
	}
	for name := range names {
		return name, nil
	}
	panic("unreachable")
}

func nameOf(file *ast.File) string {
	if name := file.PackageName(); name != "" {
		return name
	}
	return "_"
}

// broken says everything that CUE has against a module.
func (m module) broken(err error) *failure {
	problems := []problem{}
	for _, one := range errors.Errors(err) {
		path := strings.Join(one.Path(), ".")
		problems = append(problems, problem{
			Path:     path,
			Message:  strings.TrimPrefix(m.unplaced(one), path+": "),
			Position: m.position(errors.Positions(one)),
		})
		if len(problems) == 50 {
			break
		}
	}
	return &failure{Kind: badModule, Message: "the module is not valid: " + problems[0].Message, Problems: problems}
}

// position is the first place in a file of the module.
func (m module) position(places []token.Pos) string {
	for _, place := range places {
		if !place.IsValid() || place.Filename() == inputName || place.Filename() == "" {
			continue
		}
		return sprintf("%s:%d:%d", []any{m.relative(place.Filename()), place.Line(), place.Column()})
	}
	return ""
}
