package admission

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// room seats gangs in so many GPUs, in the order in which it is asked. While one does not fit the rest is kept for it.
func room(free int64) func(*Claimant, bool) bool {
	kept := false
	return func(c *Claimant, heldLong bool) bool {
		fits := c.Core[gpu] <= free && (!kept || heldLong)
		if fits {
			free -= c.Core[gpu]
		}
		kept = kept || !fits
		return fits
	}
}

func ordered(free int64) Limits {
	return Limits{Order: &Order{Ageing: time.Hour, HalfLife: time.Hour, LongestHold: 10 * time.Minute, Seat: room(free)}}
}

// of is a job that asks for two GPUs and has waited so long.
func of(name string, standing v1beta1.Standing, waited time.Duration) Claimant {
	c := asking(name, name, 2, 0)
	c.Standing, c.Created, c.Since = standing, now.Add(-waited), now.Add(-waited)
	return c
}

func TestWhoGoesFirstWhileRoomIsShort(t *testing.T) {
	const intern, staff, senior = v1beta1.StandingIntern, v1beta1.StandingStaff, v1beta1.StandingSenior
	high := of("b", intern, 0)
	high.Priority = 100000
	for name, c := range map[string]struct {
		a, b Claimant
		used map[string]int64
	}{
		"a senior's newer before an intern's older": {of("a", intern, 30*time.Minute), of("b", senior, 0), nil},
		"a higher tier before all":                  {of("a", senior, 9*time.Hour), high, nil},
		"the older of equals":                       {of("a", staff, 0), of("b", staff, time.Minute), nil},
		"who used little before who used much": {
			of("a", staff, 30*time.Minute), of("b", staff, 0), map[string]int64{"a": 9 * Hour, "b": 2 * Hour},
		},
		"standing before use":                     {of("a", staff, 0), of("b", senior, 0), map[string]int64{"b": 9 * Hour}},
		"one step up after each ageing":           {of("a", senior, 0), of("b", intern, 2*time.Hour+time.Minute), nil},
		"not before that":                         {of("a", intern, 2*time.Hour-time.Minute), of("b", senior, 0), nil},
		"an intern before all newer ones after 3": {of("a", senior, 59*time.Minute), of("b", intern, 3*time.Hour), nil},
		"who waited longest of those, whatever use": {
			of("a", senior, 2*time.Hour), of("b", intern, 4*time.Hour), map[string]int64{"b": 9 * Hour},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			l := ordered(2)
			l.Order.Used = c.used
			decided := turns(l, c.a, c.b)
			g.Expect(decided[c.b.Job].Admitted).To(BeTrue())
			blocked := decided[c.a.Job].Blocked
			g.Expect(blocked).NotTo(BeNil(), "there is room for one")
			g.Expect(blocked.Fits).To(Equal(c.a.Since.Add(10 * time.Minute)))
		})
	}
}

func TestWhoWaitsForRoomIsToldUntilWhen(t *testing.T) {
	g := NewWithT(t)
	intern := of("ivy", v1beta1.StandingIntern, 0)
	const senior = v1beta1.StandingSenior
	decided := turns(ordered(2), of("sam", senior, 0), of("sue", senior, -time.Minute), intern)
	g.Expect(decided[intern.Job].Blocked.DescribeBlock("ads")).To(Equal("Profile ads orders its trainings while room is short, " +
		"and this one is at position 2, after ads/sue. It takes room that is free from 2026-11-20T10:10:00Z, and goes before " +
		"all newer ones of its tier from 2026-11-20T13:00:00Z."))
}

func TestAGrantKeepsItsRoomUntilItsGangIsSeen(t *testing.T) {
	g := NewWithT(t)
	first := of("a", v1beta1.StandingStaff, 0)
	_, grants := AdmitJobs(ordered(2), []Claimant{first}, nil, nil, now)
	decided, _ := AdmitJobs(ordered(2), []Claimant{first, of("b", v1beta1.StandingStaff, time.Minute)}, nil, grants,
		now.Add(time.Second))
	g.Expect(decided[first.Job].Admitted).To(BeTrue())
	g.Expect(decided[key("b")].Admitted).To(BeFalse())
}

func TestUseDecaysByHalf(t *testing.T) {
	g := NewWithT(t)
	lately, longAgo := map[string]int64{"ann": 8}, map[string]int64{"ann": 8, "bob": 16}
	used := DecayedUse([HalfLives]map[string]int64{lately, lately, longAgo, longAgo})
	g.Expect(used).To(Equal(map[string]int64{"ann": 8, "bob": 4}))
}

// In a random history seniors come all the time, and gangs are of one to four GPUs of eight.
func TestNoJobWaitsBeyondItsBoundWhileItFits(t *testing.T) {
	for seed := range uint64(16) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 27))
			const senior = v1beta1.StandingSenior
			standings := []v1beta1.Standing{v1beta1.StandingIntern, senior, senior, v1beta1.StandingStaff}
			var waiting []Claimant
			ends := map[Key]time.Time{}
			held := map[Key]Claimant{}
			for step := range 600 {
				at := now.Add(time.Duration(step) * time.Minute)
				for job, end := range ends {
					if !at.Before(end) {
						delete(ends, job)
						delete(held, job)
					}
				}
				if r.IntN(3) == 0 {
					c := asking(fmt.Sprint("job-", step), fmt.Sprint("user-", r.IntN(5)), 1+r.Int64N(4), 0)
					c.Standing, c.Created, c.Since = standings[r.IntN(len(standings))], at, at
					waiting = append(waiting, c)
				}
				free := int64(8)
				for _, c := range held {
					free -= c.Core[gpu]
				}
				l := ordered(free)
				decided, _ := AdmitJobs(l, waiting, nil, nil, at)
				for _, c := range waiting {
					if decided[c.Job].Admitted {
						held[c.Job], ends[c.Job], free = c, at.Add(time.Duration(5+r.IntN(30))*time.Minute), free-c.Core[gpu]
					}
				}
				waiting = slices.DeleteFunc(waiting, func(c Claimant) bool { return decided[c.Job].Admitted })
				for _, c := range waiting {
					waited := at.Sub(c.Since)
					if waited > l.Order.LongestHold && c.Core[gpu] <= free {
						t.Fatalf("%s fits and waited %s", c.Job, waited)
					}
					for other := range held {
						h := held[other]
						overtook := ends[other].Sub(at) > 0 && h.Since.After(c.Since) && decided[other].Admitted
						aged := waited >= 3*l.Order.Ageing && h.Core[gpu] >= c.Core[gpu]
						if overtook && aged && decided[c.Job].Blocked != nil {
							t.Fatalf("%s overtook %s", other, c.Job)
						}
					}
				}
			}
		})
	}
}
