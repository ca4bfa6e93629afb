package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"path"
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
		return nil, &failure{Kind: badModule, Message: err.Error()}
	}
	return files, nil
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
		if target, isText := node["$ref"].(string); isText && !strings.HasPrefix(target, "#") {
			return target
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
