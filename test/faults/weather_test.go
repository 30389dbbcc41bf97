package faults

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/test/testutil"
)

var _ = Describe("in bad weather", func() {
	itEndsTheSame("watches tell everything 5 s late", func(ctx context.Context) (string, error) {
		weathers := []func() weather{late(), late("pods")}
		if fullGrid {
			weathers = append(weathers, late("elastictrainingjobs"), late("podgroups", "services"))
		}
		return inWeather(ctx, stories, weathers)
	})
	itEndsTheSame("one request in five is refused or gets no answer", func(ctx context.Context) (string, error) {
		weathers := []func() weather{refusing(1), refusing(2)}
		for seed := uint64(3); fullGrid && seed <= 12; seed++ {
			weathers = append(weathers, refusing(seed))
		}
		return inWeather(ctx, []*story{life}, weathers)
	})
})

// weather is what lasts for a whole run.
type weather struct {
	name string
	// set makes it so.
	set func(*site)
	// check holds at the end that it was so, and what else must be; it returns what was tried, for people.
	check func(*site) string
}

// inWeather runs each story in each weather.
func inWeather(ctx context.Context, stories []*story, weathers []func() weather) (string, error) {
	var trials []func() error
	results := make([]string, len(stories)*len(weathers))
	for i, st := range stories {
		for j, weather := range weathers {
			trials = append(trials, func() error {
				w, result := weather(), &results[i*len(weathers)+j]
				*result = fmt.Sprintf("%s, %s: FAILED", st.name, w.name)
				return try(ctx, st.name+", "+w.name, func(t *trial) {
					s := st.begin(t)
					w.set(s)
					st.strike(s)
					st.endsSame(s)
					*result = fmt.Sprintf("%s, %s: passed, %s", st.name, w.name, w.check(s))
				})
			})
		}
	}
	err := abreast(trials...)
	return strings.Join(results, "\n"), err
}

// late has watches tell of these resources 5 s later; of all when there are none.
func late(resources ...string) func() weather {
	return func() weather {
		w := weather{name: "all watches late"}
		if len(resources) > 0 {
			w.name = "watches of " + strings.Join(resources, " and ") + " late"
		}
		w.set = func(s *site) {
			s.proxy.delayWatches(func(resource string) time.Duration {
				if len(resources) == 0 || slices.Contains(resources, resource) {
					return 5 * time.Second
				}
				return 0
			})
		}
		w.check = func(s *site) string {
			s.Expect(s.proxy.delayedParts.Load()).To(BeNumerically(">", 0), "watches are late")
			requests, err := s.Audit.Select(testutil.ByOperator, testutil.Write)
			s.Expect(err).NotTo(HaveOccurred(), "the audit log is read")
			for _, r := range requests {
				s.Expect(r.Verb == "create" && testutil.Refused(r)).To(BeFalse(), "nothing is created twice on an old view: %s", r)
			}
			return fmt.Sprintf("%d writes, no creation refused", len(requests))
		}
		return w
	}
}

// refusing has one request in five fail, as a seed decides; watches excepted.
func refusing(seed uint64) func() weather {
	return func() weather {
		random := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), seed))
		return weather{
			name: fmt.Sprintf("one request in five fails (%d)", seed),
			set: func(s *site) {
				s.proxy.inject(func(c call) fault {
					if random.IntN(5) > 0 {
						return noFault
					}
					if c.isWrite() {
						return conflict + fault(random.IntN(int(timeoutAfter-conflict)+1))
					}
					return tooManyRequests + fault(random.IntN(int(timeoutBefore-tooManyRequests)+1))
				})
			},
			check: func(s *site) string {
				counts := map[string]int{}
				for _, c := range s.proxy.struck() {
					counts[c.fault.String()]++
				}
				s.Expect(s.proxy.struck()).NotTo(BeEmpty(), "requests fail")
				var kinds []string
				for _, kind := range slices.Sorted(maps.Keys(counts)) {
					kinds = append(kinds, fmt.Sprintf("%d × %s", counts[kind], kind))
				}
				return strings.Join(kinds, ", ")
			},
		}
	}
}
