package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	"cuelabs.dev/go/oci/ociregistry"
	"cuelang.org/go/mod/modregistry"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

type resolveParams struct {
	connection
	Reference string `json:"reference"`
}

// ociResolveVerb says what a tag means now.
func ociResolveVerb(p resolveParams) (any, error) {
	repository, err := p.repository(p.Reference)
	if err != nil {
		return nil, err
	}
	ctx, cancel := p.deadline()
	defer cancel()
	found, err := repository.Resolve(ctx, repository.Reference.Reference)
	if err != nil {
		return nil, explainedOCI(err)
	}
	return map[string]any{"digest": found.Digest, "mediaType": found.MediaType, "size": found.Size}, nil
}

type pullParams struct {
	connection
	Reference string `json:"reference"`
	Into      string `json:"into"`
	Largest   int64  `json:"largest"`
}

type layer struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	File        string            `json:"file"`
	Annotations map[string]string `json:"annotations"`
}

const (
	largestManifest = 4 << 20
	mostLayers      = 64
)

// ociPullVerb fetches a manifest by its digest, and its layers as files; both are verified.
func ociPullVerb(p pullParams) (any, error) {
	repository, err := p.repository(p.Reference)
	if err != nil {
		return nil, err
	}
	ctx, cancel := p.deadline()
	defer cancel()
	described, err := repository.Resolve(ctx, repository.Reference.Reference)
	if err != nil {
		return nil, explainedOCI(err)
	}
	manifest, err := fetchManifest(ctx, repository, described)
	if err != nil {
		return nil, err
	}
	layers, total := []layer{}, int64(0)
	for number, one := range manifest.Layers {
		if total += one.Size; total > p.Largest || one.Size < 0 || number >= mostLayers {
			return nil, &failure{Kind: overLimit, Message: fmt.Sprintf("its layers are more than %d bytes, or more than %d", p.Largest, mostLayers)}
		}
		file := filepath.Join(p.Into, fmt.Sprintf("layer-%d", number))
		if err := fetchLayer(ctx, repository, one, file); err != nil {
			return nil, err
		}
		layers = append(layers, layer{MediaType: one.MediaType, Digest: one.Digest.String(), Size: one.Size, File: file, Annotations: orEmpty(one.Annotations)})
	}
	return map[string]any{
		"digest": described.Digest, "artifactType": manifest.ArtifactType, "configType": manifest.Config.MediaType,
		"annotations": orEmpty(manifest.Annotations), "layers": layers,
	}, nil
}

func orEmpty(annotations map[string]string) map[string]string {
	if annotations == nil {
		return map[string]string{}
	}
	return annotations
}

func fetchManifest(ctx context.Context, repository *remote.Repository, described ocispec.Descriptor) (*ocispec.Manifest, error) {
	if described.MediaType != ocispec.MediaTypeImageManifest && described.MediaType != "application/vnd.docker.distribution.manifest.v2+json" {
		return nil, &failure{Kind: badModule, Message: fmt.Sprintf("it is a %s, not the manifest of a module", described.MediaType)}
	}
	if described.Size > largestManifest {
		return nil, &failure{Kind: overLimit, Message: "its manifest is too large"}
	}
	text, err := content.FetchAll(ctx, repository, described)
	if err != nil {
		return nil, explainedOCI(err)
	}
	manifest := &ocispec.Manifest{}
	if err := json.Unmarshal(text, manifest); err != nil {
		return nil, &failure{Kind: badModule, Message: "its manifest is no JSON: " + err.Error()}
	}
	return manifest, nil
}

func fetchLayer(ctx context.Context, repository *remote.Repository, described ocispec.Descriptor, file string) error {
	incoming, err := repository.Blobs().Fetch(ctx, described)
	if err != nil {
		return explainedOCI(err)
	}
	defer incoming.Close()
	verified := content.NewVerifyReader(incoming, described)
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.Copy(out, verified); err != nil {
		return explainedOCI(err)
	}
	if err := verified.Verify(); err != nil {
		return &failure{Kind: badModule, Message: "a layer is not what its digest says: " + err.Error()}
	}
	return out.Close()
}

type pushParams struct {
	connection
	Reference    string            `json:"reference"`
	ArtifactType string            `json:"artifactType"`
	ConfigType   string            `json:"configType"`
	Config       string            `json:"config"`
	Layers       []layer           `json:"layers"`
	Annotations  map[string]string `json:"annotations"`
}

// ociPushVerb stores files as the layers of an artifact; the manifest last, so that there is never
// half of one.
func ociPushVerb(p pushParams) (any, error) {
	repository, err := p.repository(p.Reference)
	if err != nil {
		return nil, err
	}
	ctx, cancel := p.deadline()
	defer cancel()
	manifest := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		ArtifactType: p.ArtifactType, Annotations: p.Annotations, Layers: []ocispec.Descriptor{},
	}
	if manifest.Config, err = pushBlob(ctx, repository, p.ConfigType, []byte(p.Config)); err != nil {
		return nil, err
	}
	for _, one := range p.Layers {
		text, err := os.ReadFile(one.File)
		if err != nil {
			return nil, err
		}
		stored, err := pushBlob(ctx, repository, one.MediaType, text)
		if err != nil {
			return nil, err
		}
		stored.Annotations = one.Annotations
		manifest.Layers = append(manifest.Layers, stored)
	}
	text, err := json.Marshal(manifest)
	if err != nil {
		return nil, err
	}
	described := content.NewDescriptorFromBytes(manifest.MediaType, text)
	if err := repository.PushReference(ctx, described, bytes.NewReader(text), repository.Reference.Reference); err != nil {
		return nil, explainedOCI(err)
	}
	return map[string]any{"digest": described.Digest}, nil
}

func pushBlob(ctx context.Context, repository *remote.Repository, mediaType string, text []byte) (ocispec.Descriptor, error) {
	described := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(text), Size: int64(len(text))}
	if there, err := repository.Exists(ctx, described); err == nil && there {
		return described, nil
	}
	return described, explainedOCI(repository.Push(ctx, described, bytes.NewReader(text)))
}

func (c connection) repository(reference string) (*remote.Repository, error) {
	repository, err := remote.NewRepository(reference)
	if err != nil {
		return nil, &failure{Kind: badRequest, Message: err.Error()}
	}
	client, err := c.client()
	if err != nil {
		return nil, err
	}
	repository.PlainHTTP = c.PlainHTTP
	repository.MaxMetadataBytes = largestManifest
	repository.Client = &auth.Client{Client: client, Cache: auth.NewCache(), ClientID: "pequod", Credential: c.credential}
	return repository, nil
}

func (c connection) credential(_ context.Context, host string) (auth.Credential, error) {
	known := c.Logins[host]
	return auth.Credential{Username: known.Username, Password: known.Password, AccessToken: known.Token}, nil
}

// explainedOCI sorts the errors of a registry by what can be done about them.
func explainedOCI(err error) error {
	if err == nil {
		return nil
	}
	var known *failure
	var answer *errcode.ErrorResponse
	var cueAnswer ociregistry.HTTPError
	var certificate *tls.CertificateVerificationError
	var network net.Error
	kind := badModule
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, errdef.ErrNotFound), errors.Is(err, modregistry.ErrNotFound):
		kind = missing
	case errors.As(err, &answer):
		kind = kindOfStatus(answer.StatusCode)
	case errors.As(err, &cueAnswer):
		kind = kindOfStatus(cueAnswer.StatusCode())
	case errors.As(err, &certificate):
		return untrusted(err.Error())
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		kind = denied
	case errors.As(err, &network), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		kind = unavailable
	}
	return &failure{Kind: kind, Message: err.Error()}
}

func kindOfStatus(code int) string {
	switch {
	case code == 401 || code == 403:
		return denied
	case code == 404:
		return missing
	case code == 429 || code >= 500:
		return unavailable
	}
	return badModule
}
