// Package cluster runs a Kubernetes cluster with Volcano out of ordinary
// processes on this machine, for test suites, benchmarks and the tour in the
// README. It needs no container engine and no root.
//
// etcd, kube-apiserver, kube-controller-manager and Volcano's scheduler,
// controllers and webhooks are the real programs, built once from the modules
// under modules/ and kept in a cache (see [Build]). Nodes and kubelets are
// simulated by KWOK: a pod bound to a node becomes Running and Ready at once
// and runs no code.
//
// Kubernetes and Volcano are built in the newest version that has a folder there,
// or in the one that the environment variable TIDELINE_KUBERNETES or
// TIDELINE_VOLCANO names, as in TIDELINE_VOLCANO=1.14.1. To add a version, copy the
// folder of the one before, put the version into its name and its go.mod, repeat
// the replace lines of the version's own go.mod there, and run go mod tidy in it;
// then name it in test/project/schemas_test.go, if it is the newest. The files in
// a folder amend are added to a copy of module volcano.sh/apis that a version of
// Volcano is then built with, because no module proxy serves its own; the copy is
// beside the programs in the cache.
//
// A server of S3 is started beside a cluster by [Cluster.StartObjectStore]. What
// one suite needs besides is started by that suite, by [Cluster.Build] and
// [Cluster.StartServer]: training-operator in test/integration/pytorchjob,
// Kubeflow's notebook-controller in test/integration/notebooks, and the Operator
// Lifecycle Manager in test/olm. A Prometheus that knows what a test
// writes needs no cluster: test/testutil/prometheus.
//
// Everything listens on the loopback interface only, but for the webhook of
// training-operator and OLM's programs, which cannot be told to, and on ports
// that were free at the start, so clusters run side by side. Every process dies with the program
// that called [Start], also when that program is killed.
package cluster
