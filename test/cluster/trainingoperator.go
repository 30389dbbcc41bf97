package cluster

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
)

// Names in training-operator's own installation, and of its program here.
const (
	trainingOperator          = "training-operator"
	trainingOperatorNamespace = "kubeflow"
	trainingOperatorSecret    = "training-operator-webhook-cert"
	trainingOperatorWebhooks  = "validator.training-operator.kubeflow.org"
)

// trainingOperatorManifests are what its kustomizations put together, but for
// what runs it in a cluster.
var trainingOperatorManifests = []string{
	"manifests/base/crds/kubeflow.org_pytorchjobs.yaml",
	"manifests/base/rbac/role.yaml",
	"manifests/base/rbac/cluster-role-binding.yaml",
	"manifests/base/webhook/manifests.yaml",
}

var pyTorchJobs = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "pytorchjobs"}

// StartTrainingOperator installs training-operator for PyTorchJobs, with Volcano
// for their gangs, and starts it as a process with the service account and the
// role of its own installation. It is built the first time. StartTrainingOperator
// returns when its webhook answers.
func (c *Cluster) StartTrainingOperator(ctx context.Context) (err error) {
	part := trainingOperatorPart
	if c.parts[part.name], err = part.build(ctx, c.repo, c.options.Log); err != nil {
		return err
	}
	webhooks, err := c.installTrainingOperator(ctx)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(c.state.path, trainingOperator+".kubeconfig")
	if err := c.KubeconfigFor(ctx, trainingOperatorNamespace, trainingOperator, kubeconfig); err != nil {
		return err
	}
	var probes string
	p, err := c.startServer(ctx, server{
		part:    part,
		program: trainingOperator,
		ports:   2,
		prepare: func(ctx context.Context, ports []int) ([]string, error) {
			probes = address(ports[1])
			return []string{
				"--kubeconfig=" + kubeconfig,
				"--enable-scheme=pytorchjob",
				"--gang-scheduler-name=volcano",
				"--webhook-server-port=" + strconv.Itoa(ports[0]),
				"--health-probe-bind-address=" + probes,
				"--metrics-bind-address=0",
				// Its own default of 20 requests a second is for clusters with other users.
				"--kube-api-qps=500", "--kube-api-burst=500",
			}, c.routeTrainingOperator(ctx, webhooks, int32(ports[0]))
		},
		ready: func(ctx context.Context) error {
			return errors.Join(c.mountTrainingOperatorSecret(ctx), healthy(ctx, "http://"+probes+"/readyz"))
		},
	})
	if err != nil {
		return err
	}
	c.addClient(p)
	removeIfEmpty(mountedCertificate)
	return c.waitFor(ctx, "training-operator's webhook to answer", c.trainingOperatorAnswers, p)
}

// installTrainingOperator creates what training-operator needs before it starts,
// and returns its webhooks.
func (c *Cluster) installTrainingOperator(ctx context.Context) (webhooks *unstructured.Unstructured, err error) {
	objects, err := c.parts[trainingOperatorPart.name].objects(trainingOperatorManifests...)
	if err != nil {
		return nil, err
	}
	namespace := applycorev1.Namespace(trainingOperatorNamespace)
	account := applycorev1.ServiceAccount(trainingOperator, trainingOperatorNamespace)
	secret := applycorev1.Secret(trainingOperatorSecret, trainingOperatorNamespace)
	core := c.client.CoreV1()
	if _, err := core.Namespaces().Apply(ctx, namespace, applyOptions); err != nil {
		return nil, err
	}
	if _, err := core.ServiceAccounts(trainingOperatorNamespace).Apply(ctx, account, applyOptions); err != nil {
		return nil, err
	}
	if _, err := core.Secrets(trainingOperatorNamespace).Apply(ctx, secret, applyOptions); err != nil {
		return nil, err
	}
	for _, o := range objects {
		switch o.GetKind() {
		case "CustomResourceDefinition":
			err = c.installDefinitions(ctx, []*unstructured.Unstructured{o})
		case "ClusterRoleBinding":
			subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
			for _, s := range subjects {
				s.(map[string]any)["namespace"] = trainingOperatorNamespace
			}
			o.Object["subjects"] = subjects
			err = c.apply(ctx, []*unstructured.Unstructured{o})
		case "ValidatingWebhookConfiguration":
			o.SetName(trainingOperatorWebhooks)
			webhooks = o
		default:
			err = c.apply(ctx, []*unstructured.Unstructured{o})
		}
		if err != nil {
			return nil, err
		}
	}
	return webhooks, nil
}

// routeTrainingOperator leads the API server to the webhooks at a port of this
// machine. Its certificate is for the name of its Service, so it is called by
// that name, and the Service stands for localhost.
func (c *Cluster) routeTrainingOperator(ctx context.Context, configuration *unstructured.Unstructured, port int32) error {
	service := applycorev1.Service(trainingOperator, trainingOperatorNamespace).
		WithSpec(applycorev1.ServiceSpec().WithType(corev1.ServiceTypeExternalName).WithExternalName("localhost"))
	if _, err := c.client.CoreV1().Services(trainingOperatorNamespace).Apply(ctx, service, applyOptions); err != nil {
		return err
	}
	webhooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	for _, w := range webhooks {
		called, _, _ := unstructured.NestedMap(w.(map[string]any), "clientConfig", "service")
		called["name"], called["namespace"], called["port"] = trainingOperator, trainingOperatorNamespace, int64(port)
		w.(map[string]any)["clientConfig"] = map[string]any{"service": called}
	}
	configuration.Object["webhooks"] = webhooks
	return c.apply(ctx, []*unstructured.Unstructured{configuration})
}

// training-operator waits for its certificate below /tmp, where it only looks
// whether there is a file, and serves with the one below TMPDIR. So clusters
// share nothing but an empty file, which each makes until its own is ready.
const (
	serving            = "k8s-webhook-server/serving-certs"
	mountedCertificate = "/tmp/" + serving + "/" + corev1.TLSCertKey
)

// mountTrainingOperatorSecret does what a kubelet does: it writes the
// certificate, which training-operator puts into its Secret, to files.
func (c *Cluster) mountTrainingOperatorSecret(ctx context.Context) error {
	secret, err := c.client.CoreV1().Secrets(trainingOperatorNamespace).Get(ctx, trainingOperatorSecret, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, name := range []string{corev1.TLSPrivateKeyKey, corev1.TLSCertKey} {
		if len(secret.Data[name]) == 0 {
			return fmt.Errorf("its Secret has no %s", name)
		}
		if err := writeNew(filepath.Join(c.state.path, trainingOperator, serving, name), secret.Data[name]); err != nil {
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
	return writeFile(name, content, 0o600)
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

// trainingOperatorAnswers tries a PyTorchJob without an image, which the webhook
// refuses and the resource definition does not.
func (c *Cluster) trainingOperatorAnswers(ctx context.Context) error {
	template := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "pytorch"}}}}
	probe := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": pyTorchJobs.GroupVersion().String(),
		"kind":       "PyTorchJob",
		"metadata":   map[string]any{"name": "webhook-probe"},
		"spec":       map[string]any{"pytorchReplicaSpecs": map[string]any{"Worker": map[string]any{"template": template}}},
	}}
	_, err := c.dynamic.Resource(pyTorchJobs).Namespace(metav1.NamespaceDefault).Create(ctx, probe,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil {
		return errors.New("a PyTorchJob without an image was admitted")
	}
	if !strings.Contains(err.Error(), "denied the request") {
		return err
	}
	return nil
}
