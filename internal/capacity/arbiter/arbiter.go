// Package arbiter evaluates, for each Volcano Queue in which somebody waits, the one model of capacity over what the caches
// hold, and keeps the verdicts in memory. It never writes: a job's reconciler reads its verdict and is the only writer of its
// job. A verdict wakes a job only when it changed.
package arbiter

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/quota/admission"
)

// interval is the least time between two evaluations.
const interval = time.Second

// Arbiter holds the verdicts.
type Arbiter struct {
	reader client.Reader
	config *config.Configuration
	log    logr.Logger
	now    func() time.Time
	// served tells whether Volcano itself lets surplus give way.
	served func() bool
	// spent tells what users of a profile have used of accelerators in a window of time.
	spent func(profile string, window time.Duration) (admission.Spending, error)

	changed chan struct{}
	wake    chan event.GenericEvent
	// began is when it began to evaluate; zero before.
	began time.Time
	// promises are those of each queue, and idle is when gangs with members missing were last seen to claim no room.
	promises map[string]capacity.Promises
	idle     map[types.NamespacedName]time.Time
	// asked is when others were first told to leave for a surplus worker.
	asked map[types.UID]time.Time
	// grants are those of each profile.
	grants map[string]admission.Grants
	// offers are what profiles show; nobody else asks for them.
	offers offers

	mu sync.RWMutex
	// jobs has the verdicts of ElasticTrainingJobs, and of gangs that are not ours; merges has those of MergeJobs.
	jobs, merges board[capacity.Verdict]
	// turns has whose turn it is under the limits of profiles.
	turns board[admission.Turn]
	// claims tells of each training whether it claims room, as Claims says.
	claims map[types.NamespacedName]bool
	// bound are the gangs for which others leave, and whether a pod of theirs was bound since they were asked to.
	bound map[types.NamespacedName]bool
	// wakeMerges and wakeProfiles are nil as long as nobody reads them.
	wakeMerges, wakeProfiles chan event.GenericEvent
}

// New returns an Arbiter over the caches that reader reads.
func New(
	reader client.Reader, cfg *config.Configuration, served func() bool,
	spent func(profile string, window time.Duration) (admission.Spending, error), log logr.Logger,
) *Arbiter {
	return &Arbiter{
		reader: reader, config: cfg, log: log, now: time.Now, served: served, spent: spent,
		changed: make(chan struct{}, 1), wake: make(chan event.GenericEvent),
		jobs: newBoard(soon), merges: newBoard(soon), turns: newBoard(soonTurn),
		bound: map[types.NamespacedName]bool{},
	}
}

// Verdict is the current verdict of a job; the zero Verdict for a job that has none.
func (a *Arbiter) Verdict(job types.NamespacedName) capacity.Verdict {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.jobs.verdicts[job]
}

// MergeVerdict is the current verdict of a MergeJob, whose gang is its core; the zero Verdict for one that has none.
func (a *Arbiter) MergeVerdict(job types.NamespacedName) capacity.Verdict {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.merges.verdicts[job]
}

// Claims tells whether the gang of a training waits for room and can be served, or has it already. Judged is false for a training
// that was not looked at yet.
func (a *Arbiter) Claims(job types.NamespacedName) (claims, judged bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	claims, judged = a.claims[job]
	return claims, judged
}

// Changed tells the arbiter that something it reads has changed.
func (a *Arbiter) Changed() {
	select {
	case a.changed <- struct{}{}:
	default: // It knows already.
	}
}

// Woken yields the ElasticTrainingJobs whose verdict changed.
func (a *Arbiter) Woken() <-chan event.GenericEvent { return a.wake }

// WokenMerges yields the MergeJobs whose verdict changed. From its first call on somebody must read them: the arbiter waits for
// it. As long as nobody asks, none are told.
func (a *Arbiter) WokenMerges() <-chan event.GenericEvent {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wakeMerges == nil {
		a.wakeMerges = make(chan event.GenericEvent)
	}
	return a.wakeMerges
}

// WokenProfiles yields an event when other trainings than before claim room. As with WokenMerges, who asks must read.
func (a *Arbiter) WokenProfiles() <-chan event.GenericEvent {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wakeProfiles == nil {
		a.wakeProfiles = make(chan event.GenericEvent)
	}
	return a.wakeProfiles
}

// Start evaluates until ctx ends, when inputs changed or when time alone changes a judgement, at most once per interval.
func (a *Arbiter) Start(ctx context.Context) error {
	a.began = a.now()
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.changed:
		case <-again:
		}
		began := a.now()
		next, err := a.evaluate(ctx, began)
		if err != nil {
			a.log.Error(err, "Cannot evaluate; the last verdicts stand")
			next = interval
		}
		again = nil
		if next > 0 {
			again = time.After(max(next, interval))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(interval - min(interval, a.now().Sub(began))):
		}
	}
}

// evaluate judges every queue in which somebody waits, and returns when time alone changes a judgement; zero for never.
func (a *Arbiter) evaluate(ctx context.Context, now time.Time) (time.Duration, error) {
	inputs, err := a.collect(ctx, now)
	if err != nil {
		return 0, err
	}
	judged, merges, again := a.judge(&inputs, now)
	for job, turn := range inputs.turns {
		if len(turn.GiveUp) > 0 {
			judged[job] = merge(judged[job], capacity.Verdict{GiveUp: turn.GiveUp, To: turn.For})
		}
	}
	a.grants = inputs.grants
	claims := inputs.claimsOf(judged)
	if len(judged)+len(merges)+len(inputs.turns) > 0 && (again == 0 || again > figuresInterval) {
		again = figuresInterval // Figures that changed meanwhile are told then.
	}
	a.mu.Lock()
	a.watchPromised()
	jobs, wakeMerges, wakeProfiles := a.jobs.replace(judged, now), a.wakeMerges, a.wakeProfiles
	mergeJobs := a.merges.replace(merges, now)
	jobs = append(jobs, a.turns.replace(inputs.turns, now)...)
	others := !maps.Equal(a.claims, claims)
	a.claims = claims
	a.mu.Unlock()
	if others && wakeProfiles != nil && !wake(ctx, wakeProfiles, &v1alpha1.ResourceQuotaProfile{}) {
		return 0, nil
	}
	for _, job := range jobs {
		if !inputs.jobs[job] {
			continue // A gang that is not ours has nobody to wake.
		}
		object := &v1alpha1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name}}
		if !wake(ctx, a.wake, object) {
			return 0, nil
		}
	}
	for _, job := range mergeJobs {
		object := &v1alpha1.MergeJob{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name}}
		if wakeMerges != nil && !wake(ctx, wakeMerges, object) {
			return 0, nil
		}
	}
	return again, nil
}

// wake tells whoever reads; it is false when ctx ended meanwhile.
func wake(ctx context.Context, to chan<- event.GenericEvent, object client.Object) bool {
	select {
	case to <- event.GenericEvent{Object: object}:
		return true
	case <-ctx.Done():
		return false
	}
}

// judge returns the verdicts of jobs and of gangs that are not ours, those of MergeJobs, and when time alone changes one.
func (a *Arbiter) judge(in *inputs, now time.Time) (jobs, merges verdicts, again time.Duration) {
	jobs, again = verdicts{}, in.again
	promises := map[string]capacity.Promises{}
	if len(in.dockets)+len(in.growers)+len(in.preempted)+len(in.ceilings)+in.fairClaims() > 0 {
		model := capacity.New(in.snapshot)
		var reviews []*capacity.Review
		var claiming []*capacity.Gang
		for _, queue := range slices.Sorted(maps.Keys(in.dockets)) {
			review := model.Review(*in.dockets[queue], now)
			reviews, claiming = append(reviews, review), append(claiming, review.Claiming()...)
		}
		if g := model.Resume(in.preempted, claiming); g != nil {
			jobs[g.Job] = capacity.Verdict{Resume: true, Model: g.Model}
			claiming = append(claiming, g)
		}
		for job, limit := range model.LimitGrowth(in.growers, claiming) {
			jobs[job] = capacity.Verdict{SurplusLimit: limit}
		}
		for _, review := range reviews {
			judged, standing, next := review.Decide()
			promises[review.Queue()] = standing.Without(in.served)
			for job, v := range judged {
				jobs[job] = merge(jobs[job], v)
			}
			again = kube.Sooner(again, next)
		}
		leave, next := in.fairly(model)
		for job, v := range leave {
			jobs[job] = merge(jobs[job], v)
		}
		again = kube.Sooner(again, next)
		in.askForReserved(model, jobs)
		merges = splitMerges(in, model, jobs)
	}
	for queue, before := range a.promises {
		if _, judged := promises[queue]; !judged {
			if remain := before.Remaining(now).Without(in.served); len(remain.Ended) > 0 {
				promises[queue] = remain
			}
		}
	}
	a.promises = promises
	return jobs, merges, again
}

// merge joins what two judgements say of one job: its own queue what it waits for, another's that it must give way, and the
// sharing of room how far it may grow.
func merge(x, y capacity.Verdict) capacity.Verdict {
	if y.Waiting > 0 {
		x.Place, x.Waiting, x.Answer, x.Holders, x.From, x.Model = y.Place, y.Waiting, y.Answer, y.Holders, y.From, y.Model
		x.Overdue, x.Since = y.Overdue, y.Since
	}
	x.InVain = append(x.InVain, y.InVain...)
	if y.Preempt != nil {
		x.Preempt = y.Preempt
	}
	if len(y.GiveUp) > 0 {
		x.GiveUp, x.To = append(x.GiveUp, y.GiveUp...), y.To
	}
	return x
}
