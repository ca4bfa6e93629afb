package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cuelabs.dev/go/oci/ociregistry/ocimem"
	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/cuecontext"
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
		if name, err = m.packageName(dir); err != nil {
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
		return nil, m.unloaded(err, dir, name)
	}
	context := cuecontext.New(cuecontext.WithInjection(embed.New()))
	value := context.BuildInstance(found[0])
	if err := value.Err(); err != nil {
		return nil, m.broken(err, value)
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
func (m module) packageName(dir string) (string, error) {
	names, err := m.packageNames(dir)
	switch {
	case err != nil:
		return "", err
	case len(names) == 0:
		return "", &failure{Kind: missing, Message: "there is no CUE file"}
	case len(names) > 1:
		return "", &failure{Kind: badModule, Message: "there are several packages: say which, as in path:package"}
	}
	return names[0], nil
}

func (m module) packageNames(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.cue"))
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_tool.cue") || strings.HasSuffix(file, "_test.cue") {
			continue
		}
		syntax, err := parser.ParseFile(file, nil, parser.PackageClauseOnly)
		if err != nil {
			return nil, m.broken(err, cue.Value{})
		}
		names[nameOf(syntax)] = true
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// unloaded is why a package can't be read; CUE itself doesn't say which packages there are.
func (m module) unloaded(err error, dir, name string) error {
	names, unread := m.packageNames(dir)
	if unread == nil && len(names) > 0 && !slices.Contains(names, name) {
		return &failure{
			Kind:    missing,
			Message: "there is no package " + name + " in " + m.relative(dir) + ": name one of " + strings.Join(names, ", "),
		}
	}
	return m.broken(err, cue.Value{})
}

func nameOf(file *ast.File) string {
	if name := file.PackageName(); name != "" {
		return name
	}
	return "_"
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
