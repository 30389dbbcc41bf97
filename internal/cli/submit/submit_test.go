package submit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cli"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// world is a cluster, and what happens to a job there.
type world struct {
	// refuses is the answer to a dry run of a kind, and fails that to its creation.
	refuses, fails map[string]error
	// happens are the states of the job, one a look; the last stays. Nil is for a job that is gone.
	happens []*v1beta1.ElasticTrainingJobStatus
	// log is what worker 0 says, each time it is asked.
	log []string

	mutex sync.Mutex
	looks int
	asked int
	since []time.Time
	api   client.WithWatch
}

func kindOf(o client.Object) string {
	if _, is := o.(*corev1.ConfigMap); is {
		return "ConfigMap"
	}
	return v1beta1.ElasticTrainingJobKind
}

func (w *world) connect(t *testing.T) *cli.Connection {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1beta1.AddToScheme(scheme), clientgoscheme.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w.api = fake.NewClientBuilder().WithScheme(scheme).Build()
	return cli.Connected(interceptor.NewClient(w.api, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			dry := (&client.CreateOptions{}).ApplyOptions(options).DryRun != nil
			if err := w.refuses[kindOf(o)]; dry && err != nil {
				return err
			}
			if err := w.fails[kindOf(o)]; !dry && err != nil {
				return err
			}
			if !dry && kindOf(o) == v1beta1.ElasticTrainingJobKind {
				o.SetUID("7")
			}
			return c.Create(ctx, o, options...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			job, is := o.(*v1beta1.ElasticTrainingJob)
			err := c.Get(ctx, key, o, options...)
			if !is || err != nil {
				return err
			}
			w.mutex.Lock()
			defer w.mutex.Unlock()
			st := w.happens[min(w.looks, len(w.happens)-1)]
			w.looks++
			if st == nil {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "elastictrainingjobs"}, key.Name)
			}
			job.Status = *st
			return nil
		},
	}))
}

func (w *world) open(*cli.Connection, *request) (openLog, error) {
	return func(_ context.Context, since time.Time) (io.ReadCloser, error) {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		w.since = append(w.since, since)
		if len(w.log) == 0 {
			return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "x")
		}
		said := w.log[min(w.asked, len(w.log)-1)]
		w.asked++
		return io.NopCloser(strings.NewReader(said)), nil
	}, nil
}

// run runs the command, in namespace ads.
func (w *world) run(ctx context.Context, t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := commandWith(w.connect(t), func() time.Time { return noon }, w.open, time.Millisecond)
	code = cli.Execute(ctx, cli.Root("tideline", command), append([]string{"submit", "-n", "ads"}, args...), strings.NewReader(""),
		&stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// created are the objects that there are.
func (w *world) created(t *testing.T) (jobs []v1beta1.ElasticTrainingJob, scripts []corev1.ConfigMap) {
	t.Helper()
	var all v1beta1.ElasticTrainingJobList
	var maps corev1.ConfigMapList
	if err := errors.Join(w.api.List(t.Context(), &all), w.api.List(t.Context(), &maps)); err != nil {
		t.Fatal(err)
	}
	return all.Items, maps.Items
}

// refusing is a world that refuses a kind.
func refusing(kind string, err error) *world { return &world{refuses: map[string]error{kind: err}} }

func script(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAllThatIsWrongIsSaidBeforeAnythingIsChanged(t *testing.T) {
	good := script(t, "train.py", "print(1)")
	for says, c := range map[string]struct {
		code int
		args []string
		w    *world
	}{
		"name a script": {code: 2}, "--image: name the image": {code: 2, args: []string{good}},
		"there is no such file":        {code: 1, args: []string{"absent.py", "--image=i"}},
		"must end in .py":              {code: 2, args: []string{"train.rb", "--image=i"}},
		"it is larger than 512 KiB":    {code: 1, args: []string{script(t, "big.py", strings.Repeat("#", mostScript+1)), "--image=i"}},
		"it is empty":                  {code: 1, args: []string{script(t, "none.sh", ""), "--image=i"}},
		"it is no text":                {code: 1, args: []string{script(t, "zip.py", "PK\x03\x00"), "--image=i"}},
		"it is no file":                {code: 1, args: []string{"", "--image=i"}},
		`--workers "8..2"`:             {code: 2, args: []string{good, "--image=i", "--workers=8..2"}},
		`--workers "0"`:                {code: 2, args: []string{good, "--image=i", "--workers=0"}},
		`--env "1=2"`:                  {code: 2, args: []string{good, "--image=i", "-e", "1=2"}},
		`--data "clicks"`:              {code: 2, args: []string{good, "--image=i", "--data=clicks"}},
		`--data "clicks:1:"`:           {code: 2, args: []string{good, "--image=i", "--data=clicks:1:"}},
		`version in body should match`: {code: 1, args: []string{good, "--image=i", "--data=clicks:V"}},
		`--memory "much"`:              {code: 2, args: []string{good, "--image=i", "--memory=much"}},
		"--gpus 65":                    {code: 2, args: []string{good, "--image=i", "--gpus=65"}},
		`--dry-run "yes"`:              {code: 2, args: []string{good, "--image=i", "--dry-run=yes"}},
		"must be a DNS-1035 label":     {code: 1, args: []string{good, "--image=i", "--name=Train"}},
		"RANK":                         {code: 1, args: []string{good, "--image=i", "-e", "RANK=0"}},
		"the tier is not yours": {
			code: 1, args: []string{good, "--image=i"}, w: refusing("ElasticTrainingJob", errors.New("the tier is not yours")),
		},
		"may not create configmaps": {
			code: 1, args: []string{good, "--image=i"}, w: refusing("ConfigMap", errors.New("you may not create configmaps")),
		},
		"choose another --name": {
			code: 1, args: []string{good, "--image=i", "--name=ctr"},
			w: refusing("ElasticTrainingJob", apierrors.NewAlreadyExists(schema.GroupResource{}, "ctr")),
		},
	} {
		t.Run(says, func(t *testing.T) {
			g := NewWithT(t)
			if strings.HasSuffix(says, "no file") {
				folder := filepath.Join(t.TempDir(), "folder.py")
				g.Expect(os.Mkdir(folder, 0o700)).To(Succeed())
				c.args[0] = folder
			}
			w := c.w
			if w == nil {
				w = &world{}
			}
			code, out, errs := w.run(t.Context(), t, c.args...)
			g.Expect(errs).To(And(ContainSubstring(says), HaveSuffix("\n")))
			g.Expect(strings.Count(errs, "\n")).To(Equal(1), errs)
			g.Expect([]any{code, out}).To(Equal([]any{c.code, ""}))
			jobs, scripts := w.created(t)
			g.Expect(jobs).To(BeEmpty())
			g.Expect(scripts).To(BeEmpty())
		})
	}
}

func TestObjectsAsTheyArePrinted(t *testing.T) {
	g := NewWithT(t)
	var w world
	code, out, errs := w.run(t.Context(), t, script(t, "Train_2.py", "print('$(x)')\n"), "--image=i:1", "--workers=2..8", "--gpus=2",
		"--cpu=4", "--memory=16Gi", "--tier=small-traffic", "-e", "A=$(B)", "--name=ctr", "--data=clicks:2",
		"--data=words:v1.0:/in/words", "--dry-run=client", "--", "--epochs", "3")
	g.Expect([]any{code, errs}).To(Equal([]any{0, ""}))
	first, second, _ := strings.Cut(out, "---\n")
	g.Expect(first).To(MatchYAML(`
apiVersion: v1
kind: ConfigMap
metadata: {namespace: ads, name: ctr-script}
immutable: true
data: {Train_2.py: "print('$(x)')\n"}
`))
	g.Expect(second).To(MatchYAML(`
apiVersion: tideline.io/v1beta1
kind: ElasticTrainingJob
metadata: {namespace: ads, name: ctr}
spec:
  minReplicas: 2
  maxReplicas: 8
  tier: small-traffic
  dataSets:
  - {name: clicks, version: "2"}
  - {name: words, version: v1.0, mountPath: /in/words}
  template:
    spec:
      containers:
      - name: trainer
        image: i:1
        command: [torchrun, /script/Train_2.py, --epochs, "3"]
        env:
        - {name: PYTHONUNBUFFERED, value: "1"}
        - {name: A, value: $$(B)}
        resources:
          limits: {memory: 16Gi, nvidia.com/gpu: "2"}
          requests: {cpu: "4", memory: 16Gi, nvidia.com/gpu: "2"}
        volumeMounts:
        - {name: script, mountPath: /script, readOnly: true}
      volumes:
      - {name: script, configMap: {name: ctr-script}}
`))
	jobs, scripts := w.created(t)
	g.Expect(len(jobs) + len(scripts)).To(BeZero())
	_, out, _ = w.run(t.Context(), t, script(t, "a.sh", "true"), "--image=i", "--gpus=0", "--dry-run=client", "-o", "json")
	var list struct{ Kind string }
	g.Expect(yaml.Unmarshal([]byte(out), &list)).To(Succeed())
	g.Expect(list.Kind).To(Equal("List"))
	g.Expect(out).To(And(ContainSubstring(`"sh"`), Not(ContainSubstring("nvidia.com/gpu")), Not(ContainSubstring("status"))))
}

func state(phase v1beta1.JobPhase, reason, message string) *v1beta1.ElasticTrainingJobStatus {
	return &v1beta1.ElasticTrainingJobStatus{Phase: phase, Reason: reason, Message: message}
}

func TestStoryAndLogUntilTheEnd(t *testing.T) {
	waits := state(v1beta1.PhasePending, v1beta1.ReasonUnschedulable, "needs 2 of nvidia.com/gpu, 0 are free\x1b[2J")
	waits.Place, waits.Queue = 2, "ads"
	figures := waits.DeepCopy()
	figures.Message = "needs 2 of nvidia.com/gpu, 1 is free"
	runs := state(v1beta1.PhaseRunning, v1beta1.ReasonTraining, "trains")
	runs.Summary = "2/2 (2..8)"
	log := []string{
		"2026-11-27T12:00:00.1Z one\n2026-11-27T12:00:00.2Z two\n",
		"2026-11-27T12:00:00.2Z two\n2026-11-27T12:00:01Z three " + strings.Repeat("x", 100_000) + "\n",
	}
	for _, c := range []struct {
		last *v1beta1.ElasticTrainingJobStatus
		code int
		says string
	}{
		{state(v1beta1.PhaseSucceeded, v1beta1.ReasonCompleted, "worker 0 succeeded"), 0, "worker 0 succeeded"},
		{state(v1beta1.PhaseFailed, v1beta1.ReasonWorkerFailed, "worker 1 ended with exit code 3"), 1, "exit code 3"},
		{nil, 1, "was deleted"},
	} {
		g := NewWithT(t)
		w := &world{happens: []*v1beta1.ElasticTrainingJobStatus{{}, waits, figures, runs, runs, c.last}, log: log}
		code, out, errs := w.run(t.Context(), t, script(t, "train.py", "x"), "--image=i", "--name=ctr")
		g.Expect(code).To(Equal(c.code), errs)
		g.Expect(errs).To(And(ContainSubstring("ads/ctr is created\n"), ContainSubstring("12:00:00 Pending, Unschedulable, place 2 in "+
			`queue ads: needs 2 of nvidia.com/gpu, 0 are free\x1b[2J`), ContainSubstring("Running, Training, 2/2 (2..8)"),
			ContainSubstring(c.says), Not(ContainSubstring("1 is free"))))
		g.Expect(strings.Count(errs, "Running")).To(Equal(1), "what stays is told once")
		if c.last != nil {
			g.Expect(out).To(Equal("one\ntwo\nthree " + strings.Repeat("x", 100_000) + "\n"))
		}
		jobs, scripts := w.created(t)
		g.Expect(jobs).To(HaveLen(1))
		g.Expect(scripts).To(HaveLen(1))
		g.Expect(scripts[0].OwnerReferences).To(ConsistOf(HaveField("UID", jobs[0].UID)), "the script goes with the job")
	}
}

func TestWithoutFollowing(t *testing.T) {
	g := NewWithT(t)
	var w world
	code, _, errs := w.run(t.Context(), t, script(t, "3 Train.sh", "x"), "--image=i", "--follow=false")
	g.Expect([]any{code, strings.Contains(errs, "letters, digits")}).To(Equal([]any{2, true}))
	code, _, errs = w.run(t.Context(), t, script(t, "3_Train.sh", "x"), "--image=i", "--follow=false")
	g.Expect([]any{code, w.looks}).To(Equal([]any{0, 0}), errs)
	jobs, _ := w.created(t)
	g.Expect(jobs).To(ConsistOf(HaveField("Name", MatchRegexp("^train-[a-z0-9]{5}$"))))
	code, _, errs = w.run(t.Context(), t, script(t, "t.py", "x"), "--image=i", "--dry-run=server")
	g.Expect([]any{code, strings.Contains(errs, "would be created")}).To(Equal([]any{0, true}))
	jobs, _ = w.created(t)
	g.Expect(jobs).To(BeEmpty())
}

func TestJobWithoutItsScriptIsTakenBack(t *testing.T) {
	g := NewWithT(t)
	w := world{fails: map[string]error{"ConfigMap": errors.New("quota exceeded")}}
	code, _, errs := w.run(t.Context(), t, script(t, "t.py", "x"), "--image=i")
	g.Expect([]any{code, strings.Contains(errs, "quota exceeded")}).To(Equal([]any{1, true}))
	jobs, _ := w.created(t)
	g.Expect(jobs).To(BeEmpty())
}

func TestInterruptLeavesTheJob(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	w := world{happens: []*v1beta1.ElasticTrainingJobStatus{state(v1beta1.PhasePending, v1beta1.ReasonUnschedulable, "waits")}}
	code, _, errs := w.run(ctx, t, script(t, "t.py", "x"), "--image=i", "--name=ctr")
	g.Expect(code).To(Equal(130))
	g.Expect(errs).To(ContainSubstring("ctr goes on by itself; tideline why ads/ctr"))
	jobs, _ := w.created(t)
	g.Expect(jobs).To(HaveLen(1))
}

func TestNamesFromScripts(t *testing.T) {
	g := NewWithT(t)
	for name, want := range map[string]string{
		"train.py": "train-x", "2_Big.Model.py": "big-model-x", "---.sh": "job-x",
		strings.Repeat("a", 80) + ".py": strings.Repeat("a", 40) + "-x",
	} {
		g.Expect(nameFrom(name, "x")).To(Equal(want), name)
	}
}
