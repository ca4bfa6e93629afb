// Command controlplane is every program of an embedded Kubernetes in one file.
//
// It becomes the component whose name it is called by: through a link
// (`etcd --data-dir …`) or as its first argument (`controlplane etcd --data-dir …`).
// The components share nearly all of their code, so one binary is a third of the size and of the build
// time of six, and each still runs as a process of its own that can be killed by itself.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodeheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

// components maps a program's name to its main function, which returns the exit code.
var components = map[string]func() int{
	"etcd":                    runEtcd,
	"kube-apiserver":          cobraMain(func() *cobra.Command { return apiserver.NewAPIServerCommand() }),
	"kube-controller-manager": cobraMain(func() *cobra.Command { return controllermanager.NewControllerManagerCommand() }),
	"kube-scheduler":          cobraMain(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kubelet":                 cobraMain(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
	"kube-proxy":              cobraMain(func() *cobra.Command { return proxy.NewProxyCommand() }),
	"kubectl":                 runKubectl,
	"kwok":                    runKwok,
	"kwok-stages":             printStages,
}

func main() {
	name := filepath.Base(os.Args[0])
	if _, known := components[name]; !known && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		name = os.Args[0]
	}
	run, known := components[name]
	if !known {
		fmt.Fprintf(os.Stderr, "controlplane: no component %q; one of: %s\n", name, strings.Join(names(), ", "))
		os.Exit(2)
	}
	os.Exit(run())
}

func names() []string {
	all := make([]string, 0, len(components))
	for name := range components {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func cobraMain(command func() *cobra.Command) func() int {
	return func() int { return cli.Run(command()) }
}

func runEtcd() int {
	etcdmain.Main(os.Args)
	return 0
}

func runKubectl() int {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
	return 0
}

// runKwok reads kwok's own configuration before its command is built: the command takes its defaults from it.
// The global flags are those of the other components, whose --version is not kwok's.
func runKwok() int {
	pflag.CommandLine = pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, logger := kwoklog.InitFlags(signals.SetupSignalContext(), flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err != nil {
		logger.Error("read configuration", "err", err)
		return 1
	}
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	if err := command.ExecuteContext(ctx); err != nil {
		logger.Error("run kwok", "err", err)
		return 1
	}
	return 0
}

// printStages prints how kwok's nodes and pods live: kwok itself starts with none.
func printStages() int {
	for _, stage := range []string{
		nodefast.DefaultNodeInit,
		nodeheartbeat.DefaultNodeHeartbeatWithLease,
		podfast.DefaultPodReady,
		podfast.DefaultPodComplete,
		podfast.DefaultPodDelete,
	} {
		fmt.Printf("%s\n---\n", strings.TrimSpace(stage))
	}
	return 0
}
