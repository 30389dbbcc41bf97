package recorder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/claimcache"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// +kubebuilder:rbac:groups=tideline.io,resources=resourcequotaprofiles,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch
// +kubebuilder:rbac:groups=scheduling.volcano.sh,resources=podgroups,verbs=list;watch

const (
	// endsInterval is how soon begins and ends are recorded, seenInterval how often all that run are, and pruneInterval how often
	// what is too old is deleted. They are counted in turns, so that setting the clock has no effect.
	endsInterval, seenInterval, pruneInterval = 5 * time.Second, time.Minute, 6 * time.Hour
	pruneTurns                                = int(pruneInterval / endsInterval)
	// batch is how many stays are recorded in one transaction.
	batch = 2000
	// How long the ledger may take to open, to record a batch, to answer, and to delete what is too old.
	openTimeout, recordTimeout, readTimeout, pruneTimeout = 30 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute
	// lastTimeout is how long the last may take: another operator begins to lead once this one has ended.
	lastTimeout = 2 * time.Second
	// First and last wait after a failure, which doubles in between.
	firstRetry, lastRetry = time.Second, time.Minute
)

// Ledger is what the recorder needs of one: a [ledger.Ledger].
type Ledger interface {
	RecordEntries(context.Context, ledger.Entries) error
	OpenStays(context.Context) ([]ledger.Stay, error)
	QueryUsage(context.Context, ledger.Query) ([]ledger.Total, error)
	HeldByQueue(ctx context.Context, kind, role string, from, to time.Time) (map[string]time.Duration, error)
	SumDecisions(ctx context.Context, q ledger.DecisionQuery, by, sum string) (map[string]int64, error)
	EachDecision(context.Context, ledger.DecisionQuery, func(*ledger.Decision)) error
	PruneBefore(context.Context, time.Time) (int64, error)
	KnownSince(context.Context) (time.Time, error)
	Close() error
}

// Recorder keeps the ledger, in the leading operator only. If no ledger is configured it does nothing.
type Recorder struct {
	backlog
	spendings
	growths    growths
	suspicions suspicions

	open  func(context.Context) (Ledger, error)
	place func(context.Context, *corev1.Pod) Place
	// pods is the informer's store, and synced holds once the handler was told of all that was in it at first.
	pods toolscache.Store
	// trainings and merges are those in the cache.
	trainings, merges toolscache.Store
	// measure measures how much is free, and is false while Volcano is not there. The room of the time measured is recorded, or was
	// not measured.
	measure  func(context.Context) (room capacity.Fragmentation, there bool, err error)
	measured time.Time

	synced toolscache.InformerSynced
	config *config.Configuration
	// keeping is whether the ledger outlives the pod.
	keeping Keeping
	log     logr.Logger
	now     func() time.Time
	// complete is when last all that ran was recorded.
	complete atomic.Pointer[time.Time]
	// unpruned counts the turns since what is too old was last deleted, in whatever session.
	unpruned int
}

// NewRecorder returns one that knows and does nothing until Setup. now tells the time.
func NewRecorder(cfg *config.Configuration, now func() time.Time, log logr.Logger) *Recorder {
	return &Recorder{config: cfg, log: log, now: now}
}

// LookForVolume finds whether the ledger outlives the operator's pod, and logs it. It is called once, before Setup. Namespace is
// the operator's own, empty outside the cluster.
func (r *Recorder) LookForVolume(ctx context.Context, reader client.Reader, namespace string) Keeping {
	found, err := FindKeeping(ctx, reader, namespace, r.config.Ledger)
	switch {
	case err != nil:
		r.log.Error(err, "It is unknown whether the ledger outlives the operator's pod")
	case found.Volatile != "":
		r.log.Info("The ledger is volatile: budgets and reports begin anew with each pod; keep it on a claim, or in PostgreSQL",
			"why", found.Volatile)
	}
	r.keeping = found
	return found
}

// Measurer measures how much of all accelerators is free, and how much of that is of no use to the gangs that there are. It is
// asked only while Volcano's kinds are served.
type Measurer interface {
	MeasureFragmentation(context.Context) (capacity.Fragmentation, error)
}

// Setup adds the recorder to the manager, if the configuration says where the ledger is.
func (r *Recorder) Setup(
	ctx context.Context, mgr ctrl.Manager, volcano *kube.Kinds, measurer Measurer, claims *claimcache.Reader,
) error {
	cfg := r.config
	if !cfg.Ledger.IsConfigured() {
		r.log.Info("No ledger is kept, because neither ledger.file nor ledger.postgresDSNFile is set")
		return nil
	}
	nodes, err := kube.StoreOf(ctx, mgr.GetCache(), &corev1.Node{})
	if err != nil {
		return err
	}
	if r.pods, err = kube.StoreOf(ctx, mgr.GetCache(), &corev1.Pod{}); err != nil {
		return err
	}
	if r.trainings, err = kube.StoreOf(ctx, mgr.GetCache(), &v1beta1.ElasticTrainingJob{}); err != nil {
		return err
	}
	if r.merges, err = kube.StoreOf(ctx, mgr.GetCache(), &v1beta1.MergeJob{}); err != nil {
		return err
	}
	where := &places{reader: mgr.GetClient(), nodes: nodes, volcano: volcano, now: r.now, claims: claims}
	r.open = func(ctx context.Context) (Ledger, error) { return OpenLedger(ctx, cfg.Ledger) }
	r.place = where.findPlace
	r.measure = func(ctx context.Context) (room capacity.Fragmentation, there bool, err error) {
		if volcano.MissingKinds() != "" {
			return room, false, nil
		}
		room, err = measurer.MeasureFragmentation(ctx)
		return room, true, err
	}
	r.metrics = newMetrics(func() float64 { return float64(r.size()) })
	r.metrics.setKeeping(r.keeping)
	informer, err := mgr.GetCache().GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		return fmt.Errorf("cache pods for the ledger: %w", err)
	}
	registration, err := informer.AddEventHandler(r.podHandler(ctx))
	if err != nil {
		return fmt.Errorf("watch pods for the ledger: %w", err)
	}
	r.synced = registration.HasSynced
	if err := ctrlmetrics.Registry.Register(r.metrics); err != nil {
		return fmt.Errorf("register the metrics of the ledger: %w", err)
	}
	if err := mgr.Add(r); err != nil {
		return fmt.Errorf("add the recorder of the ledger: %w", err)
	}
	return nil
}

// OpenLedger opens the ledger where it is, and makes it or brings it up to date. The DSN is read each time: a Secret may have
// changed.
func OpenLedger(ctx context.Context, at config.Ledger) (*ledger.Ledger, error) {
	if folder := filepath.Dir(at.File); at.PostgresDSNFile == "" && !isFolder(folder) {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return nil, fmt.Errorf("make the folder of the ledger (ledger.file): %w", err)
		}
	}
	options, err := optionsOf(at)
	if err != nil {
		return nil, err
	}
	return ledger.Open(ctx, options)
}

// ReadLedger opens the ledger where it is, to read what it has, in operators that do not lead too: it changes nothing, and waits
// for nobody who writes.
func ReadLedger(ctx context.Context, at config.Ledger) (*ledger.Ledger, error) {
	options, err := optionsOf(at)
	if err != nil {
		return nil, err
	}
	return ledger.OpenToRead(ctx, options)
}

func optionsOf(at config.Ledger) (ledger.Options, error) {
	if at.PostgresDSNFile == "" {
		return ledger.Options{File: at.File}, nil
	}
	dsn, err := os.ReadFile(at.PostgresDSNFile)
	if err != nil {
		return ledger.Options{}, fmt.Errorf("read the DSN of the ledger (ledger.postgresDSNFile): %w", err)
	}
	return ledger.Options{PostgresDSN: strings.TrimSpace(string(dsn))}, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// NeedLeaderElection has the recorder run in one operator at a time.
func (*Recorder) NeedLeaderElection() bool { return true }

// Start keeps the ledger until ctx ends. It returns no error: the operator runs on, whatever is wrong with the ledger.
func (r *Recorder) Start(ctx context.Context) error {
	r.beginLeading()
	r.unpruned = pruneTurns // due at once
	// closeGap takes pods that are not in the cache for lost.
	if !toolscache.WaitForCacheSync(ctx.Done(), r.synced) {
		return nil
	}
	for retry := firstRetry; ; retry = min(2*retry, lastRetry) {
		wrote, err := r.runSession(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the operator is ending
		}
		// The pause doubles only while nothing can be written. A ledger that worked for a while is tried again soon.
		if wrote {
			retry = firstRetry
		}
		r.metrics.failures.Inc()
		r.log.Error(err, "Cannot write the ledger; entries wait in memory, trying again", "after", retry.String(),
			"waiting", r.size())
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retry):
		}
	}
}

// runSession opens the ledger, closes the gap since it was last written, and keeps it until something fails or ctx ends. It
// reports whether it wrote anything.
func (r *Recorder) runSession(ctx context.Context) (wrote bool, err error) {
	limited, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	l, err := r.open(limited)
	if err != nil {
		return false, err
	}
	defer func() {
		if ctx.Err() != nil { // also one that ended in the middle of a write
			r.recordRemaining(l)
		}
		_ = l.Close()
	}()
	// First of all: jobs wait for what is known of budgets.
	r.readSpendings(ctx, l, true)
	// In every session, and not only at the start: while the ledger was away, the backlog may have dropped ends.
	if err := r.closeGap(ctx, l); err != nil {
		return false, err
	}
	r.log.Info("The ledger is open", "waiting", r.size())
	turns := time.NewTicker(endsInterval)
	defer turns.Stop()
	for turn := 0; ; turn++ {
		select {
		case <-ctx.Done():
			return wrote, nil
		case <-turns.C:
		}
		// Also in the first turn: until it has recorded all that run, CompleteUntil says nothing.
		all := turn%int(seenInterval/endsInterval) == 0
		if err := r.writeWaiting(ctx, l, all); err != nil {
			return wrote, err
		}
		wrote = true
		// Before what may take minutes: jobs wait for what is known of budgets.
		r.readSpendings(ctx, l, all)
		if r.unpruned++; r.unpruned >= pruneTurns {
			r.unpruned = 0
			r.pruneLedger(ctx, l)
		}
		r.readGrowth(ctx, l)
		if err := r.recordRoom(ctx, l); err != nil {
			return wrote, err
		}
	}
}

// closeGap records the ends of pods that ended while no operator was running. Pods that still exist tell when, at least
// about. How the others ended is unknown.
func (r *Recorder) closeGap(ctx context.Context, l Ledger) error {
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	stays, err := l.OpenStays(limited)
	if err != nil {
		return err
	}
	sighted := make(map[types.UID]time.Time, len(stays))
	for i := range stays {
		pod := types.UID(stays[i].UID)
		r.noteOpened(pod)
		sighted[pod] = stays[i].End
	}
	there := map[types.UID]bool{}
	for _, pod := range r.allPods() {
		there[pod.UID] = true
		if pod.Spec.NodeName != "" && hasEnded(pod) {
			r.keepEnded(ctx, pod, pastEnd(sighted[pod.UID]))
		}
	}
	for i := range stays {
		if pod := types.UID(stays[i].UID); !there[pod] {
			r.keepEnd(pod, lostStay(stays[i]))
		}
	}
	if err := r.recallDecisions(ctx, l); err != nil {
		return err
	}
	return r.recallSuccesses(ctx, l)
}

// allPods are the pods in the cache. Callers must not change them.
func (r *Recorder) allPods() []*corev1.Pod {
	list := r.pods.List()
	pods := make([]*corev1.Pod, 0, len(list))
	for _, o := range list {
		if pod, ok := o.(*corev1.Pod); ok {
			pods = append(pods, pod)
		}
	}
	return pods
}

// keepEnded keeps the end of a pod that counts, or that the ledger has as running.
func (r *Recorder) keepEnded(ctx context.Context, pod *corev1.Pod, how end) {
	place := r.place(ctx, pod)
	if IsCounted(pod, place) || r.isKnown(pod.UID) {
		r.keepEnd(pod.UID, how(pod, place, r.config, r.now()))
	}
}

// writeWaiting records what waits, and, if all is true, all that run.
func (r *Recorder) writeWaiting(ctx context.Context, l Ledger, all bool) error {
	// The time before the first read of the cache. What begins while this writes is only in the next round.
	began := r.now()
	decisions := r.takeDecisions()
	for part := range slices.Chunk(decisions, batch) {
		if err := r.recordEntries(ctx, l, ledger.Entries{Decisions: part}); err != nil {
			r.giveBack(decisions)
			return err
		}
	}
	if err := r.writeTrained(ctx, l); err != nil {
		return err
	}
	for part := range slices.Chunk(r.waitingStays(), batch) {
		if err := r.recordStays(ctx, l, part); err != nil {
			return err
		}
	}
	if all {
		for part := range slices.Chunk(r.allPods(), batch) {
			if err := r.recordStays(ctx, l, r.runningStays(ctx, part)); err != nil {
				return err
			}
		}
		r.complete.Store(&began)
	}
	r.metrics.setRecorded(r.now())
	return nil
}

// CompleteUntil is until when the ledger has all stays; zero before this operator has recorded any.
func (r *Recorder) CompleteUntil() time.Time {
	if at := r.complete.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// runningStays are the stays of those pods that go on.
func (r *Recorder) runningStays(ctx context.Context, pods []*corev1.Pod) []ledger.Stay {
	stays := make([]ledger.Stay, 0, len(pods))
	for _, pod := range pods {
		if pod.Spec.NodeName == "" || hasEnded(pod) {
			continue
		}
		// A pod that is already recorded counts to its end, even if its namespace has left its profile meanwhile.
		if place := r.place(ctx, pod); IsCounted(pod, place) || r.isKnown(pod.UID) {
			stays = append(stays, StayOf(pod, place, r.config, r.now()))
		}
	}
	return stays
}

func (r *Recorder) recordStays(ctx context.Context, l Ledger, stays []ledger.Stay) error {
	if err := r.recordEntries(ctx, l, ledger.Entries{Stays: stays}); err != nil {
		return err
	}
	r.forgetRecorded(stays)
	return nil
}

// recordEntries records stays, decisions or trainings. An entry that the ledger refuses for good is left out, so that it does not
// hold up all others.
func (r *Recorder) recordEntries(ctx context.Context, l Ledger, e ledger.Entries) error {
	limited, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	err := l.RecordEntries(limited, e)
	switch stays, decisions, trained := len(e.Stays), len(e.Decisions), len(e.Trained); {
	case err == nil:
		r.metrics.recorded.Add(float64(stays))
		return nil
	case !errors.Is(err, ledger.ErrInvalid):
		return err
	// The ledger records all entries of a call or none, and does not say which one it refuses. Halving finds it in few calls.
	case stays+decisions+trained > 1:
		first := ledger.Entries{
			Stays: e.Stays[:stays/2], Decisions: e.Decisions[:decisions/2], Trained: e.Trained[:trained/2],
		}
		if err := r.recordEntries(ctx, l, first); err != nil {
			return err
		}
		return r.recordEntries(ctx, l, ledger.Entries{
			Stays: e.Stays[stays/2:], Decisions: e.Decisions[decisions/2:], Trained: e.Trained[trained/2:],
		})
	default:
		r.metrics.stays.Add(float64(stays))
		r.metrics.decisions.Add(float64(decisions))
		r.metrics.trained.Add(float64(trained))
		r.log.Error(err, "The ledger refused an entry, dropping it")
		return nil
	}
}

func (r *Recorder) pruneLedger(ctx context.Context, l Ledger) {
	if r.config.Ledger.RetentionDays == 0 {
		return
	}
	limited, cancel := context.WithTimeout(ctx, pruneTimeout)
	defer cancel()
	if _, err := l.PruneBefore(limited, r.now().AddDate(0, 0, -int(r.config.Ledger.RetentionDays))); err != nil && ctx.Err() == nil {
		r.metrics.failures.Inc()
		r.log.Error(err, "Cannot delete old entries of the ledger, trying again", "after", pruneInterval.String())
	}
}

// recordRemaining records what waits when the operator ends. The next operator sees what still runs.
func (r *Recorder) recordRemaining(l Ledger) {
	// The context of Start has ended already, so this needs one of its own.
	ctx, cancel := context.WithTimeout(context.Background(), lastTimeout)
	defer cancel()
	if err := r.writeWaiting(ctx, l, false); err != nil {
		r.log.Error(err, "Cannot record the last entries of the ledger; the next operator closes the gap")
	}
}

// Decided records a decision soon. It never waits, and does nothing in an operator without a ledger or that does not lead.
func (r *Recorder) Decided(d ledger.Decision) {
	r.keepDecisions(d)
	if r.isLeading() {
		r.growths.noteMeasure(&d)
	}
}
