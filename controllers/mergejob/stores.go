package mergejob

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/merging/modelstore"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/fairqueue"
)

const (
	// storeTimeout bounds one reading of a store.
	storeTimeout = 30 * time.Second
	// hurryInterval is the least time between two readings of a store, and troubleInterval of one that cannot be read: it doubles
	// with each failure in a row up to lastTrouble.
	hurryInterval, troubleInterval, lastTrouble = time.Second, 10 * time.Second, 5 * time.Minute
)

// stores reads the stores of MergeJobs, a few at a time, and keeps the results. A store that does not answer delays only
// its own job.
type stores struct {
	client client.Client
	// live reads Secrets past the caches.
	live   client.Reader
	config *config.Configuration
	policy modelstore.Policy
	now    func() time.Time

	// read yields jobs whose store was read, and hurried those whose store is to be read soon.
	read, hurried chan event.GenericEvent

	mu   sync.Mutex
	seen map[types.NamespacedName]*seen
}

// seen is how a store was last read.
type seen struct {
	job      types.UID
	at       time.Time
	sighting *merging.Sighting
	// hurry is true if a decision waits for a new reading.
	hurry bool
	// failures in a row.
	failures int
}

func newStores(c client.Client, live client.Reader, cfg *config.Configuration, now func() time.Time) *stores {
	return &stores{
		client: c, live: live, config: cfg, now: now,
		policy: modelstore.Policy{Endpoints: cfg.Merges.Endpoints, LocalDirectory: cfg.Merges.LocalStores},
		read:   make(chan event.GenericEvent, 1024), hurried: make(chan event.GenericEvent, 1024),
		seen: map[types.NamespacedName]*seen{},
	}
}

func (s *stores) buildController(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("mergejob-store").
		For(&v1beta1.MergeJob{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*v1beta1.MergeJob)
			after, also := e.ObjectNew.(*v1beta1.MergeJob)
			return ok && also && (before.Generation != after.Generation || s.readInterval(before) != s.readInterval(after) ||
				before.Annotations[v1beta1.AnnotationRunNow] != after.Annotations[v1beta1.AnnotationRunNow])
		}})).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(s.noteReport)).
		WatchesRawSource(source.Channel(s.hurried, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: int(s.config.Concurrency.Stores),
			NewQueue: func(
				name string, limiter workqueue.TypedRateLimiter[reconcile.Request],
			) workqueue.TypedRateLimitingInterface[reconcile.Request] {
				return fairqueue.NewQueue(name, fairqueue.MostOfOne(int(s.config.Concurrency.Stores)), limiter)
			},
			LogConstructor: func(req *reconcile.Request) logr.Logger {
				log := mgr.GetLogger().WithName("mergejob-store")
				if req != nil {
					log = log.WithValues("job", req.String())
				}
				return log
			},
		}).
		Complete(reconcile.Func(s.reconcile))
}

// lastSighting is how the job's store was last seen; nil before this process saw it.
func (s *stores) lastSighting(job *v1beta1.MergeJob) *merging.Sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.seen[client.ObjectKeyFromObject(job)]; last != nil && last.job == job.UID {
		return last.sighting
	}
	return nil
}

// readSoon requests a reading of the store, because a decision waits for it.
func (s *stores) readSoon(job types.NamespacedName) {
	s.mu.Lock()
	last := s.seen[job]
	if last == nil || last.hurry {
		s.mu.Unlock()
		return // It is being read for the first time, or will be.
	}
	last.hurry = true
	s.mu.Unlock()
	s.wakeReconciler(s.hurried, job)
}

func (*stores) wakeReconciler(to chan<- event.GenericEvent, job types.NamespacedName) {
	object := &v1beta1.MergeJob{}
	object.Namespace, object.Name = job.Namespace, job.Name
	to <- event.GenericEvent{Object: object}
}

// readInterval is how often the store of a job is read: often while a run may complete.
func (s *stores) readInterval(job *v1beta1.MergeJob) time.Duration {
	if run := job.Status.Run; run != nil && run.RunTime != nil && run.Outcome == "" {
		return config.Seconds(s.config.Merges.RunningIntervalSeconds)
	}
	return config.Seconds(s.config.Merges.WaitingIntervalSeconds)
}

// reconcile reads the store of one job when it is time.
func (s *stores) reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	job := &v1beta1.MergeJob{}
	if err := s.client.Get(ctx, req.NamespacedName, job); err != nil {
		if apierrors.IsNotFound(err) {
			s.mu.Lock()
			delete(s.seen, req.NamespacedName)
			s.mu.Unlock()
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, err
	}
	if wait := s.timeUntilRead(req.NamespacedName, job); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	sighting, err := s.observeStore(ctx, job)
	switch {
	case ctx.Err() != nil:
		return reconcile.Result{}, nil //nolint:nilerr // the operator is ending
	case err != nil:
		return reconcile.Result{}, err
	}
	s.keepSighting(req.NamespacedName, job.UID, sighting)
	s.wakeReconciler(s.read, req.NamespacedName)
	return reconcile.Result{RequeueAfter: s.timeUntilRead(req.NamespacedName, job)}, nil
}

// timeUntilRead is how long until the store is read again; zero for now. When a merge becomes due its store is read,
// because the run needs the present list of increments.
func (s *stores) timeUntilRead(key types.NamespacedName, job *v1beta1.MergeJob) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.seen[key]
	if last == nil || last.job != job.UID {
		return 0
	}
	since, interval := s.now().Sub(last.at), s.readInterval(job)
	switch {
	case since < 0:
		return 0 // It was read by a clock that was set back since.
	case last.failures > 0:
		// Ten doublings at most, because a longer shift may overflow.
		interval = min(interval, troubleInterval<<min(last.failures-1, 10), lastTrouble)
	case last.hurry, last.sighting.Generation != job.Generation, last.sighting.RunNow != job.Annotations[v1beta1.AnnotationRunNow]:
		interval = hurryInterval
	default:
		if due := job.Status.DueTime; due != nil && due.After(last.at) {
			interval = min(interval, max(due.Sub(last.at), hurryInterval))
		}
	}
	return max(interval-since, 0)
}

func (s *stores) keepSighting(key types.NamespacedName, job types.UID, sighting *merging.Sighting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	failures := 0
	if last := s.seen[key]; last != nil && last.job == job {
		failures = last.failures
	}
	if failures++; sighting.Trouble == nil {
		failures = 0
	}
	// Without hurry, also if a decision asked meanwhile: woken by this reading, it asks again if it needs another.
	s.seen[key] = &seen{job: job, at: s.now(), sighting: sighting, failures: failures}
}

// observeStore reads the store once. Its error is one of the API server.
func (s *stores) observeStore(ctx context.Context, job *v1beta1.MergeJob) (*merging.Sighting, error) {
	seen := &merging.Sighting{Generation: job.Generation, RunNow: job.Annotations[v1beta1.AnnotationRunNow]}
	query := modelstore.Query{
		Most:    int(ptr.Deref(job.Spec.MaxIncrementsPerRun, v1beta1.DefaultIncrementsPerRun)),
		Merged:  merging.LastMerged(&job.Status),
		Earlier: merging.EarlierRuns(&job.Status),
		Window:  int(ptr.Deref(job.Spec.Window, 0)),
	}
	if full := job.Status.LastFull; full != nil {
		seen.Known, query.Known, query.After = full.Name, full.Name, full.LastIncrement
	}
	if run := job.Status.Run; run != nil {
		// Before the store: only what has ended by then is sure to show in the reading.
		pods, err := podsOf(ctx, s.client, job)
		if err != nil {
			return nil, err
		}
		seen.Attempt, seen.Run, query.Run = mergepod.AttemptName(run), run.ID, run.ID
		seen.RunOver = merging.IsOver(job, s.config.Tiers, pods, s.now())
	}
	location := locationOf(job)
	if err := s.policy.CheckLocation(location); err != nil {
		seen.Trouble = storeTrouble(err)
		return seen, nil
	}
	read := s.readBucket
	if job.Spec.Store.Type == v1beta1.StoreClaim {
		read = s.readReport
	}
	found, trouble, err := read(ctx, job, location, query)
	seen.RunComplete, seen.Trouble = found.RunComplete, trouble
	if err != nil || trouble != nil {
		return seen, err
	}
	seen.Hollow, seen.Full = found.Hollow, found.LastFull
	i := found.Increments
	seen.Increments = merging.Increments{Count: i.Count, Newest: i.NewestTime, List: i.List, Listed: i.Listed, Last: i.Last}
	return seen, nil
}

// readBucket reads a store that the operator reaches itself.
func (s *stores) readBucket(
	ctx context.Context, job *v1beta1.MergeJob, location modelstore.Location, query modelstore.Query,
) (modelstore.Observation, *merging.Trouble, error) {
	credentials, err := s.readCredentials(ctx, job)
	if err != nil {
		return modelstore.Observation{}, &merging.Trouble{Reason: v1beta1.ReasonCredentialsMissing, Message: err.Error()}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	found, err := modelstore.ObserveStore(ctx, s.policy, location, credentials, query)
	switch {
	case err == nil:
		return found, nil, nil
	case errors.Is(ctx.Err(), context.Canceled):
		return found, nil, err // The operator ends.
	}
	return found, storeTrouble(err), nil
}

// readReport reads what a ConfigMap of the job's namespace says of the job's volume. It reads past the caches, which keep no
// content, and would not tell in which order pods ended and the report changed.
func (s *stores) readReport(
	ctx context.Context, job *v1beta1.MergeJob, location modelstore.Location, query modelstore.Query,
) (modelstore.Observation, *merging.Trouble, error) {
	name, report := mergepod.ReportName(job.Name), &corev1.ConfigMap{}
	err := s.live.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: name}, report)
	if err != nil && !apierrors.IsNotFound(err) {
		return modelstore.Observation{}, nil, fmt.Errorf("read ConfigMap %s: %w", name, err)
	}
	if of, labelled := mergepod.ReportOf(report); err != nil || !labelled || of != job.Name {
		what := "does not exist"
		if err == nil {
			what = "is not labelled for this merge"
		}
		return modelstore.Observation{}, &merging.Trouble{Reason: v1beta1.ReasonReportMissing, Message: fmt.Sprintf(
			"ConfigMap %s, which reports what is in claim %s, %s: create it with label %s=%s and have trainings and merges write it; "+
				"then the merge continues by itself.", name, job.Spec.Store.Place(), what, v1beta1.LabelJob, job.Name)}, nil
	}
	found, err := modelstore.ObserveReport(s.policy, location, report.Data, query)
	if err != nil {
		trouble := storeTrouble(err)
		trouble.Message = fmt.Sprintf("ConfigMap %s, which reports what is in claim %s: %v.", name, job.Spec.Store.Place(), err)
		return found, trouble, nil
	}
	return found, nil, nil
}

// noteReport has a store read soon whose report changed.
func (s *stores) noteReport(_ context.Context, o client.Object) []reconcile.Request {
	name, ok := mergepod.ReportOf(o)
	if !ok {
		return nil
	}
	job := types.NamespacedName{Namespace: o.GetNamespace(), Name: name}
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.seen[job]
	if last == nil {
		return nil // It is no MergeJob's, or will be read for the first time.
	}
	last.hurry, last.failures = true, 0
	return []reconcile.Request{{NamespacedName: job}}
}

func locationOf(job *v1beta1.MergeJob) modelstore.Location {
	store := &job.Spec.Store
	endpoint, _ := store.Server()
	return modelstore.Location{
		Type: string(store.Type), Endpoint: endpoint, Region: mergepod.StoreRegion(store), Bucket: store.Place(),
		Prefix: store.Prefix, Increments: store.Increments, Full: store.Full, Marker: store.CompletionMarker,
	}
}

// readCredentials reads the job's Secret from the job's namespace. Its error is for users.
func (s *stores) readCredentials(ctx context.Context, job *v1beta1.MergeJob) (modelstore.Credentials, error) {
	name := job.Spec.Store.CredentialsSecret()
	if job.Spec.Store.Type != v1beta1.StoreS3 {
		return modelstore.Credentials{}, nil
	}
	secret := &corev1.Secret{}
	switch err := s.live.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: name}, secret); {
	case apierrors.IsNotFound(err):
		return modelstore.Credentials{}, fmt.Errorf( //nolint:staticcheck // a kind, for users
			"Secret %s of spec.store.s3.credentialsRef does not exist: create it with the keys AWS_ACCESS_KEY_ID and "+
				"AWS_SECRET_ACCESS_KEY; then the merge continues by itself", name)
	case err != nil:
		return modelstore.Credentials{}, fmt.Errorf("the operator cannot read Secret %s: %w", name, err)
	}
	credentials, err := modelstore.CredentialsOf(secret.Data)
	if err != nil {
		return credentials, fmt.Errorf("Secret %s: %w", name, err) //nolint:staticcheck // a kind, for users
	}
	return credentials, nil
}

// reasons are those of the API, by those of the store.
var reasons = map[modelstore.Reason]string{
	modelstore.Forbidden:           v1beta1.ReasonStoreForbidden,
	modelstore.BucketNotFound:      v1beta1.ReasonBucketNotFound,
	modelstore.Unreachable:         v1beta1.ReasonStoreUnreachable,
	modelstore.EndpointNotAllowed:  v1beta1.ReasonStoreNotAllowed,
	modelstore.StoreTypeNotAllowed: v1beta1.ReasonStoreNotAllowed,
	modelstore.Invalid:             v1beta1.ReasonStoreInvalid,
	modelstore.ReportInvalid:       v1beta1.ReasonReportInvalid,
	modelstore.Refused:             v1beta1.ReasonStoreUnreachable,
}

// storeTrouble turns an error of the store into reason and message of a condition.
func storeTrouble(err error) *merging.Trouble {
	t := &merging.Trouble{Reason: v1beta1.ReasonStoreUnreachable, Message: asSentence(err.Error())}
	var known *modelstore.Error
	if errors.As(err, &known) {
		t.Reason = reasons[known.Reason]
		t.Stalled = t.Reason == v1beta1.ReasonStoreNotAllowed
	}
	return t
}

// asSentence makes a sentence of an error message.
func asSentence(words string) string {
	if words == "" {
		return words
	}
	return strings.ToUpper(words[:1]) + strings.TrimSuffix(words[1:], ".") + "."
}
