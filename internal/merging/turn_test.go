package merging

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/tideline-io/tideline/test/testutil/environ"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/quota/admission"
)

// turns is how the simulator's arbiter decides at caps.
type turns struct {
	// silent is true while it gives no answers.
	silent bool
	grants admission.Grants
	// trainings are of the profile of the first merge.
	trainings []admission.Claimant
}

// decideTurns answers the merges that ask, all of them of one profile.
func (w *simulator) decideTurns() map[*merger]admission.Turn {
	answers := map[*merger]admission.Turn{}
	if len(w.jobs) == 0 || w.jobs[0].profile == nil || w.turns.silent {
		return answers
	}
	claimants := append([]admission.Claimant{}, w.turns.trainings...)
	for _, m := range w.jobs {
		if m.profile == nil {
			continue
		}
		if c := ClaimantOf(m.object, m.profile, w.config); c != nil {
			claimants = append(claimants, *c)
		}
	}
	var decided map[admission.Key]admission.Turn
	decided, w.turns.grants = admission.AdmitJobs(
		admission.LimitsOf(w.jobs[0].profile), claimants, nil, w.turns.grants, w.now)
	for _, m := range w.jobs {
		answers[m] = decided[admission.Key{NamespacedName: types.NamespacedName{Namespace: "ads", Name: m.object.Name}, Merge: true}]
	}
	for i := range w.turns.trainings {
		if c := &w.turns.trainings[i]; decided[c.Job].Admitted {
			c.Asks = false
		}
	}
	return answers
}

// checkCaps holds users to the caps of their profile.
func (w *simulator) checkCaps() {
	w.t.Helper()
	held := map[string]int64{}
	for _, c := range w.turns.trainings {
		if !c.Asks {
			held[c.User] += c.Core["nvidia.com/gpu"]
		}
	}
	for _, m := range w.jobs {
		for _, p := range m.pods {
			q := m.object.Spec.Template.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]
			if !p.HasEnded() && !p.Terminating {
				held[m.object.Spec.Owner] += q.MilliValue()
			}
		}
		if m.profile == nil || m.profile.Spec.Caps == nil {
			continue
		}
		for _, c := range m.profile.Spec.Caps.PerUser {
			if got := held[m.object.Spec.Owner]; got > c.Max.MilliValue() {
				w.t.Fatalf("%s holds %d thousandths of GPUs, more than %s", m.object.Spec.Owner, got, &c.Max)
			}
		}
	}
}

// train is a training of alice's that holds so many GPUs.
func train(gpus int64) admission.Claimant {
	return admission.Claimant{
		Job: admission.Key{NamespacedName: types.NamespacedName{Namespace: "ads", Name: "a"}}, User: "alice", Ask: "training",
		Core: admission.MilliAmounts{"nvidia.com/gpu": 1000 * gpus}, Created: morning.Add(-time.Hour),
	}
}

// cappedLine is a pool with much room and merges of these owners, each of 4 to 8 pods of 2 GPUs, in a profile that lets a user
// hold so many GPUs.
func cappedLine(w *simulator, most string, owners ...string) []*merger {
	var all []*merger
	caps := v1beta1.ProfileCaps{PerUser: gpuCap(most)}
	first := cappedMerge(w, caps)
	first.object.Spec.Owner = owners[0]
	for i, owner := range owners[1:] {
		m := w.add(fmt.Sprintf("b%d", i), func(s *v1beta1.MergeJobSpec) {
			s.Owner, s.MaxReplicas, s.Template = owner, 8, *first.object.Spec.Template.DeepCopy()
		}).full(w, 11*time.Hour)
		m.profile = first.profile
		all = append(all, m)
	}
	return append([]*merger{first}, all...)
}

func TestMergesOfAUserTogetherStayBelowACap(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 100)
	all := cappedLine(w, "12", "alice", "alice", "alice", "bob")
	w.settle()
	g.Expect(all[0].status().Run.MaxReplicas).To(Equal(int32(6)), "the first has what the cap leaves")
	g.Expect(all[3].placed()).To(BeTrue(), "and somebody else's passes those that wait")
	g.Expect(all[1].status().Run).To(BeNil())
	g.Expect(all[1].status().Summary).To(Equal("Queued (at a cap)"))
	g.Expect(all[1].status().Reason).To(Equal(v1beta1.ReasonQuotaExceeded))
	g.Expect(all[1].status().Message).To(Equal("Place 1 of 2 in the line of pool tideline-merge. alice may hold at most 12 " +
		"nvidia.com/gpu (profile ads). 12 nvidia.com/gpu in use, and the job asks for 8 nvidia.com/gpu. The job starts by itself " +
		"when enough is released. Until then it keeps its place and lets other merges pass."))
	g.Expect(all[2].status().Message).To(Equal("Place 2 of 2 in the line of pool tideline-merge. b0 has the same owner and waits " +
		"at a cap of profile ads; this merge follows it, and lets others pass meanwhile."))

	w.merge(all[0])
	w.settle()
	g.Expect(all[1].placed()).To(BeTrue(), "it starts when the first has ended")
	g.Expect(all[1].status().TurnTime).To(BeNil())
	g.Expect(all[2].status().Reason).To(Equal(v1beta1.ReasonQuotaExceeded))
}

func TestMergesShareACapWithTrainings(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 100)
	w.turns.trainings = []admission.Claimant{train(6)}
	m := cappedLine(w, "12", "alice")[0]
	w.settle()
	g.Expect(m.status().Message).To(ContainSubstring("6 nvidia.com/gpu in use, and the job asks for 8 nvidia.com/gpu."))
	w.turns.trainings = []admission.Claimant{train(2)}
	w.settle()
	g.Expect(m.placed()).To(BeTrue())
	g.Expect(m.status().Run.MaxReplicas).To(Equal(int32(5)), "the training holds two of the twelve GPUs")
}

func TestAMergeThatWaitsAtACapKeepsItsTurnBeforeYoungerTrainings(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 100)
	younger := train(4)
	younger.Job.Name, younger.Asks, younger.Ask, younger.Created = "younger", true, "younger", morning.Add(time.Minute)
	w.turns.trainings = []admission.Claimant{train(6)}
	m := cappedLine(w, "12", "alice")[0]
	w.settle()
	w.turns.trainings = append(w.turns.trainings, younger)
	w.settle()
	g.Expect(w.turns.trainings[1].Asks).To(BeTrue(), "it would fit, and the merge waits before it")
	w.turns.trainings[0] = train(0)
	w.settle()
	g.Expect(m.placed()).To(BeTrue())
	g.Expect(m.status().Run.MaxReplicas).To(Equal(int32(4)), "nothing grows where a gang waits")
	g.Expect(w.turns.trainings[1].Asks).To(BeFalse(), "which has the rest")
}

func TestAMergeThatCannotUseItsTurnHoldsUpNoTraining(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 100)
	w.turns.trainings = []admission.Claimant{train(6)}
	m := cappedLine(w, "12", "alice")[0]
	w.settle()
	g.Expect(m.status().TurnTime).NotTo(BeNil())
	m.store.trouble = &Trouble{Reason: v1beta1.ReasonStoreForbidden, Message: "No."}
	w.pass(time.Minute)
	g.Expect(m.status().TurnTime).To(BeNil(), "its store cannot be read")
	m.store.trouble = nil
	w.pass(time.Minute)
	g.Expect(m.status().TurnTime).NotTo(BeNil())
	closed := w.observed()
	closed.QueueState = "Closed"
	g.Expect(Plan(closed, w.now).Jobs[0].Status.TurnTime).To(BeNil(), "its pool takes no gangs")
}

func TestARunInTheQueueOfItsProfileCountsForTheCapability(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 100)
	m := cappedLine(w, "12", "alice")[0]
	w.settle()
	g.Expect(ClaimantOf(m.object, m.profile, w.config).InQueue).To(BeFalse())
	m.profile.Name = m.status().Pool
	g.Expect(ClaimantOf(m.object, m.profile, w.config).InQueue).To(BeTrue())
}

func TestTheLineWaitsSecondsForTheAnswerOfACap(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 100)
	w.turns.silent = true
	all := cappedLine(w, "12", "alice", "bob")
	all[1].profile = nil
	w.settle()
	g.Expect(all[0].status().TurnTime.Time).To(Equal(w.now))
	g.Expect(all[1].status().Run).To(BeNil(), "the line waits for the answer")
	g.Expect(w.plan().RequeueAfter).To(Equal(turnPatience))
	w.pass(turnPatience)
	g.Expect(all[1].placed()).To(BeTrue(), "not longer")
	w.turns.silent = false
	w.settle()
	g.Expect(all[0].placed()).To(BeTrue())
}

// passedLine is a pool in which alice's merge waits at a cap, and bob's has passed it and asks for a place that there is not.
func passedLine(w *simulator) []*merger {
	w.turns.trainings = []admission.Claimant{train(12)}
	all := cappedLine(w, "12", "alice", "bob")
	all[1].unplaceable = true
	w.settle()
	return all
}

func TestAGrantThatCameWhileAnotherAskedIsAskedForAnew(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 8)
	all := passedLine(w)
	g.Expect(all[1].status().Reason).To(Equal(v1beta1.ReasonAsking), "it passed alice's")
	w.turns.trainings = nil
	w.settle() // Now alice's has a grant, which it cannot use.
	w.pass(turnPatience + time.Second)
	g.Expect(all[0].status().Run).To(BeNil())
	g.Expect(all[0].status().TurnTime).To(BeNil(), "it asks no longer, so that trainings of its owner do not wait for it")
	w.pass(time.Hour)
	g.Expect(all[0].status().TurnTime).To(BeNil(), "as long as the other one asks")
	all[1].unplaceable = false
	w.settle()
	g.Expect(all[0].placed()).To(BeTrue())
}

func TestAMergeAtACapGoesOnAskingWhileAnotherAsksForItsPlace(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 8)
	all := passedLine(w)
	w.pass(2 * turnPatience)
	g.Expect(all[1].status().Reason).To(Equal(v1beta1.ReasonAsking))
	g.Expect(all[0].status().TurnTime).NotTo(BeNil(), "younger trainings of its owner must not overtake it")
	g.Expect(all[0].status().Reason).To(Equal(v1beta1.ReasonQuotaExceeded))
}

func TestRandomMergesAndTrainingsOfUsersStayBelowTheirCaps(t *testing.T) {
	for seed := range environ.Number(t, "TIDELINE_SEEDS", 6) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 28))
			w := newSimulator(t, 30)
			all := cappedLine(w, strconv.Itoa(8+4*r.IntN(4)), "alice", "bob", "alice", "bob", "alice")
			started := map[*merger]bool{}
			for range 60 {
				switch m := all[r.IntN(len(all))]; r.IntN(6) {
				case 0:
					c := train(int64(1 + r.IntN(6)))
					c.Job.Name, c.Asks, c.Created = strconv.FormatInt(w.now.Unix(), 10), true, w.now
					c.Ask, c.User = c.Job.Name, []string{"alice", "bob"}[r.IntN(2)]
					w.turns.trainings = append(w.turns.trainings, c)
				case 1:
					w.turns.trainings = w.turns.trainings[min(len(w.turns.trainings), r.IntN(3)):]
				case 2:
					m.object.Spec.Suspend = !m.object.Spec.Suspend
					m.object.Generation++
				case 3:
					if m.placed() && m.status().Phase == v1beta1.MergeRunning {
						started[m] = true
						w.merge(m)
						m.store.increments = append(m.store.increments, fmt.Sprintf("%06d", len(m.store.increments)+1))
					}
				}
				w.pass(time.Duration(1+r.IntN(600)) * time.Second)
			}
			w.turns.trainings = nil
			for _, m := range all {
				if m.object.Spec.Suspend {
					m.object.Spec.Suspend = false
					m.object.Generation++
				}
			}
			for range 100 {
				for _, m := range all {
					if m.placed() && m.status().Phase == v1beta1.MergeRunning {
						started[m] = true
						w.merge(m)
					}
				}
				w.pass(30 * time.Minute)
			}
			NewWithT(t).Expect(started).To(HaveLen(len(all)), "each had its turn")
		})
	}
}
