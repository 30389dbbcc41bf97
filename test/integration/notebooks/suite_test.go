// Package notebooks shows which notebooks are stopped because they do not use their accelerators, on a real API server, a real
// Volcano, a real Prometheus and with Kubeflow's own controller, with the operator as a real process.
package notebooks

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/notebookcontroller"
	"github.com/tideline-io/tideline/test/testutil/openmetrics"
	"github.com/tideline-io/tideline/test/testutil/prometheus"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

func TestNotebooks(t *testing.T) {
	RegisterFailHandler(Fail)
	suite.Defaults()
	RunSpecs(t, "Notebooks")
}

const (
	// stopped is Kubeflow's annotation on a Notebook.
	stopped = "kubeflow-resource-stopped"
	// age is for how long all pods seem to have been there.
	age = 30 * time.Hour
	// soon is within a few rounds of the operator's questions to Prometheus, which it asks each minute, and about its rights.
	soon = 4 * time.Minute
)

// fixture is what the specs share: namespace ads, whose profile has notebooks stopped, and web, whose profile does not.
type fixture struct {
	*testutil.Installation

	ads, web *testutil.Scenario
}

// begin starts everything but the operator.
func begin(ctx context.Context) *fixture {
	GinkgoHelper()
	in := suite.Bare(ctx, cluster.Options{GPUNodes: -1, SchedulePeriod: 100 * time.Millisecond})
	Expect(in.Install(ctx)).To(Succeed(), "Tideline is installed")
	Expect(notebookcontroller.Start(ctx, in.Cluster)).To(Succeed(), "Kubeflow's controller runs")
	f := &fixture{Installation: in, ads: in.NewScenario(GinkgoT(), "ads", 6), web: in.NewScenario(GinkgoT(), "web", 1)}
	f.ads.Create(testutil.Profile("ads").With(func(spec *v1beta1.ResourceQuotaProfileSpec) {
		spec.StopIdleAfter = &metav1.Duration{Duration: 26 * time.Hour}
	}).Obj(), testutil.Profile("web").Obj())
	f.ads.Join("ads")
	f.web.Join("web")
	return f
}

// operate starts the operator beside a Prometheus that knows these devices.
func (f *fixture) operate(ctx context.Context, devices ...openmetrics.Subject) {
	GinkgoHelper()
	server, err := prometheus.Start(ctx, GinkgoWriter, func(to io.Writer) error {
		return openmetrics.Write(to, time.Minute, devices...)
	})
	Expect(err).NotTo(HaveOccurred(), "Prometheus knows the past")
	DeferCleanup(server.Stop)
	folder := GinkgoT().TempDir()
	configuration := filepath.Join(folder, "configuration.yaml")
	Expect(os.WriteFile(configuration, fmt.Appendf(nil, `apiVersion: config.tideline.io/v1alpha1
kind: Configuration
ledger: {file: %q, userLabel: example.com/user}
prometheus: {url: %q, intervalSeconds: 60}
`, filepath.Join(folder, "ledger.db"), server.URL), 0o600)).To(Succeed())
	Expect(f.Operate(ctx, testutil.OperatorOptions{Args: []string{"--config=" + configuration}})).To(Succeed(), "the operator runs")
}

// active is the device of a pod, in use for a share of the time since it began, and an hour from now too.
func active(s *testutil.Scenario, pod string, share float64) openmetrics.Subject {
	now := time.Now().Truncate(time.Second)
	return openmetrics.Device{
		Namespace: s.Namespace, Pod: pod, UUID: "GPU-" + s.Namespace + "-" + pod, Begin: now.Add(-age), End: now.Add(time.Hour),
		Active: openmetrics.Always(share), MemoryMiB: openmetrics.Always(4096),
	}
}

// podSpec is of a pod with so many GPUs.
func podSpec(s *testutil.Scenario, container string, gpus int64) corev1.PodSpec {
	return corev1.PodSpec{
		SchedulerName: "volcano", NodeSelector: map[string]string{testutil.PoolLabel: s.Namespace},
		Containers: []corev1.Container{{Name: container, Image: "notebook", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{testutil.GPUResource: *resource.NewQuantity(gpus, resource.DecimalSI)},
		}}},
	}
}

// notebook creates a Notebook of a user, and waits until its pod runs.
func notebook(s *testutil.Scenario, name, user string, gpus int64) {
	GinkgoHelper()
	s.Create(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubeflow.org/v1beta1", "kind": "Notebook",
		"metadata": map[string]any{
			"namespace": s.Namespace, "name": name, "labels": map[string]any{"example.com/user": user},
		},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"schedulerName": "volcano", "nodeSelector": map[string]any{testutil.PoolLabel: s.Namespace},
			"containers": []any{map[string]any{
				"name": name, "image": "notebook",
				"resources": map[string]any{"limits": map[string]any{string(testutil.GPUResource): gpus}},
			}},
		}}},
	}})
	Eventually(bound(s, name+"-0")).Should(BeTrue(), "Kubeflow's controller runs %s", name)
}

// forge creates a pod that claims to be of a colleague's notebook, by all that whoever creates a pod can write.
func forge(s *testutil.Scenario, name, notebook string) {
	GinkgoHelper()
	set := &unstructured.Unstructured{}
	set.SetAPIVersion("apps/v1")
	set.SetKind("StatefulSet")
	testutil.Get(s, set, notebook)
	s.Create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: name,
			Labels: map[string]string{"statefulset": notebook, "notebook-name": notebook, "example.com/user": "eve"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "StatefulSet", Name: notebook, UID: set.GetUID(), Controller: ptr.To(true),
			}},
		},
		Spec: podSpec(s, "forged", 1),
	})
	Eventually(bound(s, name)).Should(BeTrue(), "%s runs", name)
}

// makeOld has all pods of a namespace seem to be as old as age.
func makeOld(s *testutil.Scenario) {
	GinkgoHelper()
	pods := &corev1.PodList{}
	Expect(s.Client.List(s.Context(), pods, client.InNamespace(s.Namespace))).To(Succeed())
	for i := range pods.Items {
		p := &pods.Items[i]
		for j := range p.Status.Conditions {
			p.Status.Conditions[j].LastTransitionTime = metav1.NewTime(time.Now().Add(-age).Truncate(time.Second))
		}
		Expect(s.Client.Status().Update(s.Context(), p)).To(Succeed(), "%s seems to be old", p.Name)
	}
}

// bound tells whether a pod has a node.
func bound(s *testutil.Scenario, pod string) func() (bool, error) {
	return func() (bool, error) {
		p := &corev1.Pod{}
		err := s.Client.Get(s.Context(), client.ObjectKey{Namespace: s.Namespace, Name: pod}, p)
		return p.Spec.NodeName != "" && p.DeletionTimestamp == nil, client.IgnoreNotFound(err)
	}
}

// read is a Notebook as it is.
func read(s *testutil.Scenario, name string) *unstructured.Unstructured {
	GinkgoHelper()
	return testutil.Get(s, blank(), name)
}

// blank is a Notebook without a name.
func blank() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("kubeflow.org/v1")
	o.SetKind("Notebook")
	return o
}

// annotations are those of a Notebook.
func annotations(s *testutil.Scenario, name string) func() (map[string]string, error) {
	return func() (map[string]string, error) {
		o := blank()
		err := s.Client.Get(s.Context(), client.ObjectKey{Namespace: s.Namespace, Name: name}, o)
		return o.GetAnnotations(), err
	}
}

// conditions are those of a profile.
func conditions(s *testutil.Scenario, profile string) func() ([]metav1.Condition, error) {
	return func() ([]metav1.Condition, error) {
		p := &v1beta1.ResourceQuotaProfile{}
		err := s.Client.Get(s.Context(), client.ObjectKey{Name: profile}, p)
		return p.Status.Conditions, err
	}
}
