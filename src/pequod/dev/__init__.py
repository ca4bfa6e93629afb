"""The embedded control plane: a real Kubernetes on this machine, without Docker.

`programs.py` finds or builds its programs, `pki.py` and `kubeconfig.py` make its certificates,
`components.py` knows each command line, `controlplane.py` starts them and keeps them running,
`instances.py` knows which control planes exist here and removes what a dead one left, and `node/`
is what runs the pods. Whatever is started dies with the process that started it, whichever way that
ends. It never touches a cluster that it did not start.
"""
