package doctor

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tideline-io/tideline/internal/platform/gang"
)

func TestHyperNodesThatVolcanoDoesNotLookAtAreSaid(t *testing.T) {
	g := NewWithT(t)
	known := runtime.NewScheme()
	g.Expect(gang.AddToScheme(known)).To(Succeed())
	g.Expect(scheme.AddToScheme(known)).To(Succeed())
	shipped, err := os.ReadFile("../../../config/volcano/volcano-scheduler.conf")
	g.Expect(err).NotTo(HaveOccurred())
	rack := gang.NewHyperNode()
	rack.SetName("rack")
	for conf, says := range map[string]string{
		"actions: allocate\ntiers: []\n": "WARN  There are HyperNodes (1), and Volcano's configuration has no plugin " +
			"network-topology-aware, so that trainings with spec.networkTopology go anywhere.\n      -> Have the line - name: " +
			"network-topology-aware in ConfigMap volcano-system/volcano-scheduler-configmap, or apply config/volcano:\n" +
			"      $ kubectl apply -k config/volcano\n",
		string(shipped): "OK    Volcano places trainings with spec.networkTopology by HyperNodes (1).\n",
	} {
		c := fake.NewClientBuilder().WithScheme(known).WithObjects(rack, schedulerConf(conf)).Build()
		f := healthy()
		g.Expect(gatherHyperNodes(t.Context(), c, &f)).To(Succeed())
		g.Expect(gatherVolcano(t.Context(), c, &f)).To(Succeed())
		f.SchedulerObstacles = nil // Another finding says them.
		text, wrong := screen(t, f)
		g.Expect(wrong).To(BeZero(), "it may be meant")
		g.Expect(text).To(ContainSubstring(says))
	}
	f := healthy()
	g.Expect(gatherHyperNodes(t.Context(), fake.NewClientBuilder().WithScheme(known).Build(), &f)).To(Succeed())
	text, _ := screen(t, f)
	g.Expect(text).NotTo(ContainSubstring("HyperNode"), "a cluster without any has no use for the plugin")
}

func schedulerConf(conf string) client.Object {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: gang.SchedulerConfigMap.Namespace, Name: gang.SchedulerConfigMap.Name},
		Data:       map[string]string{"volcano-scheduler.conf": conf},
	}
}
