package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const (
	mostDocuments = 10_000
	mostLevels    = 200
)

// objects is JSON whose whole numbers stay whole, as Kubernetes has it.
type objects map[string]any

// UnmarshalJSON is how encoding/json asks.
func (o *objects) UnmarshalJSON(text []byte) error {
	return utiljson.Unmarshal(text, (*map[string]any)(o))
}

type yamlParams struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// yamlVerb reads YAML, or JSON, of unknown origin.
func yamlVerb(p yamlParams) (any, error) {
	documents, err := appendObjects([]json.RawMessage{}, p.Name, []byte(p.Text))
	return map[string]any{"documents": documents}, err
}

// appendObjects adds the documents of a text; empty ones are left out, a List becomes its items.
func appendObjects(all []json.RawMessage, name string, text []byte) ([]json.RawMessage, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, &failure{Kind: badModule, Message: fmt.Sprintf("%s: %s", name, err)}
		}
		if _, rest, ended := bytes.Cut(document, []byte("\n...\n")); ended && !blank(rest) {
			return all, &failure{Kind: badModule, Message: name + ": what follows the end of a document (...) is not read: use ---"}
		}
		converted, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return all, &failure{Kind: badModule, Message: fmt.Sprintf("%s is not valid YAML: %s", name, err)}
		}
		if tooDeep(converted, mostLevels) {
			return all, &failure{Kind: overLimit, Message: fmt.Sprintf("%s has more than %d levels", name, mostLevels)}
		}
		if string(converted) == "null" {
			continue
		}
		all = append(all, unlisted(converted)...)
		if len(all) > mostDocuments {
			return all, &failure{Kind: overLimit, Message: fmt.Sprintf("%s has more than %d documents", name, mostDocuments)}
		}
	}
}

// blank is whether a text has nothing but comments.
func blank(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("...")) {
			return false
		}
	}
	return true
}

func unlisted(document json.RawMessage) []json.RawMessage {
	var list struct {
		Version string            `json:"apiVersion"`
		Kind    string            `json:"kind"`
		Items   []json.RawMessage `json:"items"`
	}
	if json.Unmarshal(document, &list) == nil && list.Version == "v1" && list.Kind == "List" {
		return list.Items
	}
	return []json.RawMessage{document}
}

func tooDeep(text []byte, most int) bool {
	levels, quoted, escaped := 0, false, false
	for _, letter := range text {
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = letter == '\\', letter != '"'
		case letter == '"':
			quoted = true
		case letter == '{' || letter == '[':
			levels++
		case letter == '}' || letter == ']':
			levels--
		}
		if levels > most {
			return true
		}
	}
	return false
}
