package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// kustomizeVerb builds a folder as `kubectl kustomize` does, with what is in the tree only: no
// remote bases, no plugins, no Helm.
func kustomizeVerb(t tree) (any, error) {
	place, err := t.inside()
	if err != nil {
		return nil, err
	}
	root, err := filepath.EvalSymlinks(t.Tree)
	if err != nil {
		return nil, err
	}
	if err := (localBases{tree: t, root: root, seen: map[string]bool{}}).check(place); err != nil {
		return nil, err
	}
	options := krusty.MakeDefaultOptions()
	options.PluginConfig = types.DisabledPluginConfig()
	options.LoadRestrictions = types.LoadRestrictionsRootOnly
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), place)
	if err != nil {
		return nil, &failure{Kind: badModule, Message: t.unplaced(err)}
	}
	objects := []json.RawMessage{}
	for _, resource := range built.Resources() {
		text, err := resource.MarshalJSON()
		if err != nil {
			return nil, &failure{Kind: badModule, Message: err.Error()}
		}
		objects = append(objects, text)
	}
	return map[string]any{"objects": objects}, nil
}

// localBases makes sure, before kustomize looks, that everything it would load is in the tree;
// kustomize itself would try to fetch what is not.
type localBases struct {
	tree tree
	root string
	seen map[string]bool
}

func (l localBases) check(dir string) error {
	if l.seen[dir] {
		return nil
	}
	l.seen[dir] = true
	kustomization, err := readKustomization(dir)
	if err != nil {
		return &failure{Kind: missing, Message: fmt.Sprintf("%s: %s", l.tree.relative(dir), err)}
	}
	if len(kustomization.HelmCharts) > 0 || len(kustomization.HelmChartInflationGenerator) > 0 {
		return &failure{Kind: badModule, Message: "helmCharts are not inflated: render the chart by itself"}
	}
	files := [][]string{
		kustomization.Resources, kustomization.Components, kustomization.Bases, kustomization.Crds,
		kustomization.Configurations,
	}
	inlinable := [][]string{kustomization.Generators, kustomization.Transformers, kustomization.Validators}
	for _, list := range inlinable {
		files = append(files, slices.DeleteFunc(list, isInline))
	}
	for _, list := range files {
		for _, entry := range list {
			if err := l.checkEntry(dir, entry); err != nil {
				return err
			}
		}
	}
	return nil
}

// isInline is whether an entry is a plugin's configuration itself instead of the name of a file.
func isInline(entry string) bool {
	var configuration struct {
		Kind string `json:"kind"`
	}
	return yaml.Unmarshal([]byte(entry), &configuration) == nil && configuration.Kind != ""
}

func (l localBases) checkEntry(dir, entry string) error {
	place, err := filepath.EvalSymlinks(filepath.Join(dir, entry))
	if err != nil || filepath.IsAbs(entry) {
		text := fmt.Sprintf("%s refers to %s, which is not in the tree: remote bases are not fetched, copy it into the repository", l.tree.relative(dir), entry)
		return &failure{Kind: missing, Message: text}
	}
	if place != l.root && !strings.HasPrefix(place, l.root+string(filepath.Separator)) {
		return &failure{Kind: badModule, Message: fmt.Sprintf("%s refers to %s, which is outside of the tree", l.tree.relative(dir), entry)}
	}
	if info, err := os.Stat(place); err == nil && info.IsDir() {
		return l.check(place)
	}
	return nil
}

func readKustomization(dir string) (*types.Kustomization, error) {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var kustomization types.Kustomization
		return &kustomization, yaml.Unmarshal(text, &kustomization)
	}
	return nil, fmt.Errorf("there is no kustomization.yaml")
}
