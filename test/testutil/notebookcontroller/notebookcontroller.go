// Package notebookcontroller runs Kubeflow's notebook-controller on a local cluster.
package notebookcontroller

import (
	"context"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applyrbacv1 "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tideline-io/tideline/test/cluster"
)

// Names in its own installation, and of its program here.
const (
	name      = "notebook-controller"
	namespace = "kubeflow"
)

// Start installs Kubeflow's Notebooks and starts their controller as a process with the role of its own installation. It is built
// the first time. Start returns when it is ready.
func Start(ctx context.Context, c *cluster.Cluster) error {
	programs, err := c.Build(ctx, cluster.NotebookController)
	if err != nil {
		return err
	}
	if err := install(ctx, c, programs); err != nil {
		return err
	}
	kubeconfig := filepath.Join(c.Dir(), name+".kubeconfig")
	if err := c.KubeconfigFor(ctx, namespace, name, kubeconfig); err != nil {
		return err
	}
	var probes string
	_, err = c.StartServer(ctx, cluster.Server{
		Name:    name,
		Program: programs.Program(name),
		Ports:   1,
		Prepare: func(_ context.Context, ports []int) ([]string, error) {
			probes = cluster.Address(ports[0])
			return []string{"--kubeconfig=" + kubeconfig, "--probe-addr=" + probes, "--metrics-addr=0"}, nil
		},
		Ready: func(ctx context.Context) error { return cluster.Healthy(ctx, "http://"+probes+"/readyz") },
	})
	return err
}

// install creates what the controller needs before it starts.
func install(ctx context.Context, c *cluster.Cluster, programs cluster.Built) error {
	objects, err := programs.Objects(cluster.NotebookControllerManifests...)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.GetKind() == "CustomResourceDefinition" {
			err = c.InstallDefinitions(ctx, []*unstructured.Unstructured{o})
		} else {
			o.SetName(name) // Its kustomization gives it a prefix.
			err = c.Apply(ctx, []*unstructured.Unstructured{o})
		}
		if err != nil {
			return err
		}
	}
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return err
	}
	applied := metav1.ApplyOptions{FieldManager: "test", Force: true}
	if _, err := client.CoreV1().Namespaces().Apply(ctx, applycorev1.Namespace(namespace), applied); err != nil {
		return err
	}
	account := applycorev1.ServiceAccount(name, namespace)
	if _, err := client.CoreV1().ServiceAccounts(namespace).Apply(ctx, account, applied); err != nil {
		return err
	}
	binding := applyrbacv1.ClusterRoleBinding(name).
		WithRoleRef(applyrbacv1.RoleRef().WithAPIGroup("rbac.authorization.k8s.io").WithKind("ClusterRole").WithName(name)).
		WithSubjects(applyrbacv1.Subject().WithKind("ServiceAccount").WithNamespace(namespace).WithName(name))
	_, err = client.RbacV1().ClusterRoleBindings().Apply(ctx, binding, applied)
	return err
}
