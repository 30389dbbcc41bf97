package integration

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
)

// makeReady does what a kubelet does once a worker's containers run and are ready.
func makeReady(s *testutil.Scenario, job string, i int) { //nolint:unparam // as all that kubelets do to a worker of a job
	GinkgoHelper()
	s.PatchStatus(job, i, `"phase":"Running",`+
		`"conditions":[{"type":"Ready","status":"True"},{"type":"ContainersReady","status":"True"}]`)
}

// reject does what a kubelet does that does not take worker i's pod: no container of it ever runs.
func reject(s *testutil.Scenario, job string, i int, reason, message string) {
	GinkgoHelper()
	s.PatchStatus(job, i, fmt.Sprintf(`"phase":"Failed","reason":%q,"message":%q`, reason, message))
}

// restartContainer does what a kubelet does when the container exits with an error and restarts where it is, for the nth time.
func restartContainer(s *testutil.Scenario, job string, i, times, exitCode int, lastWords string) {
	GinkgoHelper()
	s.PatchStatus(job, i, fmt.Sprintf(`"containerStatuses":[{"name":"trainer","image":"trainer","imageID":"","ready":true,`+
		`"restartCount":%d,"state":{"running":{}},"lastState":{"terminated":{"exitCode":%d,"reason":"Error","message":%q}}}]`,
		times, exitCode, lastWords))
}

// cannotStart does what a kubelet does when a container waits for something that is missing.
func cannotStart(s *testutil.Scenario, job string, i int, reason, message string) {
	GinkgoHelper()
	s.PatchStatus(job, i, fmt.Sprintf(`"containerStatuses":[{"name":"trainer","image":"trainer","imageID":"","ready":false,`+
		`"restartCount":0,"state":{"waiting":{"reason":%q,"message":%q}}}]`, reason, message))
}

// silence does what the control plane does once a node has not answered since then.
func silence(s *testutil.Scenario, node string, since time.Time) {
	GinkgoHelper()
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	// KWOK makes a node ready again that is not, if it has KWOK's mark.
	s.Patch(o, `{"metadata":{"annotations":{"`+testutil.SimulatedAnnotation+`":null}}}`)
	patch := client.RawPatch(types.StrategicMergePatchType, fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready",`+
		`"status":"Unknown","reason":"NodeStatusUnknown","lastTransitionTime":%q}]}}`, since.UTC().Format(time.RFC3339)))
	Expect(s.Client.Status().Patch(s.Context(), o, patch)).To(Succeed(), "node %s is silenced", node)
}

// loseNode does what the control plane does with worker i's pod when its node has not answered for minutes: it asks the pod to
// leave, which no kubelet hears.
func loseNode(s *testutil.Scenario, job string, i int) {
	GinkgoHelper()
	s.Patch(s.Worker(job, i), `{"metadata":{"annotations":{"`+cluster.LingerAnnotation+`":"true"}}}`)
	s.PatchStatus(job, i, fmt.Sprintf(`"conditions":[{"type":"DisruptionTarget","status":"True","reason":"DeletionByTaintManager",`+
		`"lastTransitionTime":%q}]`, time.Now().UTC().Format(time.RFC3339)))
	s.DeleteWorker(job, i)
}
