package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"go.uber.org/zap/zapcore"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tideline-io/tideline/internal/platform/config"
)

// asProgram has the test binary be the program.
const asProgram = "TIDELINE_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// tideline runs the program where there is no cluster, and returns what it said on standard error and its exit code.
func tideline(t *testing.T, folder string, arguments ...string) (said string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], arguments...)
	cmd.Dir = folder
	cmd.Env = []string{asProgram + "=1", "HOME=" + folder, "KUBECONFIG=" + filepath.Join(folder, "none")}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return stderr.String(), cmd.ProcessState.ExitCode()
}

// The list of commands says whom each is for.
func TestCommandsAreListedByWhomTheyAreFor(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = []string{asProgram + "=1"}
	said, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	_, others, _ := strings.Cut(string(said), "Additional Commands:\n")
	others, _, _ = strings.Cut(others, "\n\n")
	var names []string
	for line := range strings.Lines(others) {
		names = append(names, strings.Fields(line)[0])
	}
	NewWithT(t).Expect(names).To(ConsistOf("completion", "help", "version"), "which are for everybody")
}

// What users write stands in values and errors of the log, and forges no line of it in any format.
func TestWhatUsersWriteForgesNoLineOfTheLog(t *testing.T) {
	const hostile = "\x1b[2J\r\n{\"level\":\"error\",\"msg\":\"forged\"}\n2026-11-20T20:00:00Z\tERROR\tforged\x00"
	for _, format := range []string{config.LogJSON, config.LogText} {
		g := NewWithT(t)
		var written bytes.Buffer
		// Locked, because all libraries of the process write to the log until another test makes its own.
		log := newLog(config.Log{Format: format, Level: config.LogInfo}, zapcore.Lock(zapcore.AddSync(&written)))
		log.Info("Job changed", "job", hostile, "message", hostile, "names", []string{hostile})
		log.Error(errors.New(hostile), "Cannot clean up after the job", "job", hostile)
		klog.ErrorS(errors.New(hostile), "Failed to watch", "reflector", hostile)
		g.Expect(bytes.Count(written.Bytes(), []byte("\n"))).To(Equal(3), "%s: %s", format, &written)
		g.Expect(written.String()).To(And(HaveSuffix("\n"), Not(ContainSubstring("\x1b")), Not(ContainSubstring("\r")),
			Not(ContainSubstring("\x00"))), format)
	}
}

// Whoever starts the operator wrongly reads sentences, and no stack trace.
func TestWrongStartsEndInWords(t *testing.T) {
	const wrong = "wrong.yaml: log.fromat is not a field: there may be format, level.\n" +
		"wrong.yaml: clientBurst is 3: it must be 0 where clientQPS is 0, without a limit: leave it out, or set clientQPS.\n"
	const former = "Warning: flags without a command run the operator in this version only; write: tideline run\n"
	folder := t.TempDir()
	for name, content := range map[string]string{
		"right.yaml": "log: {level: info}\n", "debug.yaml": "log: {level: debug, format: text}\n",
		"wrong.yaml": "log: {fromat: text}\nclientBurst: 3\n",
	} {
		content = "apiVersion: config.tideline.io/v1alpha1\nkind: Configuration\n" + content
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		arguments, says string
		code            int
	}{
		{"run --config=wrong.yaml", wrong, 1},
		{"--config=wrong.yaml", former + wrong, 1},
		{"-config wrong.yaml", former + wrong, 1},
		{"doctor --config=wrong.yaml", wrong, 2},
		{"run --config=none.yaml", "cannot read the operator's configuration (--config): open none.yaml: no such file or " +
			"directory\n", 1},
		{"run --config=right.yaml --webhook-certs=olm",
			"--webhook-certs: webhooks.certificates.mode is \"olm\": it must be rotate or files.\n", 1},
		{"docter", "tideline: there is no command \"docter\"; did you mean doctor?; -h says more\n", 2},
		{"mend", "tideline: there is no command \"mend\"; -h says more\n", 2},
		{"--webhook=false", "tideline: unknown flag: --webhook; flags stand behind a command; -h says more\n", 2},
		{"approve", "tideline approve: name one job: NAME with -n NAMESPACE, or NAMESPACE/NAME; -h says more\n", 2},
		{"run --webhooks false", "tideline run: \"false\" is no flag: flags begin with --, and a value follows its flag after =; -h " +
			"says more\n", 2},
		{"run --resync-period=1ms", "tideline run: invalid argument \"1ms\" for \"--resync-period\" flag: it must be a number of " +
			"whole seconds, at most 604800 s; -h says more\n", 2},
	} {
		said, code := tideline(t, folder, strings.Fields(c.arguments)...)
		g := NewWithT(t)
		g.Expect(said).To(Equal(c.says), c.arguments)
		g.Expect(code).To(Equal(c.code), c.arguments)
	}

	g := NewWithT(t)
	said, code := tideline(t, folder, "run", "--config=right.yaml")
	g.Expect(code).To(Equal(1))
	g.Expect(strings.Count(said, "\n")).To(Equal(1), said)
	g.Expect(said).To(And(HavePrefix(`{"level":"error"`), ContainSubstring(`find a cluster (set KUBECONFIG, or run in one)`),
		Not(ContainSubstring("stacktrace"))))
	said, _ = tideline(t, folder, "run", "--config=debug.yaml")
	g.Expect(said).To(ContainSubstring("ERROR\tThe operator ends"), "the log is as the file says")
}

// Prometheus reads metrics by its token, and nobody reads them without one or without the right.
func TestMetricsAreForThoseWhoMayReadThem(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(answerReviews))
	defer server.Close()
	served := metricsOptions(config.Metrics{BindAddress: ":8443", Secure: true})
	if !served.SecureServing {
		t.Error("tokens are sent in clear")
	}
	filter, err := served.FilterProvider(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]int{
		"": http.StatusUnauthorized, "alice": http.StatusForbidden, "prometheus": http.StatusOK,
		"unknown": http.StatusInternalServerError, // so says controller-runtime of a token that is nobody's
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody)
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		if answer.Code != want {
			t.Errorf("whoever has token %q is answered %d, want %d", token, answer.Code, want)
		}
	}
	if open := metricsOptions(config.Metrics{BindAddress: ":8080"}); open.SecureServing || open.FilterProvider != nil {
		t.Error("metrics.secure: false asks for tokens")
	}
}

// answerReviews knows alice and prometheus by tokens that are their names, and lets the latter get /metrics.
func answerReviews(w http.ResponseWriter, r *http.Request) {
	var answer any
	switch r.URL.Path {
	case "/apis/authentication.k8s.io/v1/tokenreviews":
		review := &authenticationv1.TokenReview{}
		_ = json.NewDecoder(r.Body).Decode(review)
		name := review.Spec.Token
		review.Status.Authenticated = name == "alice" || name == "prometheus"
		review.Status.User.Username = name
		answer = review
	case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		review := &authorizationv1.SubjectAccessReview{}
		_ = json.NewDecoder(r.Body).Decode(review)
		path := review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "prometheus" && path != nil && path.Path == "/metrics" && path.Verb == "get"
		answer = review
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// A queue that is shut down while something in it is ready once hung for ever, and with it the operator, which kept its lease:
// https://github.com/kubernetes-sigs/controller-runtime/issues/3538. How often it does is a matter of chance, so there are
// rounds.
func TestTheOperatorEndsWhileSomethingIsReady(t *testing.T) {
	const (
		rounds, workers = 60, 20
		inTime          = 10 * time.Second
	)
	server := httptest.NewServer(http.HandlerFunc(answerDiscovery))
	defer server.Close()
	cfg := config.DefaultConfiguration()
	cfg.LeaderElection.Enabled, cfg.Metrics.BindAddress, cfg.Health.BindAddress = false, "0", "0"
	for round := range rounds {
		g := NewWithT(t)
		mgr, err := newManager(&rest.Config{Host: server.URL}, cfg, "default", logr.Discard())
		g.Expect(err).NotTo(HaveOccurred())
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		var reconciled atomic.Int32
		busy, err := controller.New("busy", mgr, controller.Options{
			MaxConcurrentReconciles: workers,
			SkipNameValidation:      ptr.To(true), // each round has a controller of that name
			Reconciler: reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
				if reconciled.Add(1) == 1000 {
					cancel()
				}
				return reconcile.Result{RequeueAfter: time.Nanosecond}, nil
			}),
		})
		g.Expect(err).NotTo(HaveOccurred())
		type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
		g.Expect(busy.Watch(source.Func(func(_ context.Context, q queue) error {
			for i := range 2 * workers {
				request := reconcile.Request{}
				request.Name = strconv.Itoa(i)
				q.Add(request)
			}
			return nil
		}))).To(Succeed())
		ended := make(chan error, 1)
		go func() { ended <- mgr.Start(ctx) }()
		g.Eventually(ended, inTime).Should(Receive(BeNil()), "round %d: the operator ends when it is told to", round)
	}
}

// answerDiscovery knows the kinds that the manager holds in a way of its own.
func answerDiscovery(w http.ResponseWriter, r *http.Request) {
	const admission = "admissionregistration.k8s.io/v1"
	var answer any
	switch r.URL.Path {
	case "/api":
		answer = metav1.APIVersions{Versions: []string{"v1"}}
	case "/apis":
		version := metav1.GroupVersionForDiscovery{GroupVersion: admission, Version: "v1"}
		answer = metav1.APIGroupList{Groups: []metav1.APIGroup{{
			Name: "admissionregistration.k8s.io", Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
		}}}
	case "/api/v1":
		answer = metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "nodes", Kind: "Node"}, {Name: "persistentvolumes", Kind: "PersistentVolume"},
			{Name: "pods", Kind: "Pod", Namespaced: true}, {Name: "services", Kind: "Service", Namespaced: true},
			{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}, {Name: "secrets", Kind: "Secret", Namespaced: true},
			{Name: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", Namespaced: true},
		}}
	case "/apis/" + admission:
		answer = metav1.APIResourceList{GroupVersion: admission, APIResources: []metav1.APIResource{
			{Name: "mutatingwebhookconfigurations", Kind: "MutatingWebhookConfiguration"},
			{Name: "validatingwebhookconfigurations", Kind: "ValidatingWebhookConfiguration"},
		}}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}
