package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/quota"
	"github.com/tideline-io/tideline/internal/quota/admission"
	"github.com/tideline-io/tideline/internal/quota/whatif"
	"github.com/tideline-io/tideline/test/testutil/benchmark"
)

// whatIfCommand is the command that writes the results under this configuration.
func (p *plan) whatIfCommand() string {
	if p.stock {
		return "make bench-whatif-stock"
	}
	return "make bench-whatif"
}

// gangs are the trainings of this comparison: as large as was asked.
func (p *plan) gangs() entrant { return entrant{"as asked", !p.stock, jobsOf(asked, asked)} }

// foreseen is one group of trainings in one seed: what `tideline whatif` says that they would wait, and what they wait where the
// scheduler runs them under the change. before is what they wait without it, and replayed what the command says of that.
type foreseen struct {
	seed  uint64
	team  string
	group string
	n     int
	// Quantiles 0.5 and 0.99.
	before, replayed, says, truth [2]time.Duration
}

// compareWhatIf plays each seed without a change and with each, and asks after the first what the others would do.
func (p *plan) compareWhatIf(ctx context.Context, program player, trace []traced) error {
	var all []foreseen
	for seed := uint64(1); seed <= uint64(p.seeds); seed++ {
		rows, err := program.foresee(ctx, p.gangs(), draw(trace, p.loads[0], seed, p.days), p.days)
		if err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
		for i := range rows {
			rows[i].seed = seed
			_, _ = fmt.Printf("%+v\n", rows[i])
		}
		all = append(all, rows...)
	}
	if p.page == "" {
		return nil
	}
	return benchmark.WriteResults(p.page, p.whatIfCommand(), p.tableOfWhatIf(all), nil)
}

// foresee plays one seed.
func (p *player) foresee(ctx context.Context, gangs entrant, jobs []job, days int) ([]foreseen, error) {
	is, err := p.playOn(ctx, gangs, jobs, days, nil)
	if err != nil {
		return nil, err
	}
	var rows []foreseen
	for _, team := range is.teamsThatShrink() {
		most := max(1, deservedBy(is.profileOf(team))/2)
		changed, err := p.playOn(ctx, gangs, jobs, days, map[string]int64{team: most})
		if err != nil {
			return nil, err
		}
		rows = append(rows, is.compareWaits(changed, team, most, time.Duration(days)*day)...)
	}
	return rows, nil
}

// compareWaits holds what is said after a run, of a change that lets a team hold no more than most, to the run with the change.
func (c *cluster) compareWaits(changed *cluster, team string, most int64, end time.Duration) []foreseen {
	smaller := c.profileOf(team).DeepCopy()
	smaller.Spec.Queue.Capability = gpus(most)
	smaller.Spec.Queue.Deserved = gpus(min(most, deservedBy(smaller)))
	play := func(profiles []*v1beta1.ResourceQuotaProfile) map[string]*whatif.Outcome {
		return whatif.PlayPast(c.past(end), c.asItIs(), profiles, func() bool { return false })
	}
	asIs, said := play(c.profiles()), play(whatif.ReplaceProfile(c.profiles(), smaller))
	truth := map[string]time.Duration{}
	for _, r := range changed.all {
		truth[r.name] = r.waited(end)
	}
	rows := []foreseen{{team: team, group: "of that team"}, {team: team, group: "of all others"}}
	for g := range rows {
		var before, replayed, says, waits []time.Duration
		for name, outcome := range said {
			if (name == team) == (g == 0) {
				says = append(says, slices.Concat(outcome.Waits, outcome.Unstarted)...)
				replayed = append(replayed, slices.Concat(asIs[name].Waits, asIs[name].Unstarted)...)
			}
		}
		for _, r := range c.all {
			if (r.team == team) == (g == 0) && r.starts >= 0 {
				before, waits = append(before, r.waited(end)), append(waits, truth[r.name])
			}
		}
		rows[g].n = len(waits)
		for q, part := range []float64{0.5, 0.99} {
			rows[g].before[q], rows[g].truth[q] = partOf(before, part), partOf(waits, part)
			rows[g].replayed[q], rows[g].says[q] = partOf(replayed, part), partOf(says, part)
		}
	}
	return rows
}

// waited is how long a training waited until it began or, if it did not, until the end.
func (r *run) waited(end time.Duration) time.Duration {
	if r.starts < 0 {
		return end - r.comes
	}
	return r.starts - r.comes
}

// partOf is the value of that part of a list.
func partOf(of []time.Duration, part float64) time.Duration {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return of[max(0, int(math.Ceil(part*float64(len(of))))-1)]
}

// teamsThatShrink are the team that deserves most and, if that is another, the one with the most trainings.
func (c *cluster) teamsThatShrink() []string {
	deserves, counts := map[string]int64{}, map[string]int64{}
	for _, p := range c.profiles() {
		deserves[p.Name] = deservedBy(p)
	}
	for _, r := range c.all {
		counts[r.team]++
	}
	most := func(of map[string]int64) string {
		return slices.MaxFunc(c.teams, func(a, b string) int { return cmp.Or(cmp.Compare(of[a], of[b]), strings.Compare(b, a)) })
	}
	return slices.Compact([]string{most(deserves), most(counts)})
}

// profileOf is the profile of a team.
func (c *cluster) profileOf(team string) *v1beta1.ResourceQuotaProfile {
	all := c.profiles()
	return all[slices.IndexFunc(all, func(p *v1beta1.ResourceQuotaProfile) bool { return p.Name == team })]
}

func gpus(n int64) corev1.ResourceList {
	return corev1.ResourceList{gpu: *resource.NewQuantity(n, resource.DecimalSI)}
}

func deservedBy(p *v1beta1.ResourceQuotaProfile) int64 {
	n := p.Spec.Queue.Deserved[gpu]
	return n.Value()
}

// profiles are those that have the Queues of the teams.
func (c *cluster) profiles() []*v1beta1.ResourceQuotaProfile {
	var all []*v1beta1.ResourceQuotaProfile
	offers, total := map[string]float64{}, 0.0
	for _, r := range c.all {
		offer := float64(r.job.asked) * r.job.lasts.Seconds()
		offers[r.team], total = offers[r.team]+offer, total+offer
	}
	for _, team := range c.teams {
		p := &v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: team}}
		p.Spec.NamespaceSelector.MatchLabels = map[string]string{"team": team}
		p.Spec.Queue.Weight, p.Spec.Queue.Deserved = 1, gpus(max(1, int64(offers[team]/total*gpusOfCluster+0.5)))
		all = append(all, p)
	}
	return all
}

// asItIs is the cluster on which the past is played again.
func (c *cluster) asItIs() *whatif.Cluster {
	on := &whatif.Cluster{Config: config.DefaultConfiguration()}
	for i := range nodes {
		n := newNode(i)
		on.Nodes = append(on.Nodes, capacity.Node{Name: n.Name, Allocatable: capacity.AmountsOf(n.Status.Allocatable)})
	}
	for _, team := range c.teams {
		on.Namespaces = append(on.Namespaces, quota.Namespace{Name: team, Labels: map[string]string{"team": team}})
	}
	return on
}

// past is what the ledger would have of a run: trainings that began.
func (c *cluster) past(end time.Duration) *whatif.Past {
	p := &whatif.Past{From: weekBegins, To: weekBegins.Add(end), KnownSince: weekBegins}
	for _, r := range c.all {
		if r.starts < 0 {
			continue
		}
		ended := end
		if r.over {
			ended = r.ended
		}
		past := whatif.Run{
			Namespace: r.team, Name: r.name, Job: r.name, Ongoing: !r.over, User: r.team, Queue: r.team, Profile: r.team,
			Asked: weekBegins.Add(r.comes), Came: weekBegins.Add(r.comes), Started: weekBegins.Add(r.starts), Ended: weekBegins.Add(ended),
		}
		for range r.job.asked {
			past.Core = append(past.Core, admission.MilliAmounts{gpu: 1000})
		}
		p.Runs = append(p.Runs, past)
	}
	return p
}

// tableOfWhatIf writes the results as Markdown.
func (p *plan) tableOfWhatIf(all []foreseen) string {
	var b strings.Builder
	configuration := "the configuration that Tideline ships"
	if p.stock {
		configuration = "the configuration that Volcano ships"
	}
	fmt.Fprintf(&b, "Under %s, an offered load of %.1f, %s, %s; at commit %s.\n\n", configuration, p.loads[0],
		text.FormatCount(p.days, "day"), text.FormatCount(p.seeds, "seed"), p.commit)
	b.WriteString("| seed | team with half | trainings | how many | median without the change, min | as said of that, min | " +
		"as said, min | in truth, min | said ÷ truth | 99th without, min | as said of that, min | as said, min | in truth, min | " +
		"said ÷ truth |\n|" + strings.Repeat("---|", 14) + "\n")
	for i := range all {
		f := &all[i]
		fmt.Fprintf(&b, "| %d | %s | %s | %d |", f.seed, f.team, f.group, f.n)
		for q := range f.says {
			ratio := "–"
			if f.truth[q] > 0 {
				ratio = fmt.Sprintf("%.2f", f.says[q].Minutes()/f.truth[q].Minutes())
			}
			fmt.Fprintf(&b, " %.1f | %.1f | %.1f | %.1f | %s |", f.before[q].Minutes(), f.replayed[q].Minutes(), f.says[q].Minutes(),
				f.truth[q].Minutes(), ratio)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "\n%s\n", verdict(all))
	return b.String()
}

// verdict holds medians to the aim. Those below a minute are not judged.
func verdict(all []foreseen) string {
	judged, within := 0, 0
	for i := range all {
		if truth := all[i].truth[0]; truth >= time.Minute {
			judged++
			if math.Abs(float64(all[i].says[0]-truth)) <= 0.1*float64(truth) {
				within++
			}
		}
	}
	switch {
	case judged == 0:
		return "No median is of a minute or more: nothing is judged."
	case within == judged:
		return fmt.Sprintf("The aim is met: all %d medians of a minute or more are within 10 %% of the true one.", judged)
	}
	return fmt.Sprintf("The aim is missed: of %d medians of a minute or more, %d are within 10 %% of the true one.", judged, within)
}
