package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/test/testutil/benchmark"
)

// The rules of docs/benchmarks/forecast.md.
const (
	// askEvery is how many trainings come for one that is asked about. untilEnd is how long before the end of a run nothing is asked
	// any more, because the truth would not be known.
	askEvery, untilEnd = 10, 12 * time.Hour
	// tolerance is by how much a wait may miss an interval: surplus is told to leave after a minute, and pods take time to go.
	tolerance = 2 * time.Minute
	// before is of how long before the run ended trainings are known.
	before = 7 * day
)

// parts are the percentiles that the command says.
var parts = [3]float64{0.05, 0.5, 0.95}

// forecast is what the operator says of a training just before it comes, and how long trainings waited that began in the week
// before.
type forecast struct {
	of          *run
	says, usual [len(parts)]time.Duration
	// room is true where there is room already, so that nothing has to be foreseen.
	room bool
}

// forecaster asks the operator when trainings would start, just before they come. Trainings that ended stay, as they do in a
// cluster, so that lifetimes are learnt from them.
type forecaster struct {
	*operator

	until time.Duration
	came  int
	asked []forecast
	// silent is how many trainings were asked about without an answer.
	silent int
	failed error
}

func newForecaster(c *cluster, trace []traced, until time.Duration) (*forecaster, error) {
	o, err := newOperator(c)
	if err != nil {
		return nil, err
	}
	for i := range trace {
		t := &trace[i]
		if ended := t.comes.Add(t.lasts); ended.Before(weekBegins) && ended.After(weekBegins.Add(-before)) {
			o.see(endedBefore(i, t), false)
		}
	}
	return &forecaster{operator: o, until: until}, nil
}

// endedBefore is a training that ended before the run.
func endedBefore(i int, t *traced) *v1beta1.ElasticTrainingJob {
	name, began, ended := fmt.Sprintf("before-%d", i), metav1.NewTime(t.comes), metav1.NewTime(t.comes.Add(t.lasts))
	job := &v1beta1.ElasticTrainingJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-" + t.team, Name: name, UID: types.UID(name), CreationTimestamp: began},
	}
	job.Status = v1beta1.ElasticTrainingJobStatus{
		Phase: v1beta1.PhaseSucceeded, Queue: job.Namespace, StartTime: &began, CompletionTime: &ended,
	}
	return job
}

func (f *forecaster) arrive(r *run) {
	if f.came++; f.came%askEvery == 0 && f.now >= warmUp && f.now < f.until {
		f.ask(r)
	}
	f.operator.arrive(r)
}

// ask asks about a training, by the command's own code.
func (f *forecaster) ask(r *run) {
	o, err := f.arbiter.ForetellStartAt(context.Background(), f.newJob(r), r.team, f.wall())
	switch {
	case err != nil:
		f.failed = errors.Join(f.failed, fmt.Errorf("asking about %s: %w", r.name, err))
		return
	case !o.Answer.Fits && o.Futures == 0:
		f.silent++
		return
	}
	is := forecast{of: r, room: o.Answer.Fits}
	var waits []time.Duration
	for _, other := range f.all {
		if other.starts >= 0 && other.starts >= f.now-before {
			waits = append(waits, other.starts-other.comes)
		}
	}
	for i, part := range parts {
		is.usual[i] = partOf(waits, part)
		if !is.room {
			if after, known := o.StartBy(part); known {
				is.says[i] = after
			} else {
				is.says[i] = 14 * day
			}
		}
	}
	f.asked = append(f.asked, is)
}

func (f *forecaster) forget(r *run) {
	ended := f.jobs[types.NamespacedName{Namespace: r.team, Name: r.name}].object.DeepCopy()
	f.operator.forget(r)
	began, now := metav1.NewTime(weekBegins.Add(r.starts)), metav1.NewTime(f.wall())
	ended.Status.Phase, ended.Status.StartTime, ended.Status.CompletionTime = v1beta1.PhaseSucceeded, &began, &now
	f.see(ended, false)
}

// pinball is the loss of a percentile that was said where the truth is another, in the unit of both: what is above it counts by
// the percentile, and what is below by the rest. The mean of it is least for the true percentile (Koenker and Bassett, 1978).
func pinball(part float64, says, truth time.Duration) float64 {
	miss := float64(truth - says)
	return max(part*miss, (part-1)*miss)
}

// accuracy is what forecasts of one run were worth.
type accuracy struct {
	Load   float64
	Seed   uint64
	Days   int
	Commit string
	// Asked, Silent and Room count trainings; the rest is about those without room at once.
	Asked, Silent, Room, Judged int
	// Covered is how many of these waited as long as the interval says, Sooner and Later how many less and more, and Unknown how
	// many had not started at the end.
	Covered, Sooner, Later, Unknown int
	// Loss is the mean pinball loss of the median, and Losses of all three percentiles, in minutes; Usual and Usuals those of the
	// waits before.
	Loss, Usual, Losses, Usuals float64
	// Medians of the waits, as said and in truth.
	Said, Truth time.Duration
}

func (f *forecaster) judge(end time.Duration) accuracy {
	a := accuracy{Asked: len(f.asked) + f.silent, Silent: f.silent}
	var said, truth []time.Duration
	for i := range f.asked {
		is := &f.asked[i]
		if is.room {
			a.Room++
			continue
		}
		a.Judged++
		waited := is.of.waited(end)
		if is.of.starts < 0 {
			a.Unknown++
		}
		switch {
		case waited < is.says[0]-tolerance:
			a.Sooner++
		case waited > is.says[2]+tolerance:
			a.Later++
		default:
			a.Covered++
		}
		said, truth = append(said, is.says[1]), append(truth, waited)
		minutes := float64(time.Minute)
		a.Loss += pinball(parts[1], is.says[1], waited) / minutes
		a.Usual += pinball(parts[1], is.usual[1], waited) / minutes
		for k, part := range parts {
			a.Losses += pinball(part, is.says[k], waited) / minutes / float64(len(parts))
			a.Usuals += pinball(part, is.usual[k], waited) / minutes / float64(len(parts))
		}
	}
	if a.Judged > 0 {
		for _, sum := range []*float64{&a.Loss, &a.Usual, &a.Losses, &a.Usuals} {
			*sum /= float64(a.Judged)
		}
	}
	a.Said, a.Truth = partOf(said, 0.5), partOf(truth, 0.5)
	return a
}

// compareForecasts plays the loads and seeds that the file of results does not have, and asks on the way.
func (p *plan) compareForecasts(ctx context.Context, program player, trace []traced) error {
	for seed := uint64(1); seed <= uint64(p.seeds); seed++ {
		for _, load := range p.loads {
			have, err := readResults[accuracy](p.results)
			if err != nil {
				return err
			}
			if slices.ContainsFunc(have, func(a accuracy) bool { return a.Load == load && a.Seed == seed && a.Days == p.days }) {
				continue
			}
			a, err := p.playAndAsk(ctx, program, trace, load, seed)
			if err == nil {
				err = addResult(p.results, a)
			}
			if err != nil {
				return fmt.Errorf("load %.1f, seed %d: %w", load, seed, err)
			}
			_, _ = fmt.Printf("%+v\n", a)
		}
	}
	if p.page == "" {
		return nil
	}
	all, err := readResults[accuracy](p.results)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b accuracy) int { return cmp.Or(cmp.Compare(a.Load, b.Load), cmp.Compare(a.Seed, b.Seed)) })
	return benchmark.WriteResults(p.page, "make bench-forecast", tableOfForecasts(all), nil)
}

// playAndAsk plays one load and seed.
func (p *plan) playAndAsk(ctx context.Context, program player, trace []traced, load float64, seed uint64) (accuracy, error) {
	end := time.Duration(p.days) * day
	var asks *forecaster
	on := func(c *cluster) (subject, error) {
		var err error
		asks, err = newForecaster(c, trace, end-untilEnd)
		return asks, err
	}
	if _, err := program.playOn(ctx, entrant{ourName, true, on}, draw(trace, load, seed, p.days), p.days, nil); err != nil {
		return accuracy{}, err
	}
	a := asks.judge(end)
	a.Load, a.Seed, a.Days, a.Commit = load, seed, p.days, p.commit
	return a, asks.failed
}

// tableOfForecasts writes the results as Markdown.
func tableOfForecasts(all []accuracy) string {
	var b strings.Builder
	commits := map[string]bool{}
	for i := range all {
		commits[all[i].Commit] = true
	}
	at := strings.Join(slices.Sorted(maps.Keys(commits)), " and ")
	fmt.Fprintf(&b, "%s, at commit %s.\n\n", text.FormatCount(len(all), "run"), at)
	b.WriteString("| load | seed | days | asked about | no answer | room at once | judged | not begun at the end | " +
		"within the 90 % interval | sooner | later | median wait said, min | in truth, min | loss of the median, min | " +
		"of the usual wait, min | loss of all three, min | of the usual, min |\n|" + strings.Repeat("---|", 17) + "\n")
	judged, covered := 0, 0
	var loss, usual float64
	for i := range all {
		a := &all[i]
		fmt.Fprintf(&b, "| %.1f | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n",
			a.Load, a.Seed, a.Days, a.Asked, a.Silent, a.Room, a.Judged, a.Unknown, a.Covered, a.Sooner, a.Later,
			a.Said.Minutes(), a.Truth.Minutes(), a.Loss, a.Usual, a.Losses, a.Usuals)
		judged, covered = judged+a.Judged, covered+a.Covered
		loss, usual = loss+a.Loss*float64(a.Judged), usual+a.Usual*float64(a.Judged)
	}
	if judged == 0 {
		b.WriteString("\nEvery training had room at once: nothing is judged.\n")
		return b.String()
	}
	of := float64(judged)
	share := 100 * float64(covered) / of
	interval, better := "missed", "missed"
	if share >= 85 && share <= 95 {
		interval = "met"
	}
	if loss < usual {
		better = "met"
	}
	fmt.Fprintf(&b, "\nOf %d waits, %.0f %% are within the interval: that aim is %s. The loss of the median is %.1f min, and "+
		"%.1f min for who says the usual wait: that aim is %s.\n", judged, share, interval, loss/of, usual/of, better)
	return b.String()
}
