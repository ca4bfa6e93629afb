// Command node holds the add-ons of a real node: the DNS server for pods and a local image registry.
//
// It becomes the program whose name it is called by, as controlplane does. It is a module of its own because
// CoreDNS needs newer Kubernetes libraries than the control plane, and because nobody without a real node
// should have to build it. Only the plugins and drivers that a node needs are linked in; the complete programs
// carry the SDKs of every cloud.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	"github.com/distribution/distribution/v3/registry"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
)

var programs = map[string]func(){
	"coredns":  runDNS,
	"registry": runRegistry,
}

func main() {
	name := filepath.Base(os.Args[0])
	if _, known := programs[name]; !known && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		name = os.Args[0]
	}
	run, known := programs[name]
	if !known {
		fmt.Fprintf(os.Stderr, "node: no program %q; one of: coredns, registry\n", name)
		os.Exit(2)
	}
	run()
}

func runDNS() {
	dnsserver.Directives = []string{"bind", "errors", "cache", "kubernetes", "forward"}
	coremain.Run()
}

func runRegistry() {
	if err := registry.RootCmd.Execute(); err != nil {
		os.Exit(1)
	}
}
