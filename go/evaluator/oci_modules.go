package main

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"cuelabs.dev/go/oci/ociregistry/ociauth"
	"cuelang.org/go/mod/modconfig"
	"cuelang.org/go/mod/modfile"
	cuemodule "cuelang.org/go/mod/module"
)

type modulesParams struct {
	tree
	connection
	Registry string `json:"registry"`
	Into     string `json:"into"`
	Largest  int64  `json:"largest"`
}

const mostModules = 256

// ociModulesVerb fetches every module that a module imports into a cache that evaluating reads.
func ociModulesVerb(p modulesParams) (any, error) {
	place, err := p.inside()
	if err != nil {
		return nil, err
	}
	root := module{tree: p.tree}.root(place)
	text, err := os.ReadFile(filepath.Join(root, "cue.mod", "module.cue"))
	if os.IsNotExist(err) {
		return map[string]any{"modules": []string{}}, nil
	}
	if err != nil {
		return nil, err
	}
	file, err := modfile.ParseNonStrict(text, "cue.mod/module.cue")
	if err != nil {
		return nil, &failure{Kind: badModule, Message: err.Error()}
	}
	if len(file.DepVersions()) > mostModules {
		return nil, &failure{Kind: overLimit, Message: fmt.Sprintf("it imports more than %d modules", mostModules)}
	}
	transport, err := p.transport(p.Largest)
	if err != nil {
		return nil, err
	}
	registry, err := p.registry(transport)
	if err != nil {
		return nil, &failure{Kind: badRequest, Message: err.Error()}
	}
	ctx, cancel := p.deadline()
	defer cancel()
	fetched := []string{}
	for _, wanted := range file.DepVersions() {
		err := p.fetch(ctx, registry, wanted)
		if transport.exceeded() {
			err = &failure{Kind: overLimit, Message: fmt.Sprintf("the registry sends more than %d bytes", p.Largest)}
		}
		if err != nil {
			return nil, unfetched(wanted.String(), err)
		}
		fetched = append(fetched, wanted.String())
	}
	return map[string]any{"modules": fetched}, nil
}

func (p modulesParams) fetch(ctx context.Context, registry modconfig.Registry, wanted cuemodule.Version) error {
	if _, err := registry.ModFile(ctx, wanted); err != nil {
		return err
	}
	if _, err := registry.Fetch(ctx, wanted); err != nil {
		return err
	}
	size := int64(0)
	err := filepath.WalkDir(p.Into, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err == nil && size > p.Largest {
		return &failure{Kind: overLimit, Message: fmt.Sprintf("all modules together are over %d bytes", p.Largest)}
	}
	return err
}

func unfetched(name string, err error) error {
	explained := asFailure(explainedOCI(err))
	explained.Message = fmt.Sprintf("the module %s cannot be fetched: %s", name, explained.Message)
	return explained
}

func (p modulesParams) registry(transport http.RoundTripper) (modconfig.Registry, error) {
	places, err := p.places()
	if err != nil {
		return nil, err
	}
	return modconfig.NewRegistry(&modconfig.Config{
		CUERegistry: places,
		Transport:   ociauth.NewStdTransport(ociauth.StdTransportParams{Config: p, Transport: transport}),
		ClientType:  "pequod",
		Env: []string{
			"CUE_CACHE_DIR=" + p.Into, "HOME=" + os.TempDir(),
			"CUE_CONFIG_DIR=" + os.TempDir(), "DOCKER_CONFIG=" + os.TempDir(),
		},
	})
}

// places is the configuration of CUE for a list of registries: never a file of this machine, and
// TLS is not for them to decide.
func (p modulesParams) places() (string, error) {
	suffix := "+secure"
	if p.PlainHTTP {
		suffix = "+insecure"
	}
	places := strings.Split(p.Registry, ",")
	for number, place := range places {
		if place == "" || strings.Contains(place, "+") {
			return "", fmt.Errorf("%q is not a registry", place)
		}
		if place != "none" && !strings.HasSuffix(place, "=none") {
			places[number] = place + suffix
		}
	}
	return "simple:" + strings.Join(places, ","), nil
}

// EntryForRegistry makes the logins of a request known to CUE's client.
func (c connection) EntryForRegistry(host string) (ociauth.ConfigEntry, error) {
	known := c.Logins[host]
	return ociauth.ConfigEntry{Username: known.Username, Password: known.Password, AccessToken: known.Token}, nil
}
