package training

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/quota/admission"
)

// capped is the profile of [profile] that lets a user hold four GPUs.
func capped() *v1beta1.ResourceQuotaProfile {
	p := profile()
	p.Spec.Caps = &v1beta1.ProfileCaps{
		PerUser: []v1beta1.ResourceCap{{Resource: "nvidia.com/gpu", Max: resource.MustParse("4")}},
	}
	return p
}

func TestAJobWaitsForItsTurnUnderALimit(t *testing.T) {
	limit := admission.Limit{Scope: admission.ScopeUser, Resource: "nvidia.com/gpu", Max: 4000}
	team := admission.Limit{Scope: admission.ScopeQueue, Resource: "nvidia.com/gpu", Model: "A100", Max: 8000}
	const says = "alice may hold at most 4 nvidia.com/gpu (profile ads). 3 nvidia.com/gpu in use, and the job asks for 2 " +
		"nvidia.com/gpu."
	for name, c := range map[string]struct {
		blocked admission.Blocked
		stalled bool
		message string
	}{
		"the first": {blocked: admission.Blocked{Limit: limit, User: "alice", Used: 3000, Asked: 2000, Place: 1}, message: says +
			" The job starts by itself when enough is released."},
		"one behind": {
			blocked: admission.Blocked{
				Limit: limit, User: "alice", Used: 3000, Asked: 2000, Place: 2,
				Behind: admission.Key{NamespacedName: types.NamespacedName{Namespace: "ads", Name: "x"}},
			},
			message: says + " Position 2 in the queue for this limit, after ads/x.",
		},
		"one for which surplus leaves": {
			blocked: admission.Blocked{Limit: limit, User: "alice", Used: 3000, Asked: 2000, Place: 1, Leaving: true},
			message: says + " Surplus workers are leaving to make room for it.",
		},
		"one of a team": {
			blocked: admission.Blocked{Limit: team, Used: 7000, Asked: 2000, Place: 1},
			message: "All jobs together may hold at most 8 nvidia.com/gpu (A100) (profile ads). 7 nvidia.com/gpu (A100) in use, and " +
				"the job asks for 2 nvidia.com/gpu (A100). The job starts by itself when enough is released.",
		},
		"one that asks for half a device": {
			blocked: admission.Blocked{Limit: limit, User: "alice", Used: 3750, Asked: 500, Place: 1},
			message: "alice may hold at most 4 nvidia.com/gpu (profile ads). 3.75 nvidia.com/gpu in use, and the job asks for 0.5 " +
				"nvidia.com/gpu. The job starts by itself when enough is released.",
		},
		"one of a user without hours": {
			blocked: admission.Blocked{
				Limit: admission.Limit{Scope: admission.ScopeHours, Max: 2 * admission.Hour, Window: 168 * time.Hour},
				User:  "alice", Used: 9_000_000,
			},
			message: "alice may use 2.0 hours of accelerators in 168h (profile ads) and used 2.5 hours. The job starts by itself " +
				"when enough of that use is older than 168h.",
		},
		"one that is too large": {
			blocked: admission.Blocked{Limit: limit, User: "alice", Asked: 6000, Never: true}, stalled: true,
			message: "The job asks for at least 6 nvidia.com/gpu, and profile ads lets a user hold at most 4 nvidia.com/gpu. Lower " +
				"minReplicas, or ask an administrator to raise the limit.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 2, 4)
			w.o.Profile, w.o.Turn = capped(), admission.Turn{Blocked: &c.blocked}
			w.settle()
			g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonQuotaExceeded))
			g.Expect(w.status().Message).To(Equal(c.message))
			stalled := map[bool]string{true: "True/QuotaExceeded", false: "absent"}[c.stalled]
			g.Expect(condition(w, v1beta1.ConditionStalled)).To(Equal(stalled))
			g.Expect(condition(w, v1beta1.ConditionScheduled)).To(Equal("False/QuotaExceeded"))
			g.Expect(w.o.Core).To(BeNil())
			g.Expect(w.changes).To(BeZero(), "nothing is created before")

			w.o.Turn = admission.Turn{Ask: admission.AskOf(w.o.Job), Admitted: true, Surplus: 1}
			w.trains()
			g.Expect(w.indices()).To(Equal([]int32{0, 1, 2}), "it grows as far as the limits leave")
			g.Expect(condition(w, v1beta1.ConditionFullSize)).To(Equal("False/QuotaExceeded"))
			g.Expect(w.status().Message).To(Equal("3 of 4 workers ready. Cannot grow: the limits of profile ads allow it 1 worker " +
				"beyond its core now. It grows by itself once they allow more."))
			w.o.Turn.Capped = &admission.Blocked{Limit: limit, User: "alice", Used: 3000, Behind: admission.Key{
				NamespacedName: types.NamespacedName{Namespace: "ads", Name: "x"},
			}}
			g.Expect(w.trains().status().Message).To(Equal("3 of 4 workers ready. Cannot grow: alice may hold at most 4 nvidia.com/gpu " +
				"(profile ads) and holds 3 nvidia.com/gpu; ads/x waits for the rest."))
			w.o.Turn.Surplus = 2
			g.Expect(w.trains().indices()).To(Equal([]int32{0, 1, 2, 3}))
		})
	}
}

func TestAJobOfWhichNothingIsDecidedYetCreatesNothing(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4)
	w.o.Profile = capped()
	w.settle()
	g.Expect(w.status().Attempt).NotTo(BeNil(), "it asks for its turn")
	g.Expect(w.changes).To(BeZero())
	g.Expect(w.written).To(Equal(1), "and tells nothing yet")
}

func TestAGangThatIsThereStaysWhateverTheLimits(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).trains()
	w.o.Profile = capped()
	w.o.Turn = admission.Turn{Blocked: &admission.Blocked{Never: true}}
	before := w.indices()
	w.settle()
	g.Expect(w.indices()).To(Equal(before))
	w.deletePod(1).settle()
	g.Expect(w.indices()).To(ContainElement(int32(1)), "its core is replaced")
}

func TestALargerAttemptAsksForItsTurnAgain(t *testing.T) {
	for name, placed := range map[string]bool{"before it is placed": false, "when it begins anew": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 2, 4)
			w.o.Profile = capped()
			w.settle()
			w.o.Turn = admission.Turn{Ask: admission.AskOf(w.o.Job), Admitted: true}
			if w.settle(); placed {
				w.trains()
			}
			w.o.Job.Spec.MinReplicas, w.o.Job.Spec.Elasticity.RangeUpdate = 4, v1beta1.RangeUpdateRestart
			w.o.Job.Generation++
			w.settle()
			g.Expect(w.status().Attempt.MinReplicas).To(Equal(int32(4)))
			g.Expect(w.o.Core).To(BeNil(), "the old turn is not that of the larger attempt")
			g.Expect(w.indices()).To(BeEmpty())
			w.o.Turn = admission.Turn{Ask: admission.AskOf(w.o.Job), Admitted: true}
			g.Expect(w.trains().indices()).To(HaveLen(4))
		})
	}
}

func TestAJobThatIsRefusedIsSoUnderALimitToo(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4)
	w.o.Profile, w.refuses = capped(), "Cannot create pod ctr-worker-0: violates PodSecurity."
	w.settle()
	w.o.Turn = admission.Turn{Ask: admission.AskOf(w.o.Job), Admitted: true}
	w.settle()
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonRejected))
	w.o.Turn = admission.Turn{}
	written := w.written
	w.settle()
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonRejected), "it stands in no line meanwhile")
	g.Expect(w.written).To(Equal(written), "and nothing is written again and again")
	g.Expect(w.o.Core).To(BeNil())
}

func TestWhatIsSaidOfGrowthStandsUntilTheLimitsAreKnown(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4)
	w.o.Profile = capped()
	w.settle()
	w.o.Turn = admission.Turn{Ask: admission.AskOf(w.o.Job), Admitted: true, Surplus: 1}
	w.trains()
	said, written := w.status().Message, w.written
	w.o.Turn = admission.Turn{}
	w.settle()
	g.Expect([]any{w.status().Message, w.written}).To(Equal([]any{said, written}), "as after a restart")
}
