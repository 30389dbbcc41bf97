package merging

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tideline-io/tideline/test/testutil/environ"

	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
)

// passes is the bound of docs/decisions/0023: how often a merge that merges may pass another whose age goes from a to b
// meanwhile, when its weight grows rho times as fast and its extras are worth d of the other's age; a is more than d.
func passes(a, b, d, rho float64) float64 {
	if rho <= 1 {
		return 1
	}
	return 1 + math.Log((b-d)/(a-d))/math.Log(rho/(rho-1))
}

// overloaded is a pool that has room for one merge at a time, and more to merge than it can.
type overloaded struct {
	o   Observed
	now time.Time
	// passed are the ages of a waiting merge, in seconds, at which another passed it.
	passed map[[2]int][]float64
}

func newOverloaded(c *rand.Rand) *overloaded {
	p := &overloaded{
		o: Observed{Pool: "tideline-merge", Config: config.DefaultConfiguration(), QueueState: gang.QueueOpen}, now: morning,
		passed: map[[2]int][]float64{},
	}
	w := &simulator{config: p.o.Config, now: p.now}
	for i := range 3 + c.IntN(4) {
		m := w.add(fmt.Sprintf("m%d", i), func(s *v1beta1.MergeJobSpec) {
			s.Schedule.Interval.Duration = time.Duration(600 * math.Exp(c.Float64()*math.Log(100)) * float64(time.Second))
			s.Tier = []string{"main-traffic", "small-traffic", "exploratory"}[c.IntN(3)]
			if c.IntN(3) == 0 {
				s.Weight.Boost = c.Int32N(1001)
			}
		}).full(w, 0)
		m.status().LastFull = &v1beta1.FullModel{Name: "base", Time: metaTime(p.now)}
		m.status().Weight = ptr.To[int64](0)
		m.look()
		p.o.Jobs = append(p.o.Jobs, &Job{Object: m.object, Store: m.sighting})
	}
	return p
}

// slope is what a second of age adds to the weight of a merge that is due.
func (p *overloaded) slope(i int) float64 {
	job := p.o.Jobs[i].Object
	tier, _ := p.o.Config.Tiers.FindTier(job.Spec.Tier)
	return 100 * float64(p.o.Config.Tiers.MergeFactor(tier.Name)) / job.Spec.Schedule.Interval.Seconds()
}

// call has the head of the line merge, which takes some time, or time pass until there is one. It returns who merged, -1 for
// none, and how long merges waited.
func (p *overloaded) call(run time.Duration) (head int, waiting []int) {
	d := Plan(p.o, p.now)
	head = -1
	for i := range d.Jobs {
		switch st := &d.Jobs[i].Status; {
		case st.Run != nil:
			head = i
		case st.Position != nil:
			waiting = append(waiting, i)
		}
	}
	if head < 0 {
		p.now = p.now.Add(d.RequeueAfter)
		return head, nil
	}
	for _, i := range waiting {
		key := [2]int{i, head}
		p.passed[key] = append(p.passed[key], p.now.Sub(p.o.Jobs[i].Object.Status.LastFull.Time.Time).Seconds())
	}
	for i := range p.o.Jobs {
		delete(p.passed, [2]int{head, i})
	}
	p.now = p.now.Add(run)
	p.o.Jobs[head].Object.Status.LastFull.Time = metaTime(p.now)
	return head, waiting
}

// TestTheBoundOnWaiting holds a pool that has far too much to do to the bound that docs/decisions/0023 states.
func TestTheBoundOnWaiting(t *testing.T) {
	seed := environ.Number(t, "TIDELINE_SEED", uint64(time.Now().UnixNano()))
	most, tight, slow := 0, 0, 0
	tested := func() bool { return most >= 5 && tight >= 10 && slow >= 10 }
	// How hard random pools press is chance: there are more of them until the bound has been put to the test.
	for n := uint64(0); n < 10 || n < 200 && !tested(); n++ {
		c := rand.New(rand.NewPCG(seed, n))
		p := newOverloaded(c)
		for range 150 {
			head, waiting := p.call(time.Duration(1+c.IntN(1800)) * time.Second)
			for _, i := range waiting {
				rho := p.slope(head) / p.slope(i)
				extra := func(i int) float64 { return float64(p.o.Jobs[i].Object.Spec.Weight.Boost) }
				d := (extra(head) - extra(i)) / p.slope(i)
				ages := p.passed[[2]int{i, head}]
				for len(ages) > 0 && ages[0] <= d {
					ages = ages[1:] // Extras go before age so long.
				}
				if len(ages) == 0 {
					continue
				}
				bound := passes(ages[0], ages[len(ages)-1], d, rho)
				if float64(len(ages)) > bound+1e-6 {
					t.Fatalf("TIDELINE_SEED=%d, pool %d: m%d passed m%d %d times from age %.0fs to %.0fs, and the bound is %.3f "+
						"(rho %.3f, extras worth %.0fs)", seed, n, head, i, len(ages), ages[0], ages[len(ages)-1], bound, rho, d)
				}
				most = max(most, len(ages))
				if len(ages) > 1 && len(ages) == int(bound) {
					tight++
				}
				if rho <= 1 {
					slow++
				}
			}
		}
	}
	if !tested() {
		t.Errorf("TIDELINE_SEED=%d: the bound was not put to the test: %d passes at most, reached %d times, %d passes of slower ones",
			seed, most, tight, slow)
	}
	t.Logf("at most %d passes in one wait; the bound was reached %d times; %d passes of slower ones", most, tight, slow)
}
