// Package arbiter evaluates the model of capacity over the caches, and keeps the verdicts in memory.
//
//	nodes, pods, PodGroups, Queues, jobs, profiles   (caches)
//	        |  each change
//	        v
//	mirror: what they hold, and the sums over it
//	        |  at most once a second
//	        v
//	collect: who waits. If somebody does: a snapshot, and a docket for each Queue in which a gang claims room
//	        v
//	capacity.Model: review promises -> resume -> limit growth -> decide each Queue -> share surplus fairly
//	        v
//	verdicts by job (boards)  -- a verdict that changed wakes its job -->  reconcilers read and act
//
// One evaluation judges all Queues, because they share the nodes: two would give the same room away. The arbiter never writes. A
// job's reconciler reads its verdict like anything else it observes, and is the only writer of its job.
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

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/claimcache"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/dutycycle"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/topologycache"
	"github.com/tideline-io/tideline/internal/quota/admission"
	"github.com/tideline-io/tideline/internal/training/growth"
)

// interval is the least time between two evaluations.
const interval = time.Second

// Arbiter holds the verdicts.
type Arbiter struct {
	reader client.Reader
	config *config.Configuration
	log    logr.Logger
	now    func() time.Time
	// served returns whether Volcano's configuration lets it take surplus for waiting gangs.
	served func() bool
	// spent returns what users of a profile have used of accelerators in a window of time.
	spent func(profile string, window time.Duration) (admission.Spending, error)

	changed chan struct{}
	wake    chan event.GenericEvent
	// began is when Start began; zero before.
	began time.Time
	// promises are those of each queue. idle is when gangs with missing members were last seen to claim no room.
	promises map[string]capacity.Promises
	idle     map[types.NamespacedName]time.Time
	// asked is when others were first asked to leave for a waiting surplus worker.
	asked map[types.UID]time.Time
	// judgedFair is when it was last judged whether others leave for a waiting surplus worker.
	judgedFair map[types.UID]time.Time
	// told is surplus that the last evaluation told to leave for waiting surplus.
	told map[types.UID]bool
	// rooms is since when there has been room for more surplus of a job.
	rooms map[types.NamespacedName]growth.Room
	// grants are those of each profile.
	grants map[string]admission.Grants
	// actingTraining and actingMerge follow the reconcilers; nil where those have ended before the next evaluation.
	actingTraining, actingMerge Acting
	// offers are what the status of profiles shows.
	offers offers

	// devices reads what pods claim; nil for an API server without resource claims.
	devices *claimcache.Reader

	// hyperNodes reads which nodes are close to each other; nil for an API server without HyperNodes.
	hyperNodes *topologycache.Reader

	// mirror is what the watches have seen.
	mirror *mirror
	pace   pace

	// pieces is what was last found of free room in pieces.
	pieces pieces

	// foretelling bounds how much of a processor futures take.
	foretelling dutycycle.Limiter

	mu sync.RWMutex
	// watching says of each watch whether the mirror has all that there was; nil until the cluster is watched.
	watching []func() bool
	// jobs has the verdicts of ElasticTrainingJobs and of gangs that are not ours. merges has those of MergeJobs.
	jobs, merges board[capacity.Verdict]
	// turns has what the limits of profiles leave to each training, and mergeTurns to each merge that asks.
	turns, mergeTurns board[admission.Turn]
	// lapsing are the jobs whose grants may lapse in the evaluation that is under way.
	lapsing map[admission.Key]bool
	// claims are the trainings that a reservation waits for, and whether they claim room: see IsClaiming.
	claims map[types.NamespacedName]bool
	// bound are the gangs for which others leave, and whether a pod of theirs has been bound since.
	bound map[types.NamespacedName]bool
	// waiting are the gangs that claimed room in the last evaluation, if judged says that there was one.
	waiting []capacity.Gang
	judged  bool
	// wakeMerges and wakeProfiles are nil until a reader asks for them.
	wakeMerges, wakeProfiles chan event.GenericEvent
}

// CountClaims has caps count the devices that pods claim. It must be called before the arbiter starts.
func (a *Arbiter) CountClaims(r *claimcache.Reader) { a.devices = r }

// Acting returns since when a reconcile of a job is at work, or the caches may not have seen what it wrote; zero for none.
type Acting func(ctx context.Context, job types.NamespacedName) time.Time

// FollowTrainings has what was granted to a training count while a reconcile acts on it. It must be called before the arbiter
// starts.
func (a *Arbiter) FollowTrainings(acting Acting) { a.actingTraining = acting }

// FollowMerges is [Arbiter.FollowTrainings] for merges.
func (a *Arbiter) FollowMerges(acting Acting) { a.actingMerge = acting }

// GoBy has the arbiter tell the time by a clock. It must be called before the arbiter starts.
func (a *Arbiter) GoBy(now func() time.Time) { a.now = now }

// New returns an Arbiter over the caches that reader reads.
func New(
	reader client.Reader, cfg *config.Configuration, served func() bool,
	spent func(profile string, window time.Duration) (admission.Spending, error), log logr.Logger,
) *Arbiter {
	return &Arbiter{
		reader: reader, config: cfg, log: log, now: time.Now, served: served, spent: spent,
		changed: make(chan struct{}, 1), wake: make(chan event.GenericEvent),
		jobs: newBoard(soonPart), merges: newBoard(soonPart), turns: newBoard(soonTurn),
		mergeTurns: newBoard(soonTurn),
		bound:      map[types.NamespacedName]bool{}, mirror: newMirror(cfg),
	}
}

// VerdictFor is the current verdict about a training; zero if there is none.
func (a *Arbiter) VerdictFor(job types.NamespacedName) capacity.Verdict {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.jobs.verdicts[job]
}

// MergeVerdict is the current verdict about the core of a MergeJob; zero if there is none.
func (a *Arbiter) MergeVerdict(job types.NamespacedName) capacity.Verdict {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.merges.verdicts[job]
}

// IsClaiming returns whether the gang of a training is placed, or waits for room and can be served. judged is false for a
// training that was not evaluated yet, and for one that no reservation waits for.
func (a *Arbiter) IsClaiming(job types.NamespacedName) (claims, judged bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	claims, judged = a.claims[job]
	return claims, judged
}

// NoteChange tells the arbiter that something it reads has changed.
func (a *Arbiter) NoteChange() {
	select {
	case a.changed <- struct{}{}:
	default: // An evaluation is due already.
	}
}

// WakeEvents yields the ElasticTrainingJobs whose verdict changed.
func (a *Arbiter) WakeEvents() <-chan event.GenericEvent { return a.wake }

// WokenMerges yields the MergeJobs whose verdict changed. From the first call on the caller must read the channel, because the
// arbiter blocks on it. Before the first call nothing is sent.
func (a *Arbiter) WokenMerges() <-chan event.GenericEvent {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wakeMerges == nil {
		a.wakeMerges = make(chan event.GenericEvent)
	}
	return a.wakeMerges
}

// WokenProfiles yields an event when the set of trainings that claim room has changed. The caller must read it, as with
// WokenMerges.
func (a *Arbiter) WokenProfiles() <-chan event.GenericEvent {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wakeProfiles == nil {
		a.wakeProfiles = make(chan event.GenericEvent)
	}
	return a.wakeProfiles
}

// Start evaluates until ctx ends: when inputs have changed or time alone changes a verdict, at most once per interval.
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
		began := time.Now() // By this machine's clock, which measures how long it works and rests.
		next := a.restLeft(began)
		if next <= 0 {
			var err error
			if next, err = a.evaluate(ctx, a.now()); err != nil {
				a.log.Error(err, "Could not judge which gangs have room; jobs go by the last verdicts", "retryAfter", interval)
				next = interval
			} else {
				a.log.V(1).Info("Judged which gangs have room", "took", time.Since(began), "nextAfter", next)
			}
		}
		again = nil
		if next > 0 {
			again = time.After(max(next, interval))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(interval - min(interval, time.Since(began))):
		}
	}
}

// EvaluateAt evaluates once as of a time, and installs the verdicts. It is for programs whose clock is their own, which call it
// instead of Start. It returns the trainings whose verdicts changed, and after what time one changes though nothing else does;
// zero for never.
func (a *Arbiter) EvaluateAt(
	ctx context.Context, now time.Time,
) (changed []types.NamespacedName, again time.Duration, err error) {
	woken, again, err := a.decide(ctx, now)
	return woken.jobs, again, err
}

// evaluate judges every queue in which a gang waits, installs the verdicts and wakes the jobs whose verdicts changed. It returns
// after what time a verdict changes though nothing else does; zero for never.
func (a *Arbiter) evaluate(ctx context.Context, now time.Time) (time.Duration, error) {
	began := time.Now()
	woken, again, err := a.decide(ctx, now)
	if err != nil {
		return 0, err
	}
	a.pace.noteWork(began, time.Now())
	// Wake without any lock: reconcilers that run meanwhile read their verdicts.
	a.mu.RLock()
	wakeMerges, wakeProfiles := a.wakeMerges, a.wakeProfiles
	a.mu.RUnlock()
	if woken.profiles && wakeProfiles != nil && !wakeObject(ctx, wakeProfiles, &v1beta1.ResourceQuotaProfile{}) {
		return 0, nil
	}
	for _, job := range woken.jobs {
		object := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name}}
		if !wakeObject(ctx, a.wake, object) {
			return 0, nil
		}
	}
	for _, job := range woken.merges {
		object := &v1beta1.MergeJob{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name}}
		if wakeMerges != nil && !wakeObject(ctx, wakeMerges, object) {
			return 0, nil
		}
	}
	return again, nil
}

// woken is whom an evaluation wakes.
type woken struct {
	jobs, merges []types.NamespacedName
	profiles     bool
}

// decide judges and installs the verdicts.
func (a *Arbiter) decide(ctx context.Context, now time.Time) (woken, time.Duration, error) {
	// Before the mirror is read. A pod bound after this is seen as bound in the mirror, so no gang is missed; and what a reconcile
	// has written that is at work no longer is seen there.
	bound, acting := a.boundSince(), a.actingNow(ctx, now)
	m, done, err := a.mirrored(ctx)
	if err != nil {
		return woken{}, 0, err
	}
	defer done()
	c, err := a.collect(ctx, m, bound, acting, now)
	if err != nil {
		return woken{}, 0, err
	}
	judged, merges, again := a.judge(&c.in, now)
	for job, turn := range c.in.turns {
		if len(turn.GiveUp) > 0 {
			judged[job] = mergeVerdicts(judged[job], capacity.Verdict{GiveUp: turn.GiveUp, To: gangOf(turn.For)})
		}
	}
	// Without the lock: only evaluations read these, and there is one at a time.
	a.grants, a.pace.begun = c.in.grants, m.begun
	claims := c.claimsOf(judged)
	if c.in.showsFigures() && (again == 0 || again > figuresInterval) {
		again = figuresInterval // Jobs whose figures alone changed are woken then.
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watchPromised()
	wake := woken{
		jobs:     append(a.jobs.replace(judged, now), a.turns.replace(c.in.turns, now)...),
		merges:   append(a.merges.replace(merges, now), a.mergeTurns.replace(c.in.mergeTurns, now)...),
		profiles: !maps.Equal(a.claims, claims),
	}
	wake.jobs = slices.DeleteFunc(wake.jobs, func(key types.NamespacedName) bool {
		return !c.in.isTraining(key) // A gang that is not ours has no reconciler.
	})
	a.claims, a.waiting, a.judged, a.lapsing = claims, c.in.waiting(), true, nil
	return wake, again, nil
}

// gangOf is the gang of a claimant, as verdicts name it.
func gangOf(k admission.Key) types.NamespacedName {
	if k.Merge {
		return coreOf(k.NamespacedName)
	}
	return k.NamespacedName
}

// wakeObject sends an event for an object; false if ctx ended first.
func wakeObject(ctx context.Context, to chan<- event.GenericEvent, object client.Object) bool {
	select {
	case to <- event.GenericEvent{Object: object}:
		return true
	case <-ctx.Done():
		return false
	}
}

// judge returns the verdicts about jobs and gangs that are not ours, those about MergeJobs, and after what time one changes
// though nothing else does.
func (a *Arbiter) judge(in *inputs, now time.Time) (jobs, merges verdicts, again time.Duration) {
	jobs = verdicts{}
	promises := map[string]capacity.Promises{}
	if in.anybodyWaits() {
		model := in.model()
		again = in.again // The snapshot says when pods that leave are gone.
		var reviews []*capacity.Review
		var claiming []*capacity.Gang
		// Which gangs claim room is settled for all queues first: a preempted job may resume, and surplus may grow, only in room that
		// no gang of any queue claims.
		for _, queue := range slices.Sorted(maps.Keys(in.dockets)) {
			review := model.ReviewClaims(*in.dockets[queue], now)
			reviews, claiming = append(reviews, review), append(claiming, review.ClaimingGangs()...)
		}
		if g := model.ChooseResumed(in.preempted, claiming); g != nil {
			jobs[g.Job] = capacity.Verdict{Resume: true, Model: g.Model}
			claiming = append(claiming, g)
		}
		advice, act := a.repack(in, model, claiming, now)
		a.judgeGrowers(model, in.growers, claiming, jobs, now)
		for _, review := range reviews {
			review.FollowAdvice(advice, act)
			judged, standing, next := review.Decide()
			promises[review.Queue()] = standing.WithoutPlaced(in.served)
			for job, v := range judged {
				jobs[job] = mergeVerdicts(jobs[job], v)
			}
			again = kube.SoonerOf(again, next)
		}
		// After the queues: what leaves for a gang is claimed by now, and is not told to leave for surplus too.
		leave, next := in.fairly(model)
		for job, v := range leave {
			jobs[job] = mergeVerdicts(jobs[job], v)
		}
		again = kube.SoonerOf(again, next)
		in.askForCeilings(model, jobs)
		merges = splitMerges(in, model, jobs)
	} else {
		again = in.again
		a.setPieces(pieces{})
		for i := range in.growers {
			g := &in.growers[i] // It has all that it wants.
			v := capacity.Verdict{SurplusLimit: g.WholeStepsPlaced(), Unjudged: !g.IsJudged()}
			if g.Domains != nil {
				v.StepDomains = g.HeldDomains()
			}
			jobs[g.Job] = v
		}
	}
	// In a queue in which no gang waits now, ended claims keep counting: a gang that comes back must not escape its pause.
	for queue, before := range a.promises {
		if _, judged := promises[queue]; !judged {
			if remain := before.RemainingAt(now).WithoutPlaced(in.served); len(remain.Ended) > 0 {
				promises[queue] = remain
			}
		}
	}
	a.promises = promises
	return jobs, merges, again
}

// mergeVerdicts joins two verdicts about one job: its own queue says what it waits for, another queue that it must give way,
// and the division of free room how far it may grow.
func mergeVerdicts(x, y capacity.Verdict) capacity.Verdict {
	if y.Waiting > 0 {
		x.Place, x.Waiting, x.Answer, x.Holders, x.From, x.Model = y.Place, y.Waiting, y.Answer, y.Holders, y.From, y.Model
		x.Overdue, x.Since, x.Moves = y.Overdue, y.Since, y.Moves
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
