package elastictrainingjob

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/progress"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/recorder"
)

const (
	// recordEvery is how often the ledger is told what became of the GPU time of a job. An operator that ends leaves out no more.
	recordEvery = 5 * time.Minute
	// logAgain is after what time a log is opened again that ended, logRetry one that could not be read, and logForbidden one that
	// the operator may not read.
	logAgain, logRetry, logForbidden = 2 * time.Second, 10 * time.Second, time.Minute
	// mostLogs is how many logs of one namespace are followed at a time. Each is a stream and its buffers, and a user may create
	// any number of jobs.
	mostLogs = 500
)

// errCrowded is for a training beyond the logs that are followed in its namespace.
var errCrowded = fmt.Errorf("it is not followed, because %d logs of the namespace are", mostLogs)

// trainings follow what worker 0 of jobs with spec.progress says of its steps, in memory. Only the operator that reconciles has
// any. A restart of the operator loses no more than the GPU time of the past, and learns the pace from the last lines.
type trainings struct {
	// live is done when the operator ends.
	live  context.Context //nolint:containedctx // what follows a log outlives the reconcile that begins it
	open  func(ctx context.Context, namespace, pod, container string, since time.Time) (io.ReadCloser, error)
	now   func() time.Time
	tell  func(job *v1beta1.ElasticTrainingJob, reason, message string)
	wakes chan event.GenericEvent
	// again, retry and forbidden are after what time logs are opened again.
	again, retry, forbidden time.Duration

	mu   sync.Mutex
	jobs map[types.NamespacedName]*followed
	// logs is how many are followed, by namespace.
	logs map[string]int
	// record takes what was seen of a job, for the ledger. It does not wait.
	record func(ledger.Trained)
	// gone is the GPU time of jobs that have ended, by queue.
	gone map[string]progress.Totals
}

// followed is a job with spec.progress.
type followed struct {
	job     *v1beta1.ElasticTrainingJob // its name and UID
	attempt string
	queue   string
	// owner is what the job counts for in the ledger, which was last told of it at recorded.
	owner    ledger.Trained
	recorded time.Time
	factor   int32
	// pod is the worker 0 that is followed; stop ends that.
	pod  types.UID
	stop context.CancelFunc
	// crowded is true while it is not followed because as many logs of its namespace are as may be.
	crowded bool
	// workers tells the set of ready workers from another.
	workers uint64
	meter   progress.Meter
	// told is true once an event said that lines are ignored, and refused that the log may not be read.
	told, refused bool
	// shown is what the last plan wrote, stalled whether it knew of a hang, and woken when the job was last woken.
	shown   *v1beta1.TrainingProgress
	stalled bool
	woken   time.Time
}

func newTrainings(live context.Context, now func() time.Time) *trainings {
	return &trainings{
		live: live, now: now, wakes: make(chan event.GenericEvent), again: logAgain, retry: logRetry, forbidden: logForbidden,
		jobs: map[types.NamespacedName]*followed{}, logs: map[string]int{}, gone: map[string]progress.Totals{},
		record: func(ledger.Trained) {},
	}
}

// observe returns what the present attempt of a job said, and begins or ends to follow it. gpus are those that its ready workers
// hold, and shown is what status has.
func (t *trainings) observe(
	job *v1beta1.ElasticTrainingJob, queue string, workers []podstate.Worker, gpus int64,
) *progress.Figures {
	t.mu.Lock()
	defer t.mu.Unlock()
	key, st := client.ObjectKeyFromObject(job), &job.Status
	f := t.jobs[key]
	if f != nil && f.job.UID != job.UID {
		t.drop(key)
		f = nil
	}
	if job.Spec.Progress == nil || job.DeletionTimestamp != nil || jobstate.IsFinished(st) {
		if f != nil && st.Phase == v1beta1.PhaseSucceeded {
			f.meter.Account.NoteSuccess()
			f.owner.Succeeded = true
		}
		t.drop(key)
		return nil
	}
	if st.Attempt == nil {
		return nil
	}
	if f == nil {
		f = &followed{job: nameOf(job), recorded: t.now(), woken: t.now().Add(-wakeEvery)} // Its first figures are due.
		t.jobs[key] = f
	}
	if id := st.Attempt.ID(); f.attempt != id {
		t.leave(f)
		// The GPU time is the job's; the pace is that of an attempt, whose size may be another.
		f.attempt, f.meter, f.told, f.workers = id, progress.Meter{Account: f.meter.Account}, false, 0
	}
	f.meter.Workers = st.Attempt.MaxReplicas
	// An entry of the ledger is of one number of GPUs, so it ends before another is noted.
	if f.meter.Account.HoldsGPUs() != gpus {
		t.tellLedger(f)
	}
	f.owner = recorder.TrainedOf(job, queue)
	f.queue, f.factor, f.shown = queue, job.Spec.Progress.Stall.Factor, st.Training
	f.meter.Account.NoteGPUs(gpus, t.now())
	master := f.noteWorkers(workers)
	if master == nil || jobstate.IsStopped(st) {
		t.leave(f)
	} else if f.pod != master.UID {
		t.leave(f)
		t.begin(key, f, job, master)
	}
	figures, known := f.meter.ReadFigures(f.factor, t.now())
	if f.stalled = known && figures.Stall != nil; !known {
		return nil
	}
	return &figures
}

func nameOf(job *v1beta1.ElasticTrainingJob) *v1beta1.ElasticTrainingJob {
	return &v1beta1.ElasticTrainingJob{
		TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: v1beta1.ElasticTrainingJobKind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: job.Name, UID: job.UID, ResourceVersion: job.ResourceVersion,
		},
	}
}

// noteWorkers notes whether other workers are ready than before, and returns worker 0 if it runs.
func (f *followed) noteWorkers(workers []podstate.Worker) (master *podstate.Worker) {
	var sum uint64
	for i := range workers {
		w := &workers[i]
		if w.Attempt != f.attempt || !w.IsRunning() || w.Terminating {
			continue
		}
		if w.Index == 0 {
			master = w
		}
		if w.Ready {
			h := fnv.New64a()
			_, _ = fmt.Fprintf(h, "%s/%d", w.UID, w.ContainerRestarts)
			sum += h.Sum64() // The order in which they are listed does not matter.
		}
	}
	if sum != f.workers {
		f.meter.NoteDisturbance()
		f.workers = sum
	}
	return master
}

// leave ends to follow a pod.
func (t *trainings) leave(f *followed) {
	if f.stop != nil {
		f.stop()
		if t.logs[f.job.Namespace]--; t.logs[f.job.Namespace] == 0 {
			delete(t.logs, f.job.Namespace)
		}
	}
	f.pod, f.stop, f.crowded = "", nil, false
}

// begin follows worker 0.
func (t *trainings) begin(
	key types.NamespacedName, f *followed, job *v1beta1.ElasticTrainingJob, master *podstate.Worker,
) {
	containers := job.Spec.Template.Spec.Containers
	if len(containers) == 0 {
		return
	}
	if t.logs[key.Namespace] >= mostLogs {
		f.crowded = true
		go t.ignore(t.live, f, errCrowded) // once this observation has let go of the lock
		return
	}
	t.logs[key.Namespace]++
	ctx, stop := context.WithCancel(t.live) //nolint:gosec // leave calls stop
	f.pod, f.stop = master.UID, stop
	container := containers[rendezvous.TrainerIndex(containers)].Name
	go t.follow(ctx, f, key.Namespace, rendezvous.WorkerName(job, 0), container)
}

// follow reads the log until it is told to end, and opens it again whenever it ends.
func (t *trainings) follow(ctx context.Context, f *followed, namespace, pod, container string) {
	var since time.Time
	for {
		wait := t.again
		log, err := t.open(ctx, namespace, pod, container, since)
		switch {
		case apierrors.IsForbidden(err):
			wait = t.forbidden
			t.refuse(ctx, f)
		case err != nil:
			wait = t.retry
		default:
			t.listen(ctx, f, true)
			err = readLines(log, t.now, func(line []byte, at time.Time) {
				if at.After(since) { // A log that is opened again begins with lines that were read.
					since = at
					t.note(ctx, f, line, at)
				}
			})
			_ = log.Close()
			t.listen(ctx, f, false)
			if errors.Is(err, errChatty) {
				wait, since = t.retry, time.Time{}
				t.ignore(ctx, f, err)
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// listen notes that the log of the pod that is followed is open, or not any more.
func (t *trainings) listen(ctx context.Context, f *followed, open bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case ctx.Err() != nil: // Another pod is followed, or none.
	case open:
		f.meter.NoteListening(t.now())
	default:
		f.meter.NoteDeafness()
	}
}

// note takes a line of the pod that is followed.
func (t *trainings) note(ctx context.Context, f *followed, line []byte, at time.Time) {
	report, _, err := progress.ParseLine(line)
	if err == nil {
		t.mu.Lock()
		if ctx.Err() == nil {
			err = f.meter.NoteReport(report, at, t.now())
		}
		t.mu.Unlock()
	}
	if err != nil {
		t.ignore(ctx, f, err)
	}
}

// ignore says once in an attempt that lines are ignored.
func (t *trainings) ignore(ctx context.Context, f *followed, why error) {
	t.mu.Lock()
	told := f.told || ctx.Err() != nil
	f.told = true
	t.mu.Unlock()
	if !told {
		t.tell(f.job, v1beta1.EventProgressIgnored, fmt.Sprintf("Worker 0's log: %s. What breaks the protocol of progress is "+
			"ignored; of this attempt only the first is told.", why))
	}
}

// refuse says once that the log may not be read.
func (t *trainings) refuse(ctx context.Context, f *followed) {
	t.mu.Lock()
	told := f.refused || ctx.Err() != nil
	f.refused = true
	t.mu.Unlock()
	if !told {
		t.tell(f.job, v1beta1.EventProgressForbidden, fmt.Sprintf("spec.progress: the operator may not read the log of worker 0. "+
			"Apply the component config/components/training-progress, and it does within %s.", t.forbidden))
	}
}

// forget ends to follow a job that is gone.
func (t *trainings) forget(job types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(job)
}

// drop ends to follow a job, and keeps what became of its GPU time.
func (t *trainings) drop(job types.NamespacedName) {
	f := t.jobs[job]
	if f == nil {
		return
	}
	t.leave(f)
	t.tellLedger(f)
	f.meter.Account.NoteGPUs(0, t.now())
	t.gone[f.queue] = t.gone[f.queue].AddTotals(f.meter.Account.ReadTotals(t.now()))
	delete(t.jobs, job)
}
