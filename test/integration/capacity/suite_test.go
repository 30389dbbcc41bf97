// Package capacity holds what the model of capacity says to what a real Volcano does, and shows what people read of it:
// why a job waits, and how much the operator writes while hundreds wait.
package capacity

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

func TestCapacity(t *testing.T) {
	RegisterFailHandler(Fail)
	suite.Defaults()
	RunSpecs(t, "The model of capacity")
}

// One large node that no scenario uses keeps a scenario whose nodes are full from holding up the others.
var shared = suite.New(cluster.Options{GPUNodes: 1, GPUsPerNode: 4096, SchedulePeriod: 100 * time.Millisecond})

// newScenario is a scenario with a queue of its own, so that places in it are known.
func newScenario(name string, gpus ...int64) *testutil.Scenario {
	GinkgoHelper()
	s := shared.World.NewScenario(GinkgoT(), name, gpus...)
	s.UseQueue(s.NewQueue(schedulingv1beta1.QueueSpec{Weight: 1}))
	return s
}

func gpus(n int64) corev1.ResourceList {
	return corev1.ResourceList{testutil.GPUResource: *resource.NewQuantity(n, resource.DecimalSI)}
}
