package outlook

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/capacity/arbiter"
	"github.com/tideline-io/tideline/internal/capacity/lifetime"
)

// failing answers with an error.
type failing struct{ err error }

func (f failing) ForetellStart(context.Context, *v1beta1.ElasticTrainingJob, string) (*arbiter.Outlook, error) {
	return nil, f.err
}

func TestWhatIsSaidOfAStart(t *testing.T) {
	gang := capacity.Gang{Workers: 4}
	starts := func(of ...int) (all []time.Duration) {
		for _, minutes := range of {
			all = append(all, time.Duration(minutes)*time.Minute)
		}
		return all
	}
	for name, c := range map[string]struct {
		outlook arbiter.Outlook
		says    []string
	}{
		"it fits": {
			arbiter.Outlook{Gang: gang, Answer: capacity.Answer{Fits: true}},
			[]string{"This job would start now: its 4 core workers fit."},
		},
		"surplus gives way": {
			arbiter.Outlook{Gang: gang, Surplus: 3, Jobs: 1},
			[]string{"This job would start in about 2 minutes: 3 surplus workers of 1 other job would leave for it."},
		},
		"it is not modelled": {
			arbiter.Outlook{Gang: gang, Answer: capacity.Answer{Unknown: "a volume"}},
			[]string{"When this job would start is not known: Tideline does not model a volume."},
		},
		"it is too large": {
			arbiter.Outlook{Gang: gang, Never: &capacity.Answer{Largest: 2, Short: capacity.Amounts{"nvidia.com/gpu": 2}}},
			[]string{"This job would never start: its 4 core workers do not fit, even if nothing else ran. At most 2 such workers would " +
				"fit; short of 2 nvidia.com/gpu."},
		},
		"there was no time": {
			arbiter.Outlook{Gang: gang, Before: 1},
			[]string{"When this job would start is not known: the cluster is too large to be simulated in a second."},
		},
		"it waits": {
			arbiter.Outlook{
				Gang: gang, Before: 2, Futures: 20,
				Starts: starts(0, 0, 1, 4, 5, 6, 8, 33, 61, 61, 62, 90, 91, 92, 190, 191, 1600),
				From:   map[lifetime.Source]int{lifetime.FromTask: 3, lifetime.FromAll: 2},
			},
			[]string{
				"This job would start in 1h. 9 of 10 simulations have it start between less than a minute and more than two weeks from " +
					"now. " +
					"Before it in order: 2 waiting gangs.",
				"From 20 simulations, in which running jobs last as long as ended runs of the same task did. Jobs that come later, and " +
					"limits of the profile, are left out.",
			},
		},
		"nothing is known of the others": {
			arbiter.Outlook{Gang: gang, Before: 1, Futures: 1, Starts: starts(300), From: map[lifetime.Source]int{}},
			[]string{
				"This job would start in 5h. All simulations that there was time for have it start between 5h and 5h from now. " +
					"Before it in order: 1 waiting gang.",
				"From 1 simulation, in which running jobs last with even odds as long again as they have run, because too few jobs have " +
					"ended. Jobs that come later, and limits of the profile, are left out.",
			},
		},
	} {
		NewWithT(t).Expect(sayOutlook(&c.outlook)).To(Equal(c.says), name)
	}
	for err, says := range map[error]string{
		errors.New("the cache is not there"): "the cache is not there", arbiter.ErrNotJudging: "does not lead",
		arbiter.ErrResting: "simulates for others now",
	} {
		NewWithT(t).Expect(TellStart(t.Context(), failing{err}, nil, "")).To(ConsistOf(ContainSubstring(says)))
	}
}
