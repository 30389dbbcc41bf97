package whatifasker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/moment"
	"github.com/tideline-io/tideline/internal/quota/admission"
	"github.com/tideline-io/tideline/internal/quota/whatif"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/ledger/decisionlog"
)

// mostPodDays is how many pods are read at most, one that was there on two days counted twice. Each takes a kilobyte or two, in
// an operator whose limit is 512 MiB.
const mostPodDays = 50_000

// errTooMuch is for a time in which more ran than is read.
var errTooMuch = errors.New("more ran in that time than can be played again: ask for a shorter time")

// readPast reads what ran from one time to another.
func readPast(ctx context.Context, l *ledger.Ledger, from, to time.Time) (*whatif.Past, error) {
	known, err := l.KnownSince(ctx)
	if err != nil {
		return nil, err
	}
	stays, err := readStays(ctx, l, from, to)
	if err != nil {
		return nil, err
	}
	ran, tooMuch := map[attempt]start{}, false
	err = l.EachDecision(ctx, ledger.DecisionQuery{From: from, To: to, Kinds: []string{decisionlog.Ran}},
		func(d *ledger.Decision) {
			if tooMuch = tooMuch || len(ran) == mostPodDays; !tooMuch {
				ran[attempt{d.Namespace, d.Name, d.Attempt}] = startOf(d)
			}
		})
	if err != nil {
		return nil, err
	}
	if tooMuch {
		return nil, errTooMuch
	}
	past := newPast(stays, ran, from, to)
	past.KnownSince = known
	return past, nil
}

// readStays reads the pods that were there between two times.
func readStays(ctx context.Context, l *ledger.Ledger, from, to time.Time) ([]ledger.Stay, error) {
	stays, pods := map[string]ledger.Stay{}, int64(0)
	for day := from.UTC().Truncate(24 * time.Hour); day.Before(to); day = day.AddDate(0, 0, 1) {
		tasks, err := l.TasksOf(ctx, day)
		if err != nil {
			return nil, err
		}
		for i := range tasks {
			pods += tasks[i].Pods
		}
		if pods > mostPodDays {
			return nil, errTooMuch
		}
		of, err := l.StaysOf(ctx, tasks...)
		if err != nil {
			return nil, err
		}
		for i := range of {
			if s := of[i]; (!s.Final || s.End.After(from)) && s.Begin.Before(to) {
				stays[s.UID] = s
			}
		}
	}
	all := make([]ledger.Stay, 0, len(stays))
	for _, s := range stays {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b ledger.Stay) int { return cmp.Or(a.Begin.Compare(b.Begin), strings.Compare(a.UID, b.UID)) })
	return all, nil
}

// attempt names one of a training.
type attempt struct{ namespace, job, id string }

// start is what a decision says of how an attempt began to run.
type start struct {
	at time.Time
	// waited is how long it had waited; less than 0 for unknown. workers is how many its core has; 0 for unknown.
	waited  time.Duration
	workers int
}

func startOf(d *ledger.Decision) start {
	s := start{at: d.At, waited: -1, workers: leastWorkers(d.Figures[decisionlog.Workers])}
	if seconds, err := strconv.ParseInt(d.Figures[decisionlog.WaitedSeconds], 10, 64); err == nil {
		s.waited = time.Duration(seconds) * time.Second
	}
	return s
}

// newPast sorts pods, by their begin, into runs and others. ran says of attempts when their cores began to run.
func newPast(stays []ledger.Stay, ran map[attempt]start, from, to time.Time) *whatif.Past {
	past, cores := &whatif.Past{From: from, To: to}, map[attempt][]ledger.Stay{}
	var order []attempt
	for i := range stays {
		s := &stays[i]
		if !s.Final {
			s.End = to // It was not seen to end.
		}
		job, isWorker := jobOf(s)
		switch {
		case len(s.Resources) == 0:
		case !isWorker:
			past.Others = append(past.Others, newOther(s, from, to))
		case s.Role != v1beta1.PartSurplus:
			of := attempt{s.Namespace, job, s.Run}
			if cores[of] == nil {
				order = append(order, of)
			}
			cores[of] = append(cores[of], *s)
		}
	}
	for _, of := range order {
		began, known := ran[of]
		if !known {
			began.waited = -1
		}
		past.Runs = append(past.Runs, newRun(of, cores[of], began, from, to))
	}
	slices.SortStableFunc(past.Runs, func(a, b whatif.Run) int { return a.Came.Compare(b.Came) })
	return past
}

// jobOf is the training that a pod was a worker of, by the pod's name; false for any other pod.
func jobOf(s *ledger.Stay) (string, bool) {
	if s.Kind != v1beta1.ElasticTrainingJobKind || s.Run == "" {
		return "", false
	}
	job := rendezvous.JobOfPod(s.Name)
	_, _, is := rendezvous.ReadName(job, s.Name)
	return job, is
}

// newRun is an attempt by the pods of its core: one of each worker, and those that took the place of others later.
func newRun(of attempt, core []ledger.Stay, began start, from, to time.Time) whatif.Run {
	first := &core[0]
	r := whatif.Run{
		Namespace: of.namespace, Name: of.job + "/" + of.id, Job: of.job, User: first.User, Tier: first.Tier, Queue: first.Queue,
		Profile: first.Profile, Model: first.Model, Came: first.Begin, Started: first.Begin, Began: first.Begin.Before(from),
	}
	if began.waited >= 0 {
		r.Came = began.at.Add(-began.waited)
	}
	r.Asked = r.Came
	seen := map[string]bool{}
	var workers, later []ledger.Stay
	for i := range core {
		s := &core[i]
		r.Ended = moment.LaterOf(r.Ended, s.End)
		r.Ongoing = r.Ongoing || !s.Final || s.End.After(to)
		if seen[s.Name] {
			later = append(later, *s)
			continue
		}
		seen[s.Name] = true
		workers = append(workers, *s)
	}
	n := countAtOnce(core)
	if began.workers > 0 {
		n = min(n, began.workers)
	}
	for _, s := range slices.Concat(workers, later)[:n] {
		r.Core = append(r.Core, amountsOf(s.Resources))
	}
	r.Started, r.Ended = moment.LaterOf(r.Started, from), moment.EarlierOf(r.Ended, to)
	r.Came = moment.EarlierOf(moment.LaterOf(r.Came, from), r.Started)
	r.Known = began.waited >= 0
	return r
}

// countAtOnce is how many pods were there at once at most.
func countAtOnce(stays []ledger.Stay) int {
	type change struct {
		at time.Time
		by int
	}
	var changes []change
	for i := range stays {
		// The ledger counts whole seconds, and many a pod has none.
		left := moment.LaterOf(stays[i].End, stays[i].Begin.Add(time.Second))
		changes = append(changes, change{stays[i].Begin, 1}, change{left, -1})
	}
	// At one moment who leaves goes first.
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.by, b.by)) })
	most, now := 1, 0
	for _, c := range changes {
		now += c.by
		most = max(most, now)
	}
	return most
}

// leastWorkers is the lower end of a range like 2..8; 0 for what is none.
func leastWorkers(of string) int {
	lower, _, _ := strings.Cut(of, "..")
	n, err := strconv.Atoi(lower)
	if err != nil {
		return 0
	}
	return n
}

func newOther(s *ledger.Stay, from, to time.Time) whatif.Other {
	part := s.ClippedTo(from, to)
	return whatif.Other{
		Namespace: s.Namespace, User: s.User, Queue: s.Queue, Profile: s.Profile, Model: s.Model, Node: s.Node,
		Merging: s.Kind == v1beta1.MergeJobKind, Holds: amountsOf(s.Resources), Begin: part.Begin, End: part.End,
	}
}

// amountsOf converts what the ledger has: MiB to bytes, and thousandths to themselves.
func amountsOf(held ledger.Resources) admission.MilliAmounts {
	amounts := make(admission.MilliAmounts, len(held))
	for name, amount := range held {
		of := corev1.ResourceName(name)
		if capacity.IsBytes(of) {
			amount <<= 20
		}
		amounts[of] = amount
	}
	return amounts
}
