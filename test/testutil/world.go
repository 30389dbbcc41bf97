package testutil

import (
	"fmt"
	"reflect"

	"github.com/go-logr/logr"
	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
	batchv1alpha1 "volcano.sh/apis/pkg/apis/batch/v1alpha1"
	busv1alpha1 "volcano.sh/apis/pkg/apis/bus/v1alpha1"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	topologyv1alpha1 "volcano.sh/apis/pkg/apis/topology/v1alpha1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// World is a cluster on which Tideline runs, as an admin sees it. Processes of one suite share a world by its two paths.
type World struct {
	// Kubeconfig is the path of the admin's kubeconfig.
	Kubeconfig string
	// AuditLog is the path of the API server's audit log.
	AuditLog string

	Config *rest.Config
	Client client.WithWatch

	version schema.GroupVersion // of Tideline's kinds, in which Client asks
}

// NewWorld connects to a cluster.
func NewWorld(kubeconfig, auditLog string) (*World, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1 // the API server limits its clients itself
	config.UserAgent = "test"
	crlog.SetLogger(logr.Discard()) // What a client warns of belongs to no spec.
	w := &World{Kubeconfig: kubeconfig, AuditLog: auditLog, Config: config}
	return w, w.SpeakVersion(v1beta1.GroupVersion)
}

// SpeakVersion has the world's client ask for Tideline's kinds in a version of the API. All have the same fields. Where the
// release before is installed, the API server knows only its version.
func (w *World) SpeakVersion(version schema.GroupVersion) error {
	scheme, err := newScheme(version)
	if err != nil {
		return err
	}
	if w.Client, err = client.NewWithWatch(w.Config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("connect to %s: %w", w.Config.Host, err)
	}
	w.version = version
	return nil
}

func newScheme(version schema.GroupVersion) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, kindsIn(version),
		schedulingv1beta1.AddToScheme, topologyv1alpha1.AddToScheme, batchv1alpha1.AddToScheme, busv1alpha1.AddToScheme,
		kubeflowv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register kinds: %w", err)
		}
	}
	return scheme, nil
}

// kindsIn registers Tideline's kinds in a version.
func kindsIn(version schema.GroupVersion) func(*runtime.Scheme) error {
	return func(scheme *runtime.Scheme) error {
		own := runtime.NewScheme()
		if err := v1beta1.AddToScheme(own); err != nil {
			return err
		}
		for kind, is := range own.KnownTypes(v1beta1.GroupVersion) {
			object, ok := reflect.New(is).Interface().(runtime.Object)
			if ok && is.PkgPath() == reflect.TypeFor[v1beta1.MergeJob]().PkgPath() {
				scheme.AddKnownTypeWithName(version.WithKind(kind), object)
			}
		}
		metav1.AddToGroupVersion(scheme, version)
		return nil
	}
}
