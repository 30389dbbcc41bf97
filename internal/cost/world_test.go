package cost

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/shopspring/decimal"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/platform/moment"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

const gpu = "nvidia.com/gpu"

// pod is one as the ledger has it, with the run that it is of.
type pod struct {
	Held
	run        string
	begin, end time.Time
}

// inputOf is what is known of a period in which some pods were there, each cut where Held is.
func inputOf(p Period, prices *Prices, pods []pod) *Input {
	in := &Input{Period: p, Prices: prices}
	cuts := p.CutTimes()
	type run struct {
		Owner
		run string
	}
	seen := map[run]bool{}
	runs := map[Owner]int64{}
	alike := map[string]int{} // where pods that are alike are in in.Held
	for i := range pods {
		pod := &pods[i]
		if !pod.begin.Before(p.To) || !pod.end.After(p.From) {
			continue
		}
		if of := (run{pod.Owner, pod.run}); !seen[of] {
			seen[of] = true
			runs[pod.Owner]++
		}
		like := fmt.Sprint(pod.Held)
		for j, from := range cuts[:len(cuts)-1] {
			begin, end := moment.LaterOf(from, pod.begin), moment.EarlierOf(cuts[j+1], pod.end)
			if !begin.Before(end) {
				continue
			}
			key := like + strconv.Itoa(j)
			at, known := alike[key]
			if !known {
				at, alike[key] = len(in.Held), len(in.Held)
				in.Held = append(in.Held, pod.Held)
				in.Held[at].From = from.UTC() // in whatever zone
			}
			h := &in.Held[at]
			h.Seconds += end.Unix() - begin.Unix()
			if !pod.end.After(cuts[j+1]) || j == len(cuts)-2 {
				h.Pods++
			}
		}
	}
	for owner, n := range runs {
		in.Runs = append(in.Runs, Runs{Owner: owner, Runs: n})
	}
	return in
}

func zone(name string) *time.Location {
	z, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return z
}

func prices(text string) *Prices {
	p, err := ParsePrices([]byte(text))
	if err != nil {
		panic(err)
	}
	return p
}

func d(text string) decimal.Decimal { return decimal.RequireFromString(text) }

// equal matches a decimal of that value.
func equal(text string) OmegaMatcher {
	return WithTransform(func(is decimal.Decimal) string { return is.String() }, Equal(d(text).String()))
}

// nearly matches a decimal that differs by what divisions leave.
func nearly(want decimal.Decimal) OmegaMatcher {
	return WithTransform(func(is decimal.Decimal) bool { return is.Sub(want).Abs().LessThan(d("0.000000000001")) },
		BeTrue())
}

// rowOf is that of a key.
func rowOf(r *Report, dimension Dimension, key Key) *Row {
	i := slices.IndexFunc(r.By[dimension], func(row Row) bool {
		return row.Key.withoutDetails(dimension) == key.withoutDetails(dimension) // the rest only says more of it
	})
	if i < 0 {
		panic(fmt.Sprintf("there is no %v", key))
	}
	return &r.By[dimension][i]
}

// people are users and their teams; one is unattributed, and one wants to be calculated.
func people(n int) []Owner {
	all := []Owner{{Team: "ads"}, {Team: "ads", User: "=HYPERLINK(\"http://evil\")"}, {User: "<script>"}}
	for i := len(all); i < n; i++ {
		all = append(all, Owner{Team: fmt.Sprintf("team-%d", i%15), User: fmt.Sprintf("user-%d", i)})
	}
	return all
}

// randomPod is one that was there around a period.
func randomPod(r *rand.Rand, owners []Owner, p Period, i int) pod {
	begin := p.From.Add(time.Duration(r.Int64N(int64(p.To.Sub(p.From)/time.Second)+100_000)-100_000) * time.Second)
	o := owners[r.IntN(len(owners))]
	o.Namespace = "ns-" + o.Team
	o.Kind = []string{"ElasticTrainingJob", "ElasticTrainingJob", "MergeJob", "StatefulSet"}[r.IntN(4)]
	o.Task = fmt.Sprintf("task-%d", r.IntN(5))
	h := Held{
		Owner: o, Role: sizing.RoleOf(int32(r.IntN(2))), Tier: "exploratory", Surplus: r.IntN(3) == 0,
		Model: []string{"", "A100", "H100"}[r.IntN(3)], Outcome: []string{"", "Succeeded", "Failed", "Deleted", "Lost"}[r.IntN(5)],
		Resources: Resources{"cpu": 1 + r.Int64N(16_000), "memory": r.Int64N(65_536), gpu: 1000 * r.Int64N(9), "pods": 1000},
	}
	if o.Kind == "StatefulSet" {
		h.Role = ""
	}
	return pod{Held: h, run: strconv.Itoa(i / 2), begin: begin, end: begin.Add(time.Duration(1+r.Int64N(100_000)) * time.Second)}
}

// randomUse is what roles of all tasks were seen using on the days of a period; of some days nothing.
func randomUse(r *rand.Rand, pods []pod, p Period) []Used {
	tasks := map[sizing.Key]bool{}
	for i := range pods {
		tasks[roleOf(pods[i].Held)] = true
	}
	keys := make([]sizing.Key, 0, len(tasks))
	for key := range tasks {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b sizing.Key) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Task, b.Task),
			cmp.Compare(a.Role, b.Role))
	})
	var used []Used
	for day := p.From.UTC().Truncate(24 * time.Hour); day.Before(p.To); day = day.AddDate(0, 0, 1) {
		for _, key := range keys {
			if r.IntN(5) == 0 || key.Role == "" {
				continue
			}
			// Shares of the time that was seen have an end as decimals, so that the truth can be counted in whole numbers.
			u := sizing.Usage{RunSeconds: 40_000, SeenSeconds: 10_000 * (1 + r.Int64N(4)), MemoryPeak: 4 * r.Int64N(20<<30)}
			u.CPU.Add(32*r.Float64(), 1+r.Int64N(288))
			key.Container = "pytorch"
			used = append(used, Used{Day: day, Key: key, Usage: u})
			key.Container = ""
			used = append(used, Used{Day: day, Key: key, Usage: sizing.Usage{
				RunSeconds: 40_000, SeenSeconds: 20_000,
				Accelerators: sizing.AcceleratorUsage{HeldSeconds: 1000, ActiveMilliseconds: 1000 * r.Int64N(1001)},
			}})
		}
	}
	return used
}

func roleOf(h Held) sizing.Key {
	return sizing.Key{Namespace: h.Owner.Namespace, Kind: h.Owner.Kind, Task: h.Owner.Task, Role: h.Role}
}
