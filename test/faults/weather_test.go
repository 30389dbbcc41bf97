package faults

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/test/testutil"
)

var _ = Describe("in bad weather", func() {
	itEndsTheSame("watches tell late what happens", func(ctx context.Context, count *tally) (string, error) {
		tellings := slices.Concat(
			each([]*story{growing, scaling}, late(time.Second)),
			each([]*story{givingWay, losing, suspending, preempting}, late(5*time.Second)),
			each([]*story{failing, finishing, suspending}, late(5*time.Second, "pods")),
			each([]*story{handingOver, reporting}, late(5*time.Second)))
		if fullGrid {
			tellings = each(stories, late(30*time.Second), late(30*time.Second, jobsResource))
			for _, by := range []time.Duration{time.Second, 5 * time.Second} {
				tellings = append(tellings,
					each(stories, late(by), late(by, "pods"), late(by, jobsResource), late(by, "podgroups", "services"))...)
			}
			tellings = append(tellings, each(slices.Concat(mergeStories, rareMergeStories), late(5*time.Second),
				late(5*time.Second, "pods"), late(5*time.Second, mergesResource), late(5*time.Second, "podgroups", "configmaps"))...)
			tellings = append(tellings, each(profileStories, late(5*time.Second), late(5*time.Second, "pods"),
				late(5*time.Second, profilesResource), late(5*time.Second, "podgroups", queuesResource))...)
			tellings = append(tellings, each(reportStories, late(5*time.Second), late(30*time.Second, reportsResource))...)
		}
		return inWeather(ctx, count, tellings)
	})
	itEndsTheSame("a job is deleted and created anew while watches sleep", func(ctx context.Context, count *tally) (string, error) {
		told := []*story{replacing}
		tellings := each(told, late(5*time.Second), late(5*time.Second, jobsResource))
		if fullGrid {
			tellings = append(tellings, each(told, late(5*time.Second, "pods"), late(30*time.Second), late(30*time.Second, "pods"),
				late(30*time.Second, jobsResource))...)
		}
		return inWeather(ctx, count, tellings)
	})
	itEndsTheSame("requests are refused or get no answer", func(ctx context.Context, count *tally) (string, error) {
		tries := map[int]uint64{20: 1, 50: 1}
		if fullGrid {
			tries = map[int]uint64{5: 5, 20: 8, 50: 5}
		}
		var tellings []telling
		for _, percent := range slices.Sorted(maps.Keys(tries)) {
			for seed := uint64(1); seed <= tries[percent]; seed++ {
				tellings = append(tellings, each([]*story{life}, refusing(percent, seed))...)
			}
		}
		tellings = append(tellings, each([]*story{handingOver, reporting}, refusing(20, 1))...)
		return inWeather(ctx, count, tellings)
	})
})

// What the API server calls jobs and merges.
const jobsResource, mergesResource = "elastictrainingjobs", "mergejobs"

// weather is what lasts for a whole run.
type weather struct {
	name string
	// prepare is done before the operator starts; nil for nothing.
	prepare func(*site)
	// set makes it so, before the story begins.
	set func(*site)
	// clear is done when the story is over, before its end is looked at; nil for nothing.
	clear func(*site)
	// check holds at the end that it was so, and what else must be; it returns what was tried, for people.
	check func(*site) (verdict, string)
}

// telling is a story in a weather, which is made anew for each run.
type telling struct {
	*story
	weather func() weather
}

// each tells each story in each weather.
func each(stories []*story, weathers ...func() weather) []telling {
	var tellings []telling
	for _, st := range stories {
		for _, w := range weathers {
			tellings = append(tellings, telling{st, w})
		}
	}
	return tellings
}

// inWeather runs stories in weathers.
func inWeather(ctx context.Context, count *tally, tellings []telling) (string, error) {
	var trials []func() error
	results := make([]string, len(tellings))
	for i, t := range tellings {
		w := t.weather()
		what := w.name
		if !slices.ContainsFunc(tellings, func(other telling) bool { return other.story != t.story }) {
			what += ": " + t.name
		}
		count.plan(what)
		trials = append(trials, func() error {
			return count.count(what, func() (verdict, error) {
				v, said, err := t.tryWeather(ctx, w)
				results[i] = strings.TrimSuffix(fmt.Sprintf("%s, %s: %s, %s", t.name, w.name, v, said), ", ")
				return v, err
			})
		})
	}
	// Before any trial has a lane: none might be left for what they all wait for.
	var undisturbed sync.WaitGroup
	for _, t := range tellings {
		undisturbed.Go(func() { _, _ = t.undisturbed() }) // its own spec reports its error
	}
	undisturbed.Wait()
	err := abreast(trials...)
	return strings.Join(results, "\n"), err
}

// tryWeather runs the story in a weather.
func (st *story) tryWeather(ctx context.Context, w weather) (v verdict, said string, err error) {
	err = try(ctx, st.name+", "+w.name, func(t *trial) {
		prepare := []func(*site){}
		if w.prepare != nil {
			prepare = append(prepare, w.prepare)
		}
		s := st.begin(t, prepare...)
		w.set(s)
		st.strike(s)
		st.sequel(s)
		if w.clear != nil {
			w.clear(s)
		}
		st.endsSame(s)
		v, said = w.check(s)
	})
	if err != nil {
		return failed, "", err
	}
	return v, said, nil
}

// late has watches tell of these resources later; of all when there are none.
func late(by time.Duration, resources ...string) func() weather {
	return func() weather {
		what := "all watches"
		if len(resources) > 0 {
			what = "watches of " + strings.Join(resources, " and ")
		}
		return weather{
			name: fmt.Sprintf("%s %s late", what, by),
			set: func(s *site) {
				s.isPatient(8 * by)
				s.proxy.delayWatches(func(resource string) time.Duration {
					if len(resources) == 0 || slices.Contains(resources, resource) {
						return by
					}
					return 0
				})
			},
			// What the operator would do on account of what it is still told is done then.
			clear: func(s *site) { s.rests(by + time.Second) },
			check: func(s *site) (verdict, string) {
				s.Expect(s.proxy.delayedParts.Load()).To(BeNumerically(">", 0), "watches are late")
				requests, err := s.Audit.Select(testutil.ByOperator, testutil.Write)
				s.Expect(err).NotTo(HaveOccurred(), "the audit log is read")
				refused := slices.DeleteFunc(slices.Clone(requests), func(r testutil.Request) bool {
					return r.Verb != "create" || !testutil.Refused(r)
				})
				if !s.story.namesTaken {
					s.Expect(refused).To(BeEmpty(), "nothing is created twice on an old view")
				}
				for does, n := range s.inVain() {
					s.Expect(n).To(BeNumerically("<=", 2), "%s, for a job that is gone", does)
				}
				return passed, fmt.Sprintf("%d writes, %d creations refused", len(requests), len(refused))
			},
		}
	}
}

// inVain counts what was created since the story began and before its job had a status.
func (s *site) inVain() map[string]int {
	counts := map[string]int{}
	for _, c := range s.proxy.counted() {
		if c.begins() {
			break
		}
		if s.story.namesTaken && c.verb == "create" && c.code != 0 && c.code < 400 {
			counts[c.does()]++
		}
	}
	return counts
}

// isPatient has everything that is awaited from now on take so much longer.
func (s *site) isPatient(by time.Duration) { s.SetDefaultEventuallyTimeout(patience + by) }

// refusing has so many of a hundred requests fail, as a seed decides; watches excepted.
func refusing(percent int, seed uint64) func() weather {
	return func() weather {
		random := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), seed))
		return weather{
			name: fmt.Sprintf("%d %% of requests fail", percent),
			set: func(s *site) {
				s.isPatient(time.Duration(percent) * 4 * time.Second) // failures in a row are tried again later and later
				s.proxy.inject(func(c call) fault {
					if random.IntN(100) >= percent {
						return noFault
					}
					if c.isWrite() {
						return conflict + fault(random.IntN(int(timeoutAfter-conflict)+1))
					}
					return tooManyRequests + fault(random.IntN(int(timeoutBefore-tooManyRequests)+1))
				})
			},
			check: func(s *site) (verdict, string) {
				counts := map[string]int{}
				for _, c := range s.proxy.struck() {
					counts[c.fault.String()]++
				}
				if len(counts) == 0 {
					return void, "by chance none failed"
				}
				var kinds []string
				for _, kind := range slices.Sorted(maps.Keys(counts)) {
					kinds = append(kinds, fmt.Sprintf("%d × %s", counts[kind], kind))
				}
				return passed, strings.Join(kinds, ", ")
			},
		}
	}
}
