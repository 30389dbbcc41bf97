package pytorchjob

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
	trainingOperator          = "training-operator"
	trainingOperatorNamespace = "kubeflow"
	trainingOperatorSecret    = "training-operator-webhook-cert"
	trainingOperatorWebhooks  = "validator.training-operator.kubeflow.org"
)

// applied is how the test applies what it owns.
var applied = metav1.ApplyOptions{FieldManager: "test", Force: true}

var pyTorchJobs = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "pytorchjobs"}

// trainer is training-operator on a cluster.
type trainer struct {
	cluster  *cluster.Cluster
	programs cluster.Built
	client   kubernetes.Interface
	dynamic  dynamic.Interface
}

// startTrainingOperator installs training-operator for PyTorchJobs, with Volcano
// for their gangs, and starts it as a process with the service account and the
// role of its own installation. It is built the first time. startTrainingOperator
// returns when its webhook answers.
func startTrainingOperator(ctx context.Context, c *cluster.Cluster) (err error) {
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
	webhooks, err := t.install(ctx)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(c.Dir(), trainingOperator+".kubeconfig")
	if err := c.KubeconfigFor(ctx, trainingOperatorNamespace, trainingOperator, kubeconfig); err != nil {
		return err
	}
	var probes string
	p, err := c.StartServer(ctx, cluster.Server{
		Name:    trainingOperator,
		Program: t.programs.Program(trainingOperator),
		Ports:   2,
		Prepare: func(ctx context.Context, ports []int) ([]string, error) {
			probes = cluster.Address(ports[1])
			return []string{
				"--kubeconfig=" + kubeconfig,
				"--enable-scheme=pytorchjob",
				"--gang-scheduler-name=volcano",
				"--webhook-server-port=" + strconv.Itoa(ports[0]),
				"--health-probe-bind-address=" + probes,
				"--metrics-bind-address=0",
				// Its own default of 20 requests a second is for clusters with other users.
				"--kube-api-qps=500", "--kube-api-burst=500",
			}, t.route(ctx, webhooks, int32(ports[0]))
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
func (t trainer) install(ctx context.Context) (webhooks *unstructured.Unstructured, err error) {
	objects, err := t.programs.Objects(cluster.TrainingOperatorManifests...)
	if err != nil {
		return nil, err
	}
	namespace := applycorev1.Namespace(trainingOperatorNamespace)
	account := applycorev1.ServiceAccount(trainingOperator, trainingOperatorNamespace)
	secret := applycorev1.Secret(trainingOperatorSecret, trainingOperatorNamespace)
	core := t.client.CoreV1()
	if _, err := core.Namespaces().Apply(ctx, namespace, applied); err != nil {
		return nil, err
	}
	if _, err := core.ServiceAccounts(trainingOperatorNamespace).Apply(ctx, account, applied); err != nil {
		return nil, err
	}
	if _, err := core.Secrets(trainingOperatorNamespace).Apply(ctx, secret, applied); err != nil {
		return nil, err
	}
	for _, o := range objects {
		switch o.GetKind() {
		case "CustomResourceDefinition":
			err = t.cluster.InstallDefinitions(ctx, []*unstructured.Unstructured{o})
		case "ClusterRoleBinding":
			subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
			for _, s := range subjects {
				s.(map[string]any)["namespace"] = trainingOperatorNamespace
			}
			o.Object["subjects"] = subjects
			err = t.cluster.Apply(ctx, []*unstructured.Unstructured{o})
		case "ValidatingWebhookConfiguration":
			o.SetName(trainingOperatorWebhooks)
			webhooks = o
		default:
			err = t.cluster.Apply(ctx, []*unstructured.Unstructured{o})
		}
		if err != nil {
			return nil, err
		}
	}
	return webhooks, nil
}

// route leads the API server to the webhooks at a port of this
// machine. Its certificate is for the name of its Service, so it is called by
// that name, and the Service stands for localhost.
func (t trainer) route(ctx context.Context, configuration *unstructured.Unstructured, port int32) error {
	service := applycorev1.Service(trainingOperator, trainingOperatorNamespace).
		WithSpec(applycorev1.ServiceSpec().WithType(corev1.ServiceTypeExternalName).WithExternalName("localhost"))
	if _, err := t.client.CoreV1().Services(trainingOperatorNamespace).Apply(ctx, service, applied); err != nil {
		return err
	}
	webhooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	for _, w := range webhooks {
		called, _, _ := unstructured.NestedMap(w.(map[string]any), "clientConfig", "service")
		called["name"], called["namespace"], called["port"] = trainingOperator, trainingOperatorNamespace, int64(port)
		w.(map[string]any)["clientConfig"] = map[string]any{"service": called}
	}
	configuration.Object["webhooks"] = webhooks
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
	secret, err := t.client.CoreV1().Secrets(trainingOperatorNamespace).Get(ctx, trainingOperatorSecret, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, name := range []string{corev1.TLSPrivateKeyKey, corev1.TLSCertKey} {
		if len(secret.Data[name]) == 0 {
			return fmt.Errorf("its Secret has no %s", name)
		}
		if err := writeNew(filepath.Join(t.cluster.Dir(), trainingOperator, serving, name), secret.Data[name]); err != nil {
			return err
		}
	}
	return writeNew(mountedCertificate, nil)
}

// writeNew writes a file, and the folders that it is in, unless it is there.
func writeNew(name string, content []byte) error {
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o600)
}

// removeIfEmpty removes a file without content, and the folders that are empty
// without it.
func removeIfEmpty(name string) {
	if info, err := os.Stat(name); err != nil || info.Size() > 0 {
		return
	}
	_ = os.Remove(name)
	_ = os.Remove(filepath.Dir(name))
	_ = os.Remove(filepath.Dir(filepath.Dir(name)))
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
