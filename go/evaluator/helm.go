package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
)

type helmParams struct {
	tree
	Release     string   `json:"release"`
	Namespace   string   `json:"namespace"`
	Revision    int      `json:"revision"`
	Upgrade     bool     `json:"upgrade"`
	Values      objects  `json:"values"`
	KubeVersion string   `json:"kubeVersion"`
	APIVersions []string `json:"apiVersions"`
}

type hook struct {
	Object         json.RawMessage `json:"object"`
	Events         []string        `json:"events"`
	Weight         int             `json:"weight"`
	DeletePolicies []string        `json:"deletePolicies"`
}

type helmResult struct {
	Name       string            `json:"name"`
	Version    string            `json:"version"`
	AppVersion string            `json:"appVersion"`
	Objects    []json.RawMessage `json:"objects"`
	Hooks      []hook            `json:"hooks"`
	CRDs       []json.RawMessage `json:"crds"`
	Notes      string            `json:"notes"`
}

func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) }

// helmVerb renders a chart, a folder or an archive, as `helm template` does: without a cluster,
// without name lookups, and with the dependencies that are in the chart.
func helmVerb(p helmParams) (any, error) {
	place, err := p.inside()
	if err != nil {
		return nil, err
	}
	if err := p.contained(place, map[string]bool{}); err != nil {
		return nil, err
	}
	loaded, err := loader.Load(place)
	if err != nil {
		return nil, &failure{Kind: badModule, Message: p.unplaced(err)}
	}
	if err := p.complete(loaded); err != nil {
		return nil, err
	}
	files, err := p.render(loaded)
	if err != nil {
		return nil, err
	}
	return collected(loaded, files)
}

// unplaced is an error without the place where we keep the tree.
func (t tree) unplaced(err error) string {
	root, _ := t.inside()
	text := strings.ReplaceAll(err.Error(), root+"/", "")
	return strings.ReplaceAll(text, t.Tree+"/", "")
}

// contained refuses links that lead out of the tree, for loaders that would follow them.
func (t tree) contained(place string, seen map[string]bool) error {
	if seen[place] {
		return nil
	}
	seen[place] = true
	root, err := filepath.EvalSymlinks(t.Tree)
	if err != nil {
		return err
	}
	return filepath.WalkDir(place, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.Type()&os.ModeSymlink == 0 {
			return err
		}
		target, err := filepath.EvalSymlinks(name)
		if err != nil {
			return nil // it leads nowhere: there is nothing to follow
		}
		if target != root && !strings.HasPrefix(target, root+string(filepath.Separator)) {
			return &failure{Kind: badModule, Message: t.relative(name) + " leads out of the tree"}
		}
		return t.contained(target, seen)
	})
}

// complete refuses a chart that lacks one of its dependencies, or can't be installed by itself.
func (p helmParams) complete(c *chart.Chart) error {
	if c.Metadata.Type == "library" {
		return &failure{Kind: badModule, Message: fmt.Sprintf("%s is a library chart: use it as a dependency of another", c.Name())}
	}
	there := map[string]bool{}
	for _, dependency := range c.Dependencies() {
		there[dependency.Name()] = true
	}
	for _, wanted := range c.Metadata.Dependencies {
		if !there[wanted.Name] {
			text := fmt.Sprintf("the chart %s needs %s, which is not in its folder charts: run `helm dependency update` and commit the result", c.Name(), wanted.Name)
			return &failure{Kind: missing, Message: text}
		}
	}
	return nil
}

func (p helmParams) render(c *chart.Chart) (map[string]string, error) {
	values := map[string]any(p.Values)
	if values == nil {
		values = map[string]any{}
	}
	if err := chartutil.ProcessDependencies(c, values); err != nil {
		return nil, &failure{Kind: badModule, Message: err.Error()}
	}
	capabilities, err := p.capabilities()
	if err != nil {
		return nil, err
	}
	if err := compatible(c, capabilities); err != nil {
		return nil, err
	}
	if err := noForeignSchemas(c); err != nil {
		return nil, err
	}
	options := common.ReleaseOptions{
		Name: p.Release, Namespace: p.Namespace, Revision: max(p.Revision, 1), IsInstall: !p.Upgrade, IsUpgrade: p.Upgrade,
	}
	all, err := util.ToRenderValues(c, values, options, capabilities)
	if err != nil {
		return nil, &failure{Kind: badModule, Message: err.Error()}
	}
	files, err := engine.Engine{EnableDNS: false}.Render(c, all)
	if err != nil {
		return nil, &failure{Kind: badModule, Message: shortened(err.Error())}
	}
	return files, nil
}

// shortened keeps both ends: where it began and, behind a thousand includes, the cause.
func shortened(text string) string {
	const end = 1000
	if len(text) <= 2*end {
		return text
	}
	return strings.ToValidUTF8(text[:end]+" … "+text[len(text)-end:], "")
}

func (p helmParams) capabilities() (*common.Capabilities, error) {
	capabilities := common.DefaultCapabilities.Copy()
	if p.KubeVersion != "" {
		version, err := common.ParseKubeVersion(p.KubeVersion)
		if err != nil {
			return nil, &failure{Kind: badRequest, Message: err.Error()}
		}
		capabilities.KubeVersion = *version
	}
	if len(p.APIVersions) > 0 {
		capabilities.APIVersions = common.VersionSet(p.APIVersions)
	}
	return capabilities, nil
}

func compatible(c *chart.Chart, capabilities *common.Capabilities) error {
	wanted := c.Metadata.KubeVersion
	if wanted == "" || chartutil.IsCompatibleRange(wanted, capabilities.KubeVersion.String()) {
		return nil
	}
	text := fmt.Sprintf("the chart %s is for Kubernetes %s and this is %s", c.Name(), wanted, capabilities.KubeVersion.Version)
	return &failure{Kind: badModule, Message: text}
}

// noForeignSchemas refuses schemas of values that refer to files or addresses.
func noForeignSchemas(c *chart.Chart) error {
	var any any
	if len(c.Schema) > 0 && json.Unmarshal(c.Schema, &any) == nil {
		if target := foreignReference(any, 0); target != "" {
			text := fmt.Sprintf("values.schema.json of %s refers to %s: only references inside of the schema are followed", c.Name(), target)
			return &failure{Kind: badModule, Message: text}
		}
	}
	for _, dependency := range c.Dependencies() {
		if err := noForeignSchemas(dependency); err != nil {
			return err
		}
	}
	return nil
}

func foreignReference(schema any, depth int) string {
	if depth > 200 {
		return "more levels than a schema may have"
	}
	switch node := schema.(type) {
	case map[string]any:
		for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef", "$schema"} {
			target, isText := node[key].(string)
			standard := key == "$schema" && strings.Contains(target, "://json-schema.org/")
			if isText && !standard && !strings.HasPrefix(target, "#") {
				return target
			}
		}
		for _, below := range node {
			if target := foreignReference(below, depth+1); target != "" {
				return target
			}
		}
	case []any:
		for _, below := range node {
			if target := foreignReference(below, depth+1); target != "" {
				return target
			}
		}
	}
	return ""
}

func collected(c *chart.Chart, files map[string]string) (*helmResult, error) {
	result := &helmResult{
		Name: c.Name(), Version: c.Metadata.Version, AppVersion: c.Metadata.AppVersion,
		Objects: []json.RawMessage{}, Hooks: []hook{}, CRDs: []json.RawMessage{},
	}
	for name, text := range files {
		if path.Base(name) == "NOTES.txt" {
			if name == path.Join(c.Name(), "templates", "NOTES.txt") {
				result.Notes = strings.TrimSpace(text)
			}
			delete(files, name)
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, &failure{Kind: badModule, Message: err.Error()}
	}
	for _, one := range manifests {
		if result.Objects, err = appendObjects(result.Objects, one.Name, []byte(one.Content)); err != nil {
			return nil, err
		}
	}
	for _, one := range hooks {
		objects, err := appendObjects(nil, one.Path, []byte(one.Manifest))
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			result.Hooks = append(result.Hooks, hook{Object: object, Events: texts(one.Events), Weight: one.Weight, DeletePolicies: texts(one.DeletePolicies)})
		}
	}
	sort.SliceStable(result.Hooks, func(a, b int) bool { return result.Hooks[a].Weight < result.Hooks[b].Weight })
	for _, one := range c.CRDObjects() {
		if result.CRDs, err = appendObjects(result.CRDs, one.Filename, one.File.Data); err != nil {
			return nil, err
		}
	}
	return result, nil
}

func texts[T ~string](values []T) []string {
	all := []string{}
	for _, value := range values {
		all = append(all, string(value))
	}
	return all
}
