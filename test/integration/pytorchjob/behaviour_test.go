package pytorchjob

import (
	"cmp"
	"strings"
	"time"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/test/testutil"
)

// A behaviour is what becomes of a job when something happens to it.
type behaviour struct {
	what string
	job  *kubeflowv1.PyTorchJob
	// room is how many GPUs there are. By default it is more than enough, and things happen when all pods run.
	room  int64
	event func(*side)
	// theirs and ours are what becomes of the job with training-operator, and with Tideline.
	theirs, ours string
	// why they are not the same; empty when they are.
	why string
}

// lasts is how long an outcome must last: several reconciles of both.
const lasts = 2 * time.Second

var _ = Describe("Behaviour", func() {
	for _, b := range behaviours {
		It(b.what, func() {
			if b.theirs == b.ours {
				Expect(b.why).To(BeEmpty(), "no reason is given where nothing differs")
			} else {
				Expect(b.why).NotTo(BeEmpty(), "a reason is given for the difference")
			}
			theirs, ours := submit(b.job, cmp.Or(b.room, 16))
			outcomes := map[*side]string{theirs: b.theirs, ours: b.ours}
			before := map[*side]map[int]types.UID{}
			for _, s := range []*side{theirs, ours} {
				if b.room > 0 {
					continue
				}
				Eventually(s.running).Should(HaveLen(pods(b.job)), "all pods run")
				before[s] = s.uids()
				if b.event != nil {
					b.event(s)
				}
			}
			for s, outcome := range outcomes {
				Eventually(s.outcome).WithArguments(before[s]).Should(Equal(outcome), "with Tideline: %t", s.ours)
			}
			for s, outcome := range outcomes {
				Consistently(s.outcome).WithArguments(before[s]).WithTimeout(lasts).Should(Equal(outcome), "with Tideline: %t", s.ours)
			}
		})
	}
})

// exits has the training container of a rank exit with each of the codes, with other last words each time, and waits between
// two until the first was noticed.
func exits(rank int, codes ...int) func(*side) {
	return func(s *side) {
		GinkgoHelper()
		last := len(codes) - 1
		if limit := s.given.Spec.RunPolicy.BackoffLimit; !s.ours && limit != nil && restartsInPlace(s.pod(rank)) {
			last = min(last, int(*limit)-1) // Training-operator deletes the pods then.
		}
		for n, code := range codes {
			before := s.pod(rank)
			s.exit(rank, code, "last words "+strings.Repeat("x", n))
			if n == last {
				return
			}
			if s.ours {
				Eventually(s.Fetch(jobName)).Should(testutil.HaveRestarts(n+1), "the failure is counted")
			} else if !restartsInPlace(before) {
				Eventually(s.uids).Should(HaveKeyWithValue(rank, Not(Equal(before.UID))), "the pod is created anew")
			}
			Eventually(s.running).Should(HaveLen(pods(s.given)), "all pods run")
		}
	}
}

func restartsInPlace(pod *corev1.Pod) bool {
	return pod.Spec.RestartPolicy != corev1.RestartPolicyNever
}

// exitsAlike has the training container of a Worker exit with 1 twice for the same reason.
func exitsAlike(s *side) {
	GinkgoHelper()
	for n := range 2 {
		if s.ours {
			Eventually(s.Fetch(jobName)).Should(testutil.HaveRestarts(n), "the failure before is counted")
		}
		s.exit(1, 1, "FileNotFoundError: /data/train.csv")
	}
}

// succeed has these ranks succeed, one after another.
func succeed(ranks ...int) func(*side) {
	return func(s *side) {
		GinkgoHelper()
		for _, rank := range ranks {
			s.exit(rank, 0, "")
		}
	}
}

// evicted does to a Worker what a kubelet does when its node runs out of memory.
func evicted(s *side) {
	GinkgoHelper()
	s.setStatus(s.pod(1), map[string]any{"phase": corev1.PodFailed, "reason": "Evicted",
		"conditions": []any{disruption(corev1.PodReasonTerminationByKubelet)}})
}

// drained does to a Worker what `kubectl drain` does.
func drained(s *side) {
	GinkgoHelper()
	s.setStatus(s.pod(1), map[string]any{"conditions": []any{disruption("EvictionByEvictionAPI")}})
	s.remove(1)
}

// deleted deletes the pod of a rank.
func deleted(rank int) func(*side) { return func(s *side) { s.remove(rank) } }

// disruption is the condition of a pod that leaves for no fault of its own.
func disruption(reason string) map[string]any {
	return map[string]any{"type": corev1.DisruptionTarget, "status": corev1.ConditionTrue, "reason": reason,
		"lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}
}
