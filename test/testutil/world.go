package testutil

import (
	"fmt"

	"github.com/go-logr/logr"
	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
	batchv1alpha1 "volcano.sh/apis/pkg/apis/batch/v1alpha1"
	busv1alpha1 "volcano.sh/apis/pkg/apis/bus/v1alpha1"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	topologyv1alpha1 "volcano.sh/apis/pkg/apis/topology/v1alpha1"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

// World is a cluster on which Tideline runs, as an admin sees it. Processes of one suite share a world by its two paths.
type World struct {
	// Kubeconfig is the path of the admin's kubeconfig.
	Kubeconfig string
	// AuditLog is the path of the API server's audit log.
	AuditLog string

	Config *rest.Config
	Client client.WithWatch
}

// NewWorld connects to a cluster.
func NewWorld(kubeconfig, auditLog string) (*World, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1 // the API server limits its clients itself
	config.UserAgent = "test"
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	crlog.SetLogger(logr.Discard()) // What a client warns of belongs to no spec.
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	return &World{Kubeconfig: kubeconfig, AuditLog: auditLog, Config: config, Client: c}, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme,
		schedulingv1beta1.AddToScheme, topologyv1alpha1.AddToScheme, batchv1alpha1.AddToScheme, busv1alpha1.AddToScheme,
		kubeflowv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register kinds: %w", err)
		}
	}
	return scheme, nil
}
