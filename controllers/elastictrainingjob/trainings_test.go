package elastictrainingjob

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/progress"
)

// The local cluster has no kubelets, so logs come from a server that speaks as the API server does.

// logServer serves the log of one pod: what is said is sent to who follows, until cut is called.
type logServer struct {
	mu       sync.Mutex
	asked    []url.URL
	answer   int
	opened   chan *logStream
	streamed *httptest.Server
}

type logStream struct {
	lines chan string
	ended chan struct{}
}

func newLogServer(t *testing.T) *logServer {
	t.Helper()
	s := &logServer{answer: http.StatusOK, opened: make(chan *logStream, 10)}
	s.streamed = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, *r.URL)
		answer := s.answer
		s.mu.Unlock()
		if answer != http.StatusOK {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(answer)
			_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":%d}`, answer)
			return
		}
		stream := &logStream{lines: make(chan string), ended: make(chan struct{})}
		defer close(stream.ended)
		w.(http.Flusher).Flush()
		s.opened <- stream
		for {
			select {
			case line, more := <-stream.lines:
				if !more {
					return
				}
				if _, err := w.Write([]byte(line)); err != nil {
					return
				}
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(s.streamed.Close)
	return s
}

func (s *logServer) requests() []url.URL {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]url.URL(nil), s.asked...)
}

// stage is trainings that read from a log server, and what they told.
type stage struct {
	*trainings

	server *logServer
	job    *v1beta1.ElasticTrainingJob
	mu     sync.Mutex
	said   []string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{server: newLogServer(t), job: jobNamed("ctr")}
	logs, err := newLogs(&rest.Config{Host: s.server.streamed.URL}, s.server.streamed.Client())
	if err != nil {
		t.Fatal(err)
	}
	s.trainings = newTrainings(t.Context(), time.Now)
	s.again, s.retry, s.forbidden = time.Millisecond, time.Millisecond, time.Millisecond
	s.open = logs.open
	s.tell = func(job *v1beta1.ElasticTrainingJob, reason, message string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.said = append(s.said, job.Name+" "+reason+": "+message)
	}
	s.job.UID = "job"
	s.job.Spec.Progress = &v1beta1.JobProgress{Stall: v1beta1.Stall{Factor: 3}}
	s.job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "logs"}, {Name: "trainer"}}
	s.job.Status.Attempt = &v1beta1.AttemptStatus{Number: 1, StartTime: metav1.Unix(1_700_000_000, 0)}
	t.Cleanup(func() { s.forget(client.ObjectKeyFromObject(s.job)) })
	return s
}

// hearNothing has the stage go by a clock, and worker 0 write nothing.
func (s *stage) hearNothing(c *clock) {
	s.trainings.now = func() time.Time { return c.now }
	s.open = func(ctx context.Context, _, _, _ string, _ time.Time) (io.ReadCloser, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
}

// look observes the job with a worker 0 of this UID.
func (s *stage) look(uid types.UID) *progress.Figures {
	workers := []podstate.Worker{{UID: uid, Attempt: s.job.Status.Attempt.ID(), Phase: corev1.PodRunning, Ready: true}}
	return s.observe(s.job, "ads", workers, 8)
}

func (s *stage) told() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.said...)
}

// line is a line of a log as the kubelet gives it its time.
func line(second int, words string) string {
	return time.Unix(1_700_000_000+int64(second), 5000).UTC().Format(time.RFC3339Nano) + " " + words + "\n"
}

// step is how far the job is; -1 before it said so.
func (s *stage) step(uid types.UID) func() int64 {
	return func() int64 {
		if f := s.look(uid); f != nil {
			return f.Step
		}
		return -1
	}
}

func TestTheLogOfWorker0IsFollowed(t *testing.T) {
	g, s := NewWithT(t), newStage(t)
	g.Expect(s.look("a")).To(BeNil())
	var stream *logStream
	g.Eventually(s.server.opened).Should(Receive(&stream))
	asked := s.server.requests()[0]
	g.Expect(asked.Path).To(Equal("/api/v1/namespaces/" + s.job.Namespace + "/pods/ctr-worker-0/log"))
	g.Expect(asked.Query()).To(And(HaveKeyWithValue("container", []string{"trainer"}), HaveKeyWithValue("follow", []string{"true"}),
		HaveKeyWithValue("timestamps", []string{"true"}), HaveKeyWithValue("tailLines", []string{"200"}), Not(HaveKey("sinceTime"))))
	stream.lines <- line(0, "loading the data") + line(1, "tideline: step=0 total=100 phase=start")
	for i := range 5 {
		stream.lines <- line(100+10*i, fmt.Sprintf("tideline: step=%d total=100 loss=0.5", 10*(i+1)))
	}
	g.Eventually(s.step("a")).Should(Equal(int64(50)), "the last line is read")
	g.Expect(s.look("a").StepTime).To(Equal(time.Second))
	g.Expect(s.told()).To(BeEmpty())
	g.Expect(s.server.requests()).To(HaveLen(1), "at rest nothing is asked")
}

func TestALogThatBreaksIsReadOn(t *testing.T) {
	g, s := NewWithT(t), newStage(t)
	s.look("a")
	var stream *logStream
	g.Eventually(s.server.opened).Should(Receive(&stream))
	stream.lines <- line(0, "tideline: step=10 total=100") + line(10, "tideline: step=20 total=100")
	g.Eventually(s.step("a")).Should(Equal(int64(20)))
	stream.lines <- "2023-11-14T22:13:40Z tideline: step=3" // half a line
	close(stream.lines)
	g.Eventually(s.server.opened).Should(Receive(&stream), "it is opened again")
	g.Expect(s.server.requests()[1].Query()).To(HaveKeyWithValue("sinceTime", []string{"2023-11-14T22:13:30Z"}))
	stream.lines <- line(10, "tideline: step=20 total=100") + line(20, "tideline: step=30 total=100")
	g.Eventually(s.step("a")).Should(Equal(int64(30)))
	g.Expect(s.told()).To(BeEmpty(), "lines that were read before are no steps that go back")
}

func TestWhatBreaksTheProtocolIsIgnoredWithOneEvent(t *testing.T) {
	for name, bad := range map[string]string{
		"backwards": "tideline: step=10", "not a number": "tideline: step=NaN",
		"a megabyte":   "tideline: step=" + strings.Repeat("9", 1<<20),
		"another rank": "tideline: step=60 rank=3", "a loss that is none": "tideline: step=60 loss=nan",
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), newStage(t)
			s.look("a")
			var stream *logStream
			g.Eventually(s.server.opened).Should(Receive(&stream))
			stream.lines <- line(1, "tideline: step=40 total=100") + line(2, "tideline: step=50 total=100")
			stream.lines <- line(3, bad) + line(4, bad) + line(5, bad)
			stream.lines <- line(6, "tideline: step=51 total=100")
			g.Eventually(s.step("a")).Should(Equal(int64(51)), "the lines after it are read")
			g.Expect(s.told()).To(HaveExactElements(HavePrefix("ctr ProgressIgnored: Worker 0's log: ")))
			g.Expect(len(s.told()[0])).To(BeNumerically("<", 400), "it is quoted in part")
		})
	}
}

func TestALogThatIsCutMakesNoHang(t *testing.T) {
	g, s := NewWithT(t), newStage(t)
	var mu sync.Mutex
	ahead := time.Duration(0)
	s.trainings.now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return time.Unix(1_700_000_000, 0).Add(ahead)
	}
	pass := func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		ahead += d
	}
	s.look("a")
	var stream *logStream
	g.Eventually(s.server.opened).Should(Receive(&stream))
	for i := range 6 {
		stream.lines <- line(10*i, fmt.Sprintf("tideline: step=%d total=100", 10*(i+1)))
	}
	g.Eventually(s.step("a")).Should(Equal(int64(60)))
	hangs := func() bool { return s.look("a").Stall != nil }
	g.Expect(hangs()).To(BeFalse())
	s.server.mu.Lock()
	s.server.answer = http.StatusBadGateway
	s.server.mu.Unlock()
	close(stream.lines)
	asked := len(s.server.requests())
	g.Eventually(func() int { return len(s.server.requests()) }).Should(BeNumerically(">", asked), "the log cannot be opened")
	pass(10 * time.Minute)
	g.Expect(hangs()).To(BeFalse(), "nobody knows")
	s.server.mu.Lock()
	s.server.answer = http.StatusOK
	s.server.mu.Unlock()
	g.Eventually(s.server.opened).Should(Receive(&stream))
	g.Expect(hangs()).To(BeFalse())
	stream.lines <- line(700, "tideline: step=61 total=100")
	g.Eventually(s.step("a")).Should(Equal(int64(61)))
	pass(10 * time.Minute)
	g.Expect(hangs()).To(BeTrue(), "it says nothing, and is heard")
}

func TestAnotherPodIsNotBelieved(t *testing.T) {
	g, s := NewWithT(t), newStage(t)
	s.look("a")
	var old, fresh *logStream
	g.Eventually(s.server.opened).Should(Receive(&old))
	old.lines <- line(1, "tideline: step=40 total=100")
	g.Eventually(s.step("a")).Should(Equal(int64(40)))
	s.look("b")
	g.Eventually(s.server.opened).Should(Receive(&fresh))
	g.Eventually(old.ended).Should(BeClosed(), "the log of the pod that is gone is closed")
	fresh.lines <- line(2, "tideline: step=30 total=100 phase=start")
	g.Eventually(s.step("b")).Should(Equal(int64(30)))

	other := s.job.DeepCopy()
	other.UID, s.job = "another job of the name", other
	g.Expect(s.look("c")).To(BeNil(), "nothing of it is believed for another job")
	s.job.Spec.Progress = nil
	g.Expect(s.look("c")).To(BeNil())
	g.Eventually(fresh.ended).Should(BeClosed())
}

func TestAMissingRightIsToldOnce(t *testing.T) {
	g, s := NewWithT(t), newStage(t)
	s.server.answer = http.StatusForbidden
	s.look("a")
	g.Eventually(func() int { return len(s.server.requests()) }).Should(BeNumerically(">", 2))
	g.Expect(s.told()).To(HaveExactElements(ContainSubstring("ProgressForbidden: spec.progress: the operator may not read the log")))
	s.server.mu.Lock()
	s.server.answer = http.StatusOK
	s.server.mu.Unlock()
	var stream *logStream
	g.Eventually(s.server.opened).Should(Receive(&stream), "it is tried again")
}

func TestOneNamespaceHasABoundedNumberOfLogs(t *testing.T) {
	g, s := NewWithT(t), newStage(t)
	s.logs[s.job.Namespace] = mostLogs
	s.look("a")
	s.look("a")
	g.Eventually(s.told).Should(HaveExactElements(ContainSubstring("not followed, because 500 logs of the namespace are")))
	g.Expect(s.server.requests()).To(BeEmpty())
	g.Expect(s.listDue()).To(BeEmpty())
	s.trainings.mu.Lock()
	s.logs[s.job.Namespace]--
	s.trainings.mu.Unlock()
	s.jobs[types.NamespacedName{Name: "another"}] = &followed{job: nameOf(s.job), crowded: true}
	g.Expect(s.listDue()).To(HaveLen(1), "one is woken once another has ended")
	s.jobs[client.ObjectKeyFromObject(s.job)].woken = s.now()
	delete(s.jobs, types.NamespacedName{Name: "another"})
	g.Expect(s.listDue()).To(BeEmpty(), "once a minute")
	s.look("a")
	g.Eventually(s.server.opened).Should(Receive(), "it has the place of another")
	s.job.Spec.Progress = nil
	s.look("a")
	s.trainings.mu.Lock()
	defer s.trainings.mu.Unlock()
	g.Expect(s.logs).To(HaveKeyWithValue(s.job.Namespace, mostLogs-1), "and gives it back")
}

func TestAChattyLogIsClosed(t *testing.T) {
	g := NewWithT(t)
	flood := strings.NewReader(strings.Repeat(line(1, "x"+strings.Repeat("y", 4000)), 3000))
	now := time.Unix(0, 0)
	err := readLines(flood, func() time.Time { return now }, func([]byte, time.Time) { t.Error("no line is ours") })
	g.Expect(err).To(MatchError(errChatty))
}

// TestGoodputOfJobAndQueue: GPU time of steps that a checkpoint has, also once the job is gone.
func TestGoodputOfJobAndQueue(t *testing.T) {
	g, s := NewWithT(t), newStage(t)
	c := newClock()
	s.hearNothing(c)
	s.look("a")
	f := s.jobs[client.ObjectKeyFromObject(s.job)]
	report := func(step, checkpoint int64, phase progress.Phase) {
		r := progress.Report{Step: step, Total: 100, Checkpoint: checkpoint, Phase: phase}
		g.Expect(f.meter.NoteReport(r, c.now, c.now)).To(Succeed())
	}
	report(0, -1, progress.PhaseStart)
	c.pass(100 * time.Second) // the first step is no pace
	report(1, -1, progress.PhaseTrain)
	for i := range int64(10) {
		c.pass(10 * time.Second)
		report(2+i, -1, progress.PhaseTrain)
	}
	served := func(name string) float64 {
		families, err := registryOf(t, s.trainings).Gather()
		g.Expect(err).NotTo(HaveOccurred())
		for _, family := range families {
			if family.GetName() == name {
				m := family.GetMetric()[0]
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
		return -1
	}
	g.Expect(served("tideline_training_goodput_ratio")).To(BeZero(), "no checkpoint has the steps")
	report(11, 11, progress.PhaseTrain)
	g.Expect(served("tideline_training_goodput_ratio")).To(BeNumerically("~", 0.5, 0.001), "100 s of 200 s")
	g.Expect(served("tideline_training_progress_ratio")).To(Equal(0.11))
	g.Expect(served("tideline_training_steps_per_second")).To(BeNumerically("~", 0.1, 0.001))
	g.Expect(served("tideline_training_left_seconds")).To(BeNumerically("~", 890, 1))
	g.Expect(served("tideline_training_stalled")).To(BeZero())
	c.pass(10 * time.Minute)
	g.Expect(served("tideline_training_stalled")).To(Equal(1.0))
	s.forget(client.ObjectKeyFromObject(s.job))
	g.Expect(served("tideline_training_goodput_ratio")).To(Equal(-1.0), "the job is gone")
	g.Expect(served("tideline_training_gpu_seconds_total")).To(Equal(8 * 800.0))
	g.Expect(served("tideline_training_kept_gpu_seconds_total")).To(BeNumerically("~", 800, 1))
	g.Expect(served("tideline_training_lost_gpu_seconds_total")).To(BeZero())
	problems, err := testutil.GatherAndLint(registryOf(t, s.trainings))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(problems).To(BeEmpty())
	c.pass(time.Hour)
	g.Expect(served("tideline_training_gpu_seconds_total")).To(Equal(8*800.0), "who is gone holds none")
}

func registryOf(t *testing.T, c prometheus.Collector) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	return registry
}

// TestSeriesOfATraining: whatever a training reports, and however often, it has the number of series that docs/security.md names.
func TestSeriesOfATraining(t *testing.T) {
	g, s := NewWithT(t), newStage(t)
	c := newClock()
	s.hearNothing(c)
	s.look("a")
	series := func() (of []string) {
		families, err := registryOf(t, s.trainings).Gather()
		g.Expect(err).NotTo(HaveOccurred())
		for _, family := range families {
			for _, m := range family.GetMetric() {
				for _, label := range m.GetLabel() {
					if label.GetName() == "name" {
						of = append(of, family.GetName())
					}
				}
			}
		}
		return of
	}
	f := s.jobs[client.ObjectKeyFromObject(s.job)]
	for i := range int64(50) {
		c.pass(10 * time.Second)
		g.Expect(f.meter.NoteReport(progress.Report{
			Step: i, Total: 100, Checkpoint: i, Phase: progress.PhaseTrain, Slowest: progress.Slowest{Worker: int32(i / 10), Slowness: 2},
		}, c.now, c.now)).To(Succeed())
	}
	g.Expect(series()).To(ConsistOf("tideline_training_goodput_ratio", "tideline_training_progress_ratio",
		"tideline_training_steps_per_second", "tideline_training_left_seconds", "tideline_training_straggler_slowness",
		"tideline_training_stalled"))
	page, err := os.ReadFile("../../docs/security.md")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(page)).To(ContainSubstring("six per training with `spec.progress`"))
	s.forget(client.ObjectKeyFromObject(s.job))
	g.Expect(series()).To(BeEmpty(), "the job is gone")
}

// TestThePageListsMetricsOfTrainings: docs/metrics.md has a row for each.
func TestThePageListsMetricsOfTrainings(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	all := make(chan *prometheus.Desc, 20)
	newTrainings(t.Context(), time.Now).Describe(all)
	close(all)
	there := map[string]bool{}
	for desc := range all {
		name := regexp.MustCompile(`fqName: "(\w+)"`).FindStringSubmatch(desc.String())[1]
		there[name] = true
		if !strings.Contains(string(page), "| `"+name+"` |") {
			t.Errorf("docs/metrics.md does not list %s", name)
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(tideline_training_[a-z_]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		if !there[row[1]] {
			t.Errorf("docs/metrics.md lists %s, which nobody counts", row[1])
		}
	}
}

// BenchmarkReports is a line of each of 10,000 jobs, which report every ten seconds.
func BenchmarkReports(b *testing.B) {
	t := newTrainings(b.Context(), time.Now)
	t.tell = func(_ *v1beta1.ElasticTrainingJob, _, message string) { b.Fatal(message) }
	all := make([]*followed, 10_000)
	for i := range all {
		all[i] = &followed{job: jobNamed("a"), pod: "a"}
		t.jobs[types.NamespacedName{Name: strconv.Itoa(i)}] = all[i]
	}
	step := 0
	for b.Loop() {
		step++
		said := line(10*step, fmt.Sprintf("tideline: step=%d total=100000000 loss=0.5", step))
		for _, f := range all {
			_ = readLines(strings.NewReader(said), time.Now, func(line []byte, at time.Time) { t.note(b.Context(), f, line, at) })
		}
		t.listDue()
	}
}
