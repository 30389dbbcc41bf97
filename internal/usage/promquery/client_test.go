package promquery

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// fake answers as Prometheus does, until answer does otherwise.
type fake struct {
	*httptest.Server
	// answer is true if it answered.
	answer func(w http.ResponseWriter, r *http.Request) bool
	// value of CPU.
	value string

	mu    sync.Mutex
	asked []url.Values
	token []string
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{value: "2"}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// does has it answer in another way; nil as before.
func (f *fake) does(answer func(http.ResponseWriter, *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	f.asked = append(f.asked, r.Form)
	f.token = append(f.token, r.Header.Get("Authorization"))
	answer := f.answer
	f.mu.Unlock()
	if answer != nil && answer(w, r) {
		return
	}
	_, _ = fmt.Fprintf(w, `{"status": "success", "infos": ["metric might not be a counter"], "data": {"resultType": "matrix",
		"result": [%s]}}`, f.result(r.Form.Get("query")))
}

// result has CPU of pod a in the first ten minutes of the day.
func (f *fake) result(query string) string {
	if !strings.Contains(query, "container_cpu_usage_seconds_total") || !strings.Contains(query, `namespace="ads"`) {
		return ""
	}
	const series = `{"metric": {"namespace": "ads", "pod": "a", "container": "train"}, "values": [[%[1]d, %[2]q], [%[3]d, %[2]q]]}`
	return fmt.Sprintf(series, at(0, 5).Unix(), f.value, at(0, 10).Unix())
}

func (f *fake) client(t *testing.T) *Client {
	t.Helper()
	return newClient(t, config.Prometheus{URL: f.URL + "/prometheus/", TimeoutSeconds: 30})
}

func newClient(t *testing.T, c config.Prometheus) *Client {
	t.Helper()
	client, err := NewClient(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// collect asks about pods a of namespaces ads and z.
func collect(t *testing.T, c *Client) (map[sizing.Key]sizing.Usage, error) {
	t.Helper()
	other := stay("a", at(0, 0))
	other.Namespace = "z"
	return c.Collect(t.Context(), day, []Stay{stay("a", at(0, 0)), other}, tomorrow)
}

func TestCollect(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	f.does(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/prometheus/api/v1/query_range" {
			http.NotFound(w, r)
			return true
		}
		return false
	})
	usage, err := collect(t, f.client(t))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(usage).To(Equal(map[sizing.Key]sizing.Usage{
		train(sizing.Worker): {RunSeconds: 86400, SeenSeconds: 600, EvidenceSeconds: 600, CPU: histogram(2)},
	}))
	g.Expect(f.asked).To(HaveLen(10), "five questions about each namespace")
	for _, form := range f.asked {
		g.Expect(form.Get("start")).To(Equal(strconv.FormatInt(at(0, 5).Unix(), 10)))
		g.Expect(form.Get("end")).To(Equal(strconv.FormatInt(tomorrow.Unix(), 10)))
		g.Expect(form.Get("step")).To(Equal("300"))
		g.Expect(form.Get("timeout")).To(Equal("30s"))
	}
	g.Expect(f.token).To(HaveEach(""))

	f.asked = nil
	usage, err = f.client(t).Collect(t.Context(), day, []Stay{stay("a", at(0, 0))}, at(0, 4))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(usage).To(BeEmpty())
	g.Expect(f.asked).To(BeEmpty(), "there is nothing to ask about yet")
}

func TestDevicesAreReadByEitherLabel(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	f.does(func(w http.ResponseWriter, r *http.Request) bool {
		prefix, device := "", "GPU-1"
		if strings.Contains(r.Form.Get("query"), "exported_pod=~") {
			prefix, device = "exported_", "GPU-2"
		}
		if !strings.Contains(r.Form.Get("query"), "DCGM_FI_PROF_GR_ENGINE_ACTIVE") {
			return false
		}
		_, _ = fmt.Fprintf(w, `{"status": "success", "data": {"resultType": "matrix", "result": [{"metric":
			{"%[1]snamespace": "ads", "%[1]spod": "a", "UUID": %[2]q, "gpu": "0"}, "values": [[%[3]d, "0.5"]]}]}}`,
			prefix, device, at(0, 5).Unix())
		return true
	})
	usage, err := f.client(t).Collect(t.Context(), day, []Stay{stay("a", at(0, 0)).holds(2000)}, tomorrow)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(usage[whole()].Accelerators).To(Equal(sizing.AcceleratorUsage{
		HeldSeconds: 600, ActiveMilliseconds: 300_000, LastBusy: at(0, 5).Unix(), LastSeen: at(0, 5).Unix(),
	}))
}

func TestValuesThatAreNoNumbersAreNotSeen(t *testing.T) {
	for _, value := range []string{"NaN", "+Inf", "-Inf"} {
		g := NewWithT(t)
		f := newFake(t)
		f.value = value
		usage, err := collect(t, f.client(t))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(usage).To(BeEmpty(), value)
	}
}

// about does something in place of an answer about namespace ads, and leaves the other alone.
func about(do http.HandlerFunc) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.Form.Get("query"), `namespace="ads"`) {
			return false
		}
		do(w, r)
		return true
	}
}

// says answers with a status and words.
func says(status int, words string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(words))
	}
}

func TestBadDays(t *testing.T) {
	const nothing = `"data": {"resultType": "matrix", "result": []}`
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		says   string
	}{
		"broken": {says(500, "oh"), "answered with an error (server_error: server error: 500): check its logs"},
		"its own timeout": {says(503, `{"status": "error", "errorType": "timeout", "error": "query timed out"}`),
			"answered with an error (server_error: server error: 503)"},
		"too much asked": {says(422, `{"status": "error", "errorType": "execution", "error": "too many samples"}`),
			"answered with an error (execution: too many samples)"},
		"an error with data": {says(200, `{"status": "error", "errorType": "internal", "error": "x", `+nothing+`}`), "(internal: x)"},
		"a refusal":          {says(401, "who are you"), "refuses the operator (client_error: client error: 401): correct the token"},
		"another refusal":    {says(403, ""), "refuses the operator (client_error: client error: 403): correct the token"},
		"no page there":      {says(404, "no such page"), "answered with an error (client_error: client error: 404)"},
		"a page":             {says(200, "<html>"), "does not answer as Prometheus does"},
		"half an answer": {says(200, `{"status": "success", "data": {"resultType": "matrix", "res`),
			"does not answer as Prometheus does"},
		"nothing":    {says(200, ""), "does not answer as Prometheus does"},
		"no content": {says(204, ""), "does not answer as Prometheus does"},
		"another type": {says(200, `{"status": "success", "data": {"resultType": "vector", "result": []}}`),
			"does not answer as Prometheus does (it sent no matrix)"},
		"a value that is no text": {
			says(200, `{"status": "success", "data": {"resultType": "matrix", "result": [{"values": [[1, 2]]}]}}`),
			"does not answer as Prometheus does"},
		"warnings": {says(200, `{"status": "success", "warnings": ["store 1 is\ndown", "another"], `+nothing+`}`),
			"answered in part only (store 1 is down): check the stores"},
		"long words":    {says(422, `{"status": "error", "errorType": "x", "error": "`+strings.Repeat("x", 1000)+`"}`), "xxx...)"},
		"a long answer": {says(200, strings.Repeat(" ", 3000)), "answered with more than 2000 bytes: check prometheus.url"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
			"does not answer as Prometheus does (bad_response: bad response code 307): correct prometheus.url"},
		"a closed connection": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			"cannot be reached (EOF): check that it is up"},
	} {
		g := NewWithT(t)
		f := newFake(t)
		f.does(about(c.answer))
		client := f.client(t)
		client.sender.most = 2000
		d := stay("b", at(0, 0)) // of another role of the namespace, so of the same batch
		d.Role = sizing.Master
		z := stay("a", at(0, 0))
		z.Namespace = "z"
		usage, err := client.Collect(t.Context(), day, []Stay{stay("a", at(0, 0)), d, z}, tomorrow)
		g.Expect(err).To(MatchError(ErrUnavailable), name)
		g.Expect(err.Error()).To(HavePrefix(
			`the use of pods is unknown (2 of 3 pods, first those from "a" to "b" in namespace "ads"): `), name)
		g.Expect(err.Error()).To(ContainSubstring(" at "+f.URL+" "), name)
		g.Expect(err.Error()).To(And(ContainSubstring(c.says), Not(ContainSubstring("\n"))), name)
		g.Expect(len(err.Error())).To(BeNumerically("<", 600), name)
		g.Expect(usage).To(BeEmpty(), name)
	}
}

// One question that fails is enough: what is kept of a role must not be replaced by less.
func TestEveryQuestionMustBeAnswered(t *testing.T) {
	for _, q := range BatchQueries(Batch{Namespace: "ads", Pods: []string{"a"}, Accelerated: []string{"a"}}, config.Trusted{}) {
		g := NewWithT(t)
		f := newFake(t)
		f.does(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Form.Get("query") != q.Expr {
				return false
			}
			says(500, "")(w, r)
			return true
		})
		usage, err := f.client(t).Collect(t.Context(), day, []Stay{stay("a", at(0, 0)).holds(1000)}, tomorrow)
		g.Expect(err).To(MatchError(ErrUnavailable), q.Expr)
		g.Expect(usage).To(BeEmpty(), q.Expr)
	}
}

func TestWhatIsAnsweredIsKept(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	f.does(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.Form.Get("query"), `namespace="z"`) {
			says(500, "")(w, r)
			return true
		}
		return false
	})
	usage, err := collect(t, f.client(t))
	g.Expect(err).To(MatchError(ErrUnavailable))
	g.Expect(usage).To(HaveKey(train(sizing.Worker)))
}

func TestAbsentAndSlow(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	f.does(func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	})
	slow := f.client(t)
	slow.timeout = 20 * time.Millisecond
	_, err := collect(t, slow)
	g.Expect(err).To(MatchError(ErrUnavailable))
	g.Expect(err).To(MatchError(HaveSuffix("the Prometheus at " + f.URL +
		" did not answer within 20ms: check its load, or raise prometheus.timeoutSeconds")))

	ctx, cancel := context.WithCancel(t.Context())
	f.does(func(_ http.ResponseWriter, r *http.Request) bool {
		cancel()
		<-r.Context().Done()
		return true
	})
	usage, err := f.client(t).Collect(ctx, day, []Stay{stay("a", at(0, 0))}, tomorrow)
	g.Expect(err).To(And(MatchError(context.Canceled), Not(MatchError(ErrUnavailable))), "that is no fault of Prometheus")
	g.Expect(usage).To(BeNil())

	f.Close()
	_, err = collect(t, f.client(t))
	g.Expect(err).To(MatchError(ErrUnavailable))
	g.Expect(err).To(MatchError(HaveSuffix("the Prometheus at " + f.URL + " cannot be reached (dial: connect: connection refused)" +
		": check that it is up, and that prometheus.url and prometheus.caFile are right")))
}

func TestWhoDoesNotAnswerIsNotAskedOnAndOn(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	f.does(func(w http.ResponseWriter, r *http.Request) bool {
		says(500, "")(w, r)
		return true
	})
	var stays []Stay
	for _, name := range names(1000) {
		stays = append(stays, stay(name, at(0, 0)))
	}
	_, err := f.client(t).Collect(t.Context(), day, stays, tomorrow)
	g.Expect(err).To(MatchError(ContainSubstring(`1000 of 1000 pods, first those from "ctr-0000" to "ctr-0099" in namespace "ads"`)))
	g.Expect(f.asked).To(HaveLen(mostFailures))

	f.asked = nil
	asked := 0
	f.does(func(w http.ResponseWriter, r *http.Request) bool {
		if asked++; asked%7 > 1 {
			return false
		}
		says(500, "")(w, r)
		return true
	})
	_, err = f.client(t).Collect(t.Context(), day, stays, tomorrow)
	g.Expect(err).To(MatchError(ErrUnavailable))
	g.Expect(len(f.asked)).To(BeNumerically(">", 20), "one that fails now and then is asked everything")
}

func TestTokens(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	trap := newFake(t)
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) { g.Expect(os.WriteFile(file, []byte(token), 0o600)).To(Succeed()) }
	write("first-secret\n")
	client := newClient(t, config.Prometheus{URL: f.URL, TokenFile: file, TimeoutSeconds: 30})
	f.does(func(http.ResponseWriter, *http.Request) bool {
		write("second-secret")
		return false
	})
	_, err := collect(t, client)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.token[0]).To(Equal("Bearer first-secret"))
	g.Expect(f.token[1:]).To(HaveEach("Bearer second-secret"))

	f.does(func(w http.ResponseWriter, r *http.Request) bool {
		echo, _ := json.Marshal(map[string]string{"status": "error", "errorType": "x", "error": "no " + r.Header.Get("Authorization")})
		says(422, string(echo))(w, r)
		return true
	})
	_, err = collect(t, client)
	g.Expect(err).To(MatchError(ContainSubstring("(x: no Bearer [token])")))
	g.Expect(err.Error()).NotTo(ContainSubstring("secret"))

	f.does(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, trap.URL, http.StatusPermanentRedirect)
		return true
	})
	_, err = collect(t, client)
	g.Expect(err).To(MatchError(ErrUnavailable))
	g.Expect(trap.asked).To(BeEmpty(), "no other server is asked, or sees the token")

	f.does(nil)
	f.asked = nil
	for _, content := range []string{"", " \n", "one\nsecret"} {
		write(content)
		_, err = collect(t, client)
		g.Expect(err).To(And(MatchError(ErrUnavailable), MatchError(ContainSubstring("has none, on one line"))))
		g.Expect(err.Error()).NotTo(ContainSubstring("secret"))
	}
	g.Expect(os.Remove(file)).To(Succeed())
	_, err = collect(t, client)
	g.Expect(err).To(MatchError(HaveSuffix("was not asked, because the token cannot be read: open " + file +
		": no such file or directory: correct prometheus.tokenFile")))
	g.Expect(f.asked).To(BeEmpty(), "nothing is asked without a token that should be there")
}

func TestURLsWithPasswordsAreInNoError(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	f.does(func(w http.ResponseWriter, r *http.Request) bool {
		says(500, "")(w, r)
		return true
	})
	address := strings.Replace(f.URL, "//", "//alice:hidden@", 1)
	client := newClient(t, config.Prometheus{URL: address, TimeoutSeconds: 30})
	_, answered := collect(t, client)
	f.Close()
	_, absent := collect(t, client)
	_, invalid := NewClient(config.Prometheus{URL: "http://alice:hidden@%zz"})
	for _, err := range []error{answered, absent, invalid} {
		g.Expect(err).To(HaveOccurred())
		for ; err != nil; err = errors.Unwrap(err) {
			g.Expect(err.Error()).NotTo(Or(ContainSubstring("alice"), ContainSubstring("hidden")))
		}
	}
}

func TestCertificates(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	server := httptest.NewTLSServer(f)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "ca.crt")
	_, err := NewClient(config.Prometheus{URL: server.URL, CAFile: file})
	g.Expect(err).To(MatchError(ContainSubstring("prometheus.caFile: open " + file)))
	g.Expect(os.WriteFile(file, []byte("none"), 0o600)).To(Succeed())
	_, err = NewClient(config.Prometheus{URL: server.URL, CAFile: file})
	g.Expect(err).To(MatchError("prometheus.caFile: " + file + " has no certificate in PEM"))
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	g.Expect(os.WriteFile(file, certificate, 0o600)).To(Succeed())

	usage, err := collect(t, newClient(t, config.Prometheus{URL: server.URL, CAFile: file, TimeoutSeconds: 30}))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(usage).To(HaveLen(1))
	_, err = collect(t, newClient(t, config.Prometheus{URL: server.URL, TimeoutSeconds: 30}))
	g.Expect(err).To(And(MatchError(ErrUnavailable), MatchError(ContainSubstring("certificate signed by unknown authority"))))
}
