package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The kinds of failures; the Python side has an error class for each.
const (
	badRequest  = "request"     // our own fault
	internal    = "internal"    // a panic; the worker is thrown away
	badModule   = "module"      // what was to be evaluated is wrong
	missing     = "missing"     // a path, a definition, a tag that is not there
	overLimit   = "limit"       // more than allowed
	denied      = "denied"      // other credentials are needed
	unavailable = "unavailable" // nobody answered
)

// failure is an error that the other side can tell apart from others.
type failure struct {
	Kind     string    `json:"kind"`
	Message  string    `json:"message"`
	Problems []problem `json:"problems,omitempty"`
}

func (f *failure) Error() string { return f.Message }

// problem is one of several reasons for a failure.
type problem struct {
	Path     string `json:"path,omitempty"`
	Message  string `json:"message"`
	Position string `json:"position,omitempty"`
}

func asFailure(err error) *failure {
	var known *failure
	if errors.As(err, &known) {
		return known
	}
	if errors.Is(err, os.ErrNotExist) {
		return &failure{Kind: missing, Message: err.Error()}
	}
	var system *fs.PathError
	if errors.As(err, &system) {
		return &failure{Kind: internal, Message: err.Error()}
	}
	return &failure{Kind: badModule, Message: err.Error()}
}

// tree is a folder of files that somebody made available to us, and a place inside of it.
type tree struct {
	Tree   string `json:"tree"`
	Path   string `json:"path"`
	Digest string `json:"digest"`
}

// inside is the place in the tree; it never leads out of it, links followed.
func (t tree) inside() (string, error) {
	root, err := filepath.EvalSymlinks(t.Tree)
	if err != nil {
		return "", &failure{Kind: missing, Message: "the tree is not there"}
	}
	place, err := filepath.EvalSymlinks(filepath.Join(root, filepath.FromSlash(t.Path)))
	if err != nil {
		return "", &failure{Kind: missing, Message: "there is no " + t.Path + " in the tree"}
	}
	if place != root && !strings.HasPrefix(place, root+string(filepath.Separator)) {
		return "", &failure{Kind: badModule, Message: t.Path + " leads out of the tree"}
	}
	return place, nil
}

// relative is a file's name as its author knows it.
func (t tree) relative(file string) string {
	root, err := filepath.EvalSymlinks(t.Tree)
	if err != nil {
		return filepath.Base(file)
	}
	if name, err := filepath.Rel(root, file); err == nil && !strings.HasPrefix(name, "..") {
		return filepath.ToSlash(name)
	}
	return filepath.Base(file)
}
