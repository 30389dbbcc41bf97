// Package trainingoperator runs training-operator on a local cluster, to compare with.
package trainingoperator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/tideline-io/tideline/test/cluster"
)

// Names in training-operator's own installation, and of its program here.
const (
	name      = "training-operator"
	namespace = "kubeflow"
	secret    = "training-operator-webhook-cert"
	webhooks  = "validator.training-operator.kubeflow.org"
)

// User is what the API server calls training-operator.
const User = "system:serviceaccount:" + namespace + ":" + name

// applied is how objects are applied.
var applied = metav1.ApplyOptions{FieldManager: "test", Force: true}

var pyTorchJobs = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "pytorchjobs"}

// trainer is training-operator on a cluster.
type trainer struct {
	cluster  *cluster.Cluster
	programs cluster.Built
	client   kubernetes.Interface
	dynamic  dynamic.Interface
}

// Start installs training-operator for PyTorchJobs, with Volcano for their
// gangs, and starts it as a process with the service account and the role of its
// own installation. It is built the first time. Start returns when its webhook
// answers.
func Start(ctx context.Context, c *cluster.Cluster) error { return start(ctx, c, "pytorchjob") }

// StartWithTFJobs is Start for TFJobs too.
func StartWithTFJobs(ctx context.Context, c *cluster.Cluster) error {
	return start(ctx, c, "pytorchjob", "tfjob")
}

func start(ctx context.Context, c *cluster.Cluster, kinds ...string) (err error) {
	t := trainer{cluster: c}
	if t.programs, err = c.Build(ctx, cluster.TrainingOperator); err != nil {
		return err
	}
	if t.client, err = kubernetes.NewForConfig(c.RESTConfig()); err != nil {
		return err
	}
	if t.dynamic, err = dynamic.NewForConfig(c.RESTConfig()); err != nil {
		return err
	}
	validation, err := t.install(ctx)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(c.Dir(), name+".kubeconfig")
	if err := c.KubeconfigFor(ctx, namespace, name, kubeconfig); err != nil {
		return err
	}
	var probes string
	p, err := c.StartServer(ctx, cluster.Server{
		Name:    name,
		Program: t.programs.Program(name),
		Ports:   2,
		Prepare: func(ctx context.Context, ports []int) ([]string, error) {
			probes = cluster.Address(ports[1])
			flags := []string{
				"--kubeconfig=" + kubeconfig,
				"--gang-scheduler-name=volcano",
				"--webhook-server-port=" + strconv.Itoa(ports[0]),
				"--health-probe-bind-address=" + probes,
				"--metrics-bind-address=0",
				// Its own default of 20 requests a second is for clusters with other users.
				"--kube-api-qps=500", "--kube-api-burst=500",
			}
			for _, kind := range kinds {
				flags = append(flags, "--enable-scheme="+kind)
			}
			return flags, t.route(ctx, validation, int32(ports[0]))
		},
		Ready: func(ctx context.Context) error {
			return errors.Join(t.mountSecret(ctx), cluster.Healthy(ctx, "http://"+probes+"/readyz"))
		},
	})
	if err != nil {
		return err
	}
	removeIfEmpty(mountedCertificate)
	return c.WaitFor(ctx, "training-operator's webhook to answer", t.answers, p)
}

// install creates what training-operator needs before it starts,
// and returns its webhooks.
func (t trainer) install(ctx context.Context) (validation *unstructured.Unstructured, err error) {
	objects, err := t.programs.Objects(cluster.TrainingOperatorManifests...)
	if err != nil {
		return nil, err
	}
	core := t.client.CoreV1()
	if _, err := core.Namespaces().Apply(ctx, applycorev1.Namespace(namespace), applied); err != nil {
		return nil, err
	}
	if _, err := core.ServiceAccounts(namespace).Apply(ctx, applycorev1.ServiceAccount(name, namespace), applied); err != nil {
		return nil, err
	}
	if _, err := core.Secrets(namespace).Apply(ctx, applycorev1.Secret(secret, namespace), applied); err != nil {
		return nil, err
	}
	for _, o := range objects {
		switch o.GetKind() {
		case "CustomResourceDefinition":
			err = t.cluster.InstallDefinitions(ctx, []*unstructured.Unstructured{o})
		case "ClusterRoleBinding":
			subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
			for _, s := range subjects {
				s.(map[string]any)["namespace"] = namespace
			}
			o.Object["subjects"] = subjects
			err = t.cluster.Apply(ctx, []*unstructured.Unstructured{o})
		case "ValidatingWebhookConfiguration":
			o.SetName(webhooks)
			validation = o
		default:
			err = t.cluster.Apply(ctx, []*unstructured.Unstructured{o})
		}
		if err != nil {
			return nil, err
		}
	}
	return validation, nil
}

// route leads the API server to the webhooks at a port of this
// machine. Its certificate is for the name of its Service, so it is called by
// that name, and the Service stands for localhost.
func (t trainer) route(ctx context.Context, configuration *unstructured.Unstructured, port int32) error {
	service := applycorev1.Service(name, namespace).
		WithSpec(applycorev1.ServiceSpec().WithType(corev1.ServiceTypeExternalName).WithExternalName("localhost"))
	if _, err := t.client.CoreV1().Services(namespace).Apply(ctx, service, applied); err != nil {
		return err
	}
	called, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	for _, w := range called {
		to, _, _ := unstructured.NestedMap(w.(map[string]any), "clientConfig", "service")
		to["name"], to["namespace"], to["port"] = name, namespace, int64(port)
		w.(map[string]any)["clientConfig"] = map[string]any{"service": to}
	}
	configuration.Object["webhooks"] = called
	return t.cluster.Apply(ctx, []*unstructured.Unstructured{configuration})
}

// training-operator waits for its certificate below /tmp, where it only looks
// whether there is a file, and serves with the one below TMPDIR. So clusters
// share nothing but an empty file, which each makes until its own is ready.
const (
	serving            = "k8s-webhook-server/serving-certs"
	mountedCertificate = "/tmp/" + serving + "/" + corev1.TLSCertKey
)

// mountSecret does what a kubelet does: it writes the
// certificate, which training-operator puts into its Secret, to files.
func (t trainer) mountSecret(ctx context.Context) error {
	certificate, err := t.client.CoreV1().Secrets(namespace).Get(ctx, secret, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, key := range []string{corev1.TLSPrivateKeyKey, corev1.TLSCertKey} {
		if len(certificate.Data[key]) == 0 {
			return fmt.Errorf("its Secret has no %s", key)
		}
		if err := writeNew(filepath.Join(t.cluster.Dir(), name, serving, key), certificate.Data[key]); err != nil {
			return err
		}
	}
	return writeNew(mountedCertificate, nil)
}

// writeNew writes a file, and the folders that it is in, unless it is there.
func writeNew(file string, content []byte) error {
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o600)
}

// removeIfEmpty removes a file without content, and the folders that are empty
// without it.
func removeIfEmpty(file string) {
	if info, err := os.Stat(file); err != nil || info.Size() > 0 {
		return
	}
	_ = os.Remove(file)
	_ = os.Remove(filepath.Dir(file))
	_ = os.Remove(filepath.Dir(filepath.Dir(file)))
}

// answers tries a PyTorchJob without an image, which the webhook
// refuses and the resource definition does not.
func (t trainer) answers(ctx context.Context) error {
	template := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "pytorch"}}}}
	probe := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": pyTorchJobs.GroupVersion().String(),
		"kind":       "PyTorchJob",
		"metadata":   map[string]any{"name": "webhook-probe"},
		"spec":       map[string]any{"pytorchReplicaSpecs": map[string]any{"Worker": map[string]any{"template": template}}},
	}}
	_, err := t.dynamic.Resource(pyTorchJobs).Namespace(metav1.NamespaceDefault).Create(ctx, probe,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil {
		return errors.New("a PyTorchJob without an image was admitted")
	}
	if !strings.Contains(err.Error(), "denied the request") {
		return err
	}
	return nil
}
