package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity/outlook"
	"github.com/tideline-io/tideline/internal/platform/config"
)

// mostMemory is what reviews may take, in bytes, of the 512 Mi that the operator has.
const mostMemory = 64 << 20

// review is one as the API server writes it.
func review(object string) string {
	return `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","operation":"CREATE",` +
		`"namespace":"ads","name":"ctr","userInfo":{"username":"alice"},"object":` + object + `,"oldObject":` + object + `}}`
}

// list is a JSON list of one element, as often as it fits into so many bytes.
func list(element string, size int) string {
	n := size / (len(element) + 1)
	return "[" + strings.Repeat(element+",", n) + element + "]"
}

func jobWith(containers string) string {
	return `{"spec":{"template":{"spec":{"containers":` + containers + `}}}}`
}

// post sends a review to a hook that is really served, with its length or without, and returns status and body of the answer.
func post(t *testing.T, server, body string, chunked bool) (int, string) {
	t.Helper()
	var content io.Reader = strings.NewReader(body)
	if chunked {
		content = io.MultiReader(content)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server, content)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return response.StatusCode, string(answer)
}

// posted is a review as it reaches a handler that nothing serves.
func posted(t *testing.T, body string) *http.Request {
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	return request
}

// allocated is what is allocated meanwhile, in bytes.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func allHooks() map[string]http.Handler {
	return webhookHandlers(&reviewer{}, config.DefaultConfiguration(), nil, outlook.Tellers{}, time.Now, newGate())
}

// hostile are reviews that would take many times what they have, or that are larger than any.
func hostile() map[string]string {
	containers := func(size int) string { return review(jobWith(list("{}", size/2))) }
	return map[string]string{
		"containers in 6.6 MB": containers(6_600_000),
		"words in 6.6 MB":      review(`{"metadata":{"annotations":{"a":"` + strings.Repeat("x", 3_300_000) + `"}}}`),
		"groups in 2 MB":       strings.Replace(review(`{}`), `"username"`, `"groups":`+list(`""`, 2_000_000)+`,"username"`, 1),
		"extras in 2 MB":       strings.Replace(review(`{}`), `"username"`, `"extra":{"a":`+list(`""`, 2_000_000)+`},"username"`, 1),
		"an object of 2 MB":    review(`{"a":"` + strings.Repeat("x", 2_000_000) + `"}`),
		"aliases in YAML": "a: &a [" + strings.Repeat("x,", 500) + "x]\nb: &b [" + strings.Repeat("*a,", 500) + "*a]\nc: [" +
			strings.Repeat("*b,", 500) + "*b]\n",
	}
}

func TestReviewsTakeNoMemory(t *testing.T) {
	chunked := false
	for path, hook := range allHooks() {
		server := httptest.NewServer(hook)
		t.Cleanup(server.Close)
		for name, body := range hostile() {
			// Maps have another order in each run, so that each is sent in one piece and in chunks now and then.
			chunked = !chunked
			t.Run(fmt.Sprintf("%s %s %t", path, name, chunked), func(t *testing.T) {
				g := NewWithT(t)
				took := allocated(func() {
					code, answer := post(t, server.URL, body, chunked)
					refusedInWords(g, code, answer)
				})
				g.Expect(took).To(BeNumerically("<", mostMemory))
			})
		}
	}
}

// refusedInWords holds an answer to be a refusal that says what is wrong.
func refusedInWords(g Gomega, code int, answer string) {
	var review admissionv1.AdmissionReview
	if code != http.StatusOK {
		g.Expect(code).To(BeElementOf(400, 413, 429), answer)
		g.Expect(answer).To(ContainSubstring(" bytes"))
		return
	}
	g.Expect(json.Unmarshal([]byte(answer), &review)).To(Succeed())
	g.Expect(review.Kind).To(Equal("AdmissionReview"))
	g.Expect(review.Response.UID).To(BeEquivalentTo("u-1"))
	g.Expect(review.Response.Allowed).To(BeFalse())
	g.Expect(review.Response.Result.Message).To(MatchRegexp(`bytes|memory`))
	g.Expect(review.Response.Result.Code).To(BeElementOf(int32(413), int32(422), int32(429)))
}

func TestParallelReviewsTakeNoMemory(t *testing.T) {
	for path, hook := range allHooks() {
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)
			server := httptest.NewServer(hook)
			defer server.Close()
			all := hostile()
			var answers [8]string
			var codes [8]int
			took := allocated(func() {
				var sent sync.WaitGroup
				for i := range answers {
					sent.Go(func() { codes[i], answers[i] = post(t, server.URL, all["containers in 6.6 MB"], i%2 == 0) })
				}
				sent.Wait()
			})
			for i := range answers {
				refusedInWords(g, codes[i], answers[i])
			}
			g.Expect(took).To(BeNumerically("<", mostMemory))
		})
	}
}

// What fits into the size of an object is refused by what it would take.
func TestObjectsAreMeasuredBeforeTheyAreDecoded(t *testing.T) {
	const most = maxObject - 200
	for name, c := range map[string]struct {
		path, object, words string
	}{
		"containers": {validateJobPath, jobWith(list("{}", most)),
			`^spec\.template\.spec\.containers\[\d+\]: up to this field .* limit of 6291456 bytes .*: shorten the list`},
		"in other letters": {validateJobPath,
			`{"SPEC":{"\u0074emplate":{"spec":{"containerſ":` + list("{}", most) + `}}}}`, `containerſ\[\d+\]`},
		"of a merge": {validateMergePath,
			`{"spec":{"template":{"spec":{"volumes":` + list("{}", most) + `}}}}`, `volumes\[\d+\]`},
		"owners of a job": {approvePath,
			`{"metadata":{"ownerReferences":` + list("{}", most) + `}}`, `^metadata.ownerReferences\[\d+\]: `},
		"written twice": {approvePath,
			`{"metadata":{"annotations":{` + strings.Repeat(`"":"",`, most/6) + `"":""}}}`, `^metadata.annotations`},
		"a large quantity": {validateJobPath, asking(`"1E-2000000000"`),
			`memory\]: it is "1E-2000000000", and the exponent .* 3 digits: write`},
		"and as a number": {validateJobPath, asking(`1e-2000000000`), `memory\]: it is "1e-2000000000"`},
		"and escaped":     {validateJobPath, asking(`"1\u0045-2000000000"`), `memory\]: it is`},
		"a long quantity": {validateJobPath, asking(`"` + strings.Repeat("9", 65) + `"`),
			`it has 65 characters, and a quantity may have 64`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			body := strings.Replace(review(c.object), `"oldObject":`+c.object, `"oldObject":null`, 1)
			recorder := httptest.NewRecorder()
			took := allocated(func() {
				allHooks()[c.path].ServeHTTP(recorder, posted(t, body))
			})
			var answer admissionv1.AdmissionReview
			g.Expect(json.Unmarshal(recorder.Body.Bytes(), &answer)).To(Succeed())
			g.Expect(answer.Response.Allowed).To(BeFalse())
			g.Expect(answer.Response.Result.Message).To(MatchRegexp(c.words))
			g.Expect(took).To(BeNumerically("<", mostMemory/4))
		})
	}
}

func asking(memory string) string {
	return `{"spec":{"template":{"spec":{"containers":[{"resources":{"requests":{"memory":` + memory + `}}}]}}}}`
}

// No object that its schema and etcd take is too large to be read, and the largest stays within the memory.
func TestLargestJobPasses(t *testing.T) {
	g := NewWithT(t)
	spec := corev1.PodSpec{}
	for range 16 {
		c := corev1.Container{Name: "worker", Image: "registry.example/image:1"}
		for i := range 1000 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("NAME_%05d", i), ValueFrom: &corev1.EnvVarSource{
				FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"},
			}})
		}
		spec.Containers = append(spec.Containers, c)
	}
	job := &v1beta1.ElasticTrainingJob{}
	job.Spec.Template.Spec = spec
	content, err := json.Marshal(job)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(content)).To(BeNumerically(">", maxObject-maxObject/10), "it is one of the largest")
	g.Expect(len(content)).To(BeNumerically("<", maxObject))
	for path, hook := range allHooks() {
		recorder := httptest.NewRecorder()
		request := posted(t, review(string(content)))
		took := allocated(func() { hook.ServeHTTP(recorder, request) })
		var answer admissionv1.AdmissionReview
		g.Expect(json.Unmarshal(recorder.Body.Bytes(), &answer)).To(Succeed(), path)
		if answer.Response.Result != nil {
			g.Expect(answer.Response.Result.Message).To(
				Or(Not(MatchRegexp("bytes|memory")), ContainSubstring("spec.template: Invalid value")),
				"%s: it is decoded, and judged then", path)
		}
		t.Logf("%s: %d MB", path, took>>20)
		g.Expect(took).To(BeNumerically("<", mostMemory), path)
	}
}

// What is measured is what decoding takes: less would let through what is too large, and much more would refuse what is not.
func TestMeasureIsTrue(t *testing.T) {
	container := func(fields string) string { return jobWith("[{" + fields + "}]") }
	for name, object := range map[string]string{
		"containers":  jobWith(list(`{}`, 15_000)),
		"env":         container(`"env":` + list(`{"name":"abc","value":"defghijk"}`, 400_000)),
		"words":       container(`"args":` + list(`"ab"`, 400_000)),
		"annotations": `{"metadata":{"annotations":{` + annotations(20_000) + `}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			size, wrong := decodedSize([]byte(review(object)), reflect.TypeFor[v1beta1.ElasticTrainingJob]())
			g.Expect(wrong).To(BeEmpty())
			size /= 2 // The review has it twice.
			job := &v1beta1.ElasticTrainingJob{}
			took := allocated(func() { g.Expect(json.Unmarshal([]byte(object), job)).To(Succeed()) })
			g.Expect(took).To(BeNumerically(">", size/2))
			g.Expect(took).To(BeNumerically("<", 6*size), "lists that grow are copied a few times")
		})
	}
}

func annotations(n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, `"key-%d":"value",`, i)
	}
	return all.String() + `"last":""`
}

func TestWhatIsNoReviewIsRefused(t *testing.T) {
	for _, body := range []string{
		"", "{", "a: b", "[]", "5", "k8s\x00", strings.Repeat("[", 20_000), `{"a":` + strings.Repeat("[", 5000),
	} {
		recorder := httptest.NewRecorder()
		allHooks()[validateJobPath].ServeHTTP(recorder, posted(t, body))
		if recorder.Code != http.StatusBadRequest || !strings.Contains(recorder.Body.String(), "send an AdmissionReview") {
			t.Errorf("%.20q: %d %s", body, recorder.Code, recorder.Body)
		}
	}
}

// Whoever sends no more than a part gives back the room that it takes, as controller-runtime serves the webhook.
func TestReviewThatDoesNotArriveIsRefused(t *testing.T) {
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		g := NewWithT(t)
		gate := newGate()
		gate.arrival = time.Millisecond
		served := webhook.NewServer(webhook.Options{})
		hooks := webhookHandlers(&reviewer{}, config.DefaultConfiguration(), nil, outlook.Tellers{}, time.Now, gate)
		served.Register(validateJobPath, hooks[validateJobPath])
		server := httptest.NewUnstartedServer(served.WebhookMux())
		server.EnableHTTP2 = protocol == "HTTP/2.0"
		server.StartTLS()
		rest, never := io.Pipe()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+validateJobPath,
			io.MultiReader(strings.NewReader(review("{}")), rest))
		g.Expect(err).NotTo(HaveOccurred())
		request.ContentLength = 2 * smallReview
		response, err := server.Client().Do(request)
		g.Expect(err).NotTo(HaveOccurred(), protocol)
		g.Expect(response.Proto).To(Equal(protocol))
		content, err := io.ReadAll(response.Body)
		g.Expect(err).NotTo(HaveOccurred(), protocol)
		g.Expect(string(content)).To(ContainSubstring("did not arrive within 1ms"), protocol)
		g.Expect(never.Close()).To(Succeed()) // for which closing the body waits
		g.Expect(response.Body.Close()).To(Succeed())
		server.Close()
		g.Expect(gate.large.TryAcquire(roomForLarge)).To(BeTrue(), "no room is taken")
	}
}

// While large reviews take all the room there is, others are told to come again, and small ones pass.
func TestLargeReviewsWaitForRoom(t *testing.T) {
	g := NewWithT(t)
	gate := newGate()
	gate.patience = 0
	held := webhookHandlers(&reviewer{}, config.DefaultConfiguration(), nil, outlook.Tellers{}, time.Now, gate)[validateJobPath]
	send := func(size int) admissionv1.AdmissionReview {
		body := review(`{"spec":{}}`)
		recorder := httptest.NewRecorder()
		held.ServeHTTP(recorder, posted(t, body+strings.Repeat(" ", max(0, size-len(body)))))
		var answer admissionv1.AdmissionReview
		g.Expect(json.Unmarshal(recorder.Body.Bytes(), &answer)).To(Succeed())
		return answer
	}
	busy := func(answer admissionv1.AdmissionReview) {
		g.Expect(answer.Response.Allowed).To(BeFalse())
		g.Expect(answer.Response.Result.Code).To(BeEquivalentTo(http.StatusTooManyRequests))
		g.Expect(answer.Response.Result.Message).To(ContainSubstring("try again"))
	}
	for _, room := range []struct {
		of   *semaphore.Weighted
		size int64
	}{{gate.large, roomForLarge}, {gate.decoded, roomForDecoded}} {
		g.Expect(room.of.TryAcquire(room.size)).To(BeTrue())
		busy(send(smallReview + 1))
		if room.of == gate.large {
			g.Expect(send(0).Response.Result.Code).NotTo(BeEquivalentTo(http.StatusTooManyRequests))
		} else {
			busy(send(0))
		}
		room.of.Release(room.size)
		again := send(smallReview + 1)
		g.Expect(again.Response.Result.Code).NotTo(BeEquivalentTo(http.StatusTooManyRequests), "what was taken is given back")
	}
	g.Expect(gate.small.TryAcquire(roomForSmall) && gate.large.TryAcquire(roomForLarge) && gate.decoded.TryAcquire(roomForDecoded)).
		To(BeTrue(), "all of it")
}

func TestUIDOf(t *testing.T) {
	for head, want := range map[string]string{
		review("{}"):                             "u-1",
		review("{}")[:90]:                        "u-1",
		`{"request":{"a":[{"uid":"x"}],"uid":"y`: "",
		`{"request":{"a":[{"uid":"x"}],"b":{"uid":"z"},"uid":"y"`:    "y",
		`{"uid":"x","request":{"object":{"uid":"z"}}}`:               "",
		`{"a":"request","request":{"kind":"uid","b":"uid","uid":"y"`: "y",
		`{"request":{"uid":"` + strings.Repeat("x", 129) + `"}}`:     "",
		`{"request":{"uid":5}}`:                                      "",
		``:                                                           "",
		`"a"`:                                                        "",
		`{}"uid"`:                                                    "",
		`[[`:                                                         "",
	} {
		if uid := uidOf([]byte(head)); string(uid) != want {
			t.Errorf("%s: %q, want %q", head, uid, want)
		}
	}
}

// Whatever the API server is told to call goes through the gate.
func TestHooksAreThoseThatTheAPIServerCalls(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile("../../config/webhook/manifests.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	called := map[string]bool{}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		var configuration admissionregistrationv1.ValidatingWebhookConfiguration // of mutating ones, what they share
		err := decoder.Decode(&configuration)
		if errors.Is(err, io.EOF) {
			break
		}
		g.Expect(err).NotTo(HaveOccurred())
		for _, w := range configuration.Webhooks {
			called[*w.ClientConfig.Service.Path] = true
		}
	}
	served := map[string]bool{}
	for path := range allHooks() {
		served[path] = true
	}
	g.Expect(served).To(Equal(called))
}
