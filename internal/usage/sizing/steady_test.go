package sizing

import (
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// steadyTask is a task whose runs each need the same memory. Its days are played as the product plays them: each start is sized
// by what the days before said, a run that is killed begins again at once, and the kill is known by then.
type steadyTask struct {
	need  int64
	ask   Ask
	rules Rules
	// window of the profile, in days.
	window int
	// evidence is how much of a day a day's run counts.
	evidence int64
	kept     map[int]Usage
	// limits at which it was killed: the ledger keeps them beyond the window.
	killed []int64
}

// history is what is known on a day.
func (s *steadyTask) history(today int) History {
	h, part := History{WindowDays: s.window}, Part{Worker, "trainer"}
	for day, u := range s.kept {
		if day >= today-s.window {
			h.Add(part, noon.AddDate(0, 0, day), u)
		}
	}
	for _, limit := range s.killed {
		h.RememberKill(part, limit)
	}
	return h
}

// run plays the run of a day, and returns the last limit that it had.
func (s *steadyTask) run(today int, unavailable bool) int64 {
	for {
		h := s.history(today)
		if unavailable {
			h.Unavailable = "Prometheus does not answer."
		}
		st := SizeRequests([]Ask{s.ask}, h, s.rules, noon.AddDate(0, 0, today))
		s.rules.Before = st
		pod := resized(s.ask, st)
		limit := pod.Containers[0].Resources.Limits.Memory().Value()
		u := Usage{RunSeconds: s.evidence, SeenSeconds: s.evidence, EvidenceSeconds: s.evidence}
		u.CPU.Add(1, 12)
		switch killed := s.need > limit; {
		case killed:
			u.MemoryHeld, u.OOMKills, u.OOMLimit = limit, 1, limit
			s.killed = append(s.killed, limit)
		case float64(s.need) >= 0.95*float64(limit):
			u.MemoryHeld = s.need
		default:
			u.MemoryPeak = s.need
		}
		s.kept[today] = s.kept[today].Merge(u)
		if u.OOMKills == 0 || len(s.killed) > 5 {
			return limit
		}
	}
}

func newSteadyTask(need int64, ask Ask, tierName string, window int) *steadyTask {
	return &steadyTask{need: need, ask: ask, rules: enforce(tierName), window: window, evidence: day, kept: map[int]Usage{}}
}

// What needs 10 Gi and asks for 9.5 Gi is killed once, however often the window has moved on since.
func TestAskingForTooLittleIsKilledOnce(t *testing.T) {
	for _, name := range []string{"exploratory", "small-traffic", "main-traffic"} {
		g := NewWithT(t)
		task := newSteadyTask(10*gib, asking("4", "9728Mi"), name, 7)
		for today := range 60 {
			task.run(today, false)
			g.Expect(len(task.killed)).To(BeNumerically("<=", 1), "%s: killed again on day %d", name, today)
		}
		g.Expect(task.killed).To(Equal([]int64{9728 * mib}), name)
	}
}

// Whatever a task needs, as long as that is steady and at most twice what it asks for: it is killed once at most, though it rests
// for longer than the window, runs for minutes, has limits above its requests, or Prometheus is away.
func TestASteadyNeedIsKilledOnceAtMost(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	c := rand.New(rand.NewPCG(seed, 3))
	for range 400 {
		g := NewWithT(t)
		ask := drawnAsk(c)
		r := ask.Containers[0].Resources
		request := r.Requests.Memory().Value()
		limit := request * (1 + c.Int64N(3)) / (1 + c.Int64N(2))
		limit = max(limit, request)
		r.Limits = corev1.ResourceList{
			corev1.ResourceCPU: r.Requests[corev1.ResourceCPU], corev1.ResourceMemory: toQuantity(limit, Memory),
		}
		ask.Containers[0].Resources = r
		need := 1 + int64(c.Float64()*2*float64(limit-1))
		task := newSteadyTask(need, ask, []string{"exploratory", "small-traffic", "main-traffic"}[c.IntN(3)], 1+c.IntN(14))
		if c.IntN(3) == 0 {
			task.evidence = 20 * 60
		}
		for today := 0; today < 90; today++ {
			if c.IntN(12) == 0 {
				today += c.IntN(30) // a rest
			}
			if c.IntN(10) == 0 {
				task.rules.Before = nil // another job of the task
			}
			granted := task.run(today, c.IntN(15) == 0)
			g.Expect(len(task.killed)).To(BeNumerically("<=", 1), "seed %d: need %d, limit %d, killed at %v, day %d of window %d", seed,
				need, limit, task.killed, today, task.window)
			g.Expect(granted).To(BeNumerically("<=", 2*limit+mib), "seed %d", seed)
		}
		if need > limit {
			g.Expect(task.killed).To(HaveLen(1), "seed %d", seed)
		}
	}
}

// What a task was seen needing beyond its template's limit is kept for it, whoever raised it, and said.
func TestWhatPeaksAboveItsLimitKeepsWhatItNeeds(t *testing.T) {
	g := NewWithT(t)
	ask := asking("4", "9728Mi")
	_, memory := sized(ask, trainer(repeat(aDay(2, 10*gib), 7)...), enforce("small-traffic"))
	g.Expect(memory.Sized.String()).To(Equal("13Gi"))
	g.Expect(memory.Reason).To(Equal(v1beta1.SizedByPeak))
	g.Expect(memory.Message).To(Equal("10Gi peak memory over 7 of 7 days × 1.3 = 13Gi. That is more than the limit of the " +
		"template, so it gets that, and at most twice the request."))

	h := trainer(repeat(aDay(2, 4*gib), 7)...)
	h.RememberKill(Part{Worker, "trainer"}, 9728*mib)
	_, memory = sized(ask, h, enforce("small-traffic"))
	g.Expect(memory.Sized.Value()).To(BeEquivalentTo((9728*12+9)/10*mib), "a kill is remembered beyond the window")
	g.Expect(memory.Reason).To(Equal(v1beta1.SizedByOOM))
	g.Expect(memory.Message).To(ContainSubstring("ran out of memory at a limit of 9.5Gi"))
}
