// The evaluator runs the languages that exist only in Go: CUE, Helm, kustomize, Rego and CEL.
//
// It answers framed JSON requests on its standard input, one at a time, and ends with the process
// that started it. It trusts nothing that it is given: it limits itself before the first request,
// and whoever asks kills it when an answer takes too long.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
)

// verb answers one kind of request.
type verb func(params json.RawMessage) (any, error)

// evaluating needs nothing but files; networked is what the OCI worker may do, and nothing else.
var (
	evaluating = map[string]verb{
		"ping":       ping,
		"cue.input":  answering(checkInputVerb),
		"cue.render": answering(renderVerb),
		"cue.policy": answering(policyVerb),
		"cue.schema": answering(schemaVerb),
		"helm":       answering(helmVerb),
		"kustomize":  answering(kustomizeVerb),
		"rego":       answering(regoVerb),
		"cel":        answering(celVerb),
		"crd":        answering(crdVerb),
		"yaml":       answering(yamlVerb),
	}
	networked = map[string]verb{
		"ping":        ping,
		"oci.resolve": answering(ociResolveVerb),
		"oci.pull":    answering(ociPullVerb),
		"oci.push":    answering(ociPushVerb),
		"oci.modules": answering(ociModulesVerb),
	}
)

// ping costs nothing: whoever asks wants to know whether we are there.
func ping(json.RawMessage) (any, error) { return map[string]string{}, nil }

type request struct {
	Verb       string          `json:"verb"`
	CPUSeconds uint64          `json:"cpuSeconds"`
	Params     json.RawMessage `json:"params"`
}

type response struct {
	Result  any      `json:"result,omitempty"`
	Failure *failure `json:"failure,omitempty"`
}

func main() {
	network := flag.Bool("network", false, "serve the OCI verbs, and only those")
	memory := flag.Uint64("memory", 1<<30, "bytes of address space beyond what the program needs itself")
	largest := flag.Int("largest", 64<<20, "bytes of the largest request and of the largest answer")
	flag.Parse()
	if err := confine(*network, *memory); err != nil {
		fmt.Fprintln(os.Stderr, "cannot limit myself:", err)
		os.Exit(3)
	}
	debug.SetMaxStack(256 << 20)
	debug.SetGCPercent(400) // evaluations are short and make little but garbage
	verbs := evaluating
	if *network {
		verbs = networked
	}
	serve(verbs, *largest)
}

// serve answers until the other side is gone. Requests are read beside the work, so that the end
// of the other side is noticed in the middle of an evaluation.
func serve(verbs map[string]verb, largest int) {
	incoming := make(chan []byte)
	go func() {
		in := bufio.NewReader(os.Stdin)
		for {
			frame, err := readFrame(in, largest)
			if err != nil {
				os.Exit(0)
			}
			incoming <- frame
		}
	}()
	out := bufio.NewWriter(os.Stdout)
	for frame := range incoming {
		answer, sound := respond(verbs, frame)
		if err := writeFrame(out, answer, largest); err != nil {
			os.Exit(1)
		}
		if !sound {
			os.Exit(1)
		}
	}
}

// respond answers one request; what is not sound after a panic must not answer another.
func respond(verbs map[string]verb, frame []byte) (answer response, sound bool) {
	defer func() {
		if crash := recover(); crash != nil {
			fmt.Fprintf(os.Stderr, "panic: %v\n%s", crash, debug.Stack())
			answer = response{Failure: &failure{Kind: internal, Message: fmt.Sprintf("the evaluator failed: %v", crash)}}
			sound = false
		}
	}()
	var asked request
	if err := json.Unmarshal(frame, &asked); err != nil {
		return response{Failure: &failure{Kind: badRequest, Message: err.Error()}}, true
	}
	serving, known := verbs[asked.Verb]
	if !known {
		return response{Failure: &failure{Kind: badRequest, Message: "unknown verb " + asked.Verb}}, true
	}
	if err := limitCPU(asked.CPUSeconds); err != nil {
		return response{Failure: &failure{Kind: internal, Message: err.Error()}}, false
	}
	result, err := serving(asked.Params)
	if err != nil {
		return response{Failure: asFailure(err)}, true
	}
	return response{Result: result}, true
}

// answering makes a verb of a function over its own parameters.
func answering[P any](serving func(P) (any, error)) verb {
	return func(raw json.RawMessage) (any, error) {
		var params P
		if err := json.Unmarshal(raw, &params); err != nil {
			return nil, &failure{Kind: badRequest, Message: err.Error()}
		}
		return serving(params)
	}
}
