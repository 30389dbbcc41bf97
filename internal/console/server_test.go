package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity/outlook"
	"github.com/tideline-io/tideline/internal/console/view"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/test/testutil/browser"
)

// hostile is what a name on a page must not do.
const hostile = `"><script>alert(1)</script><img src=x onerror=1>`

func job(namespace, name, why string) *v1beta1.ElasticTrainingJob {
	j := &v1beta1.ElasticTrainingJob{}
	j.Namespace, j.Name, j.Spec.Owner = namespace, name, "okafor"
	j.Status.Phase, j.Status.Reason, j.Status.Message = v1beta1.PhasePending, v1beta1.ReasonUnschedulable, why
	return j
}

func world(jobs ...*v1beta1.ElasticTrainingJob) *view.Model {
	held := []view.Holding{}
	for _, j := range jobs {
		held = append(held, view.Holding{Job: types.NamespacedName{Namespace: j.Namespace, Name: j.Name}, Accelerators: 2000})
	}
	return &view.Model{Jobs: jobs, Nodes: []view.Node{{Name: "node-1", Total: 8000, Held: held}}}
}

// serve serves a model to user ada with token good, who may do what may says.
func serve(m *view.Model, may func(authorizationv1.SubjectAccessReviewSpec) bool) *Server {
	api := interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			switch review := o.(type) {
			case *authenticationv1.TokenReview:
				review.Status.Authenticated = review.Spec.Token == "good"
				review.Status.User.Username = "ada"
			case *authorizationv1.SubjectAccessReview:
				review.Status.Allowed = review.Spec.User == "ada" && may(review.Spec)
			}
			return nil
		},
	})
	gather := func(context.Context) (*view.Model, error) { return m, nil }
	past := (&historian{cfg: config.DefaultConfiguration(), log: logr.Discard()}).past
	reader := fake.NewClientBuilder().WithScheme(scheme()).WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mine"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}},
		&v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: "ads"}},
		&v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: "rec"}},
	).Build()
	w := whatIfs{reader, outlook.Tellers{Start: &fitting{}, Change: changing{}}}
	return newServer(newGuard(api), gather, past, w, config.DefaultConfiguration(), logr.Discard())
}

func everything(authorizationv1.SubjectAccessReviewSpec) bool { return true }
func nothing(authorizationv1.SubjectAccessReviewSpec) bool    { return false }

func get(s *Server, path, token string) *httptest.ResponseRecorder {
	req := httptest.NewRequestWithContext(context.Background(), http.MethodGet, path, http.NoBody)
	if token != "" {
		req.AddCookie(&http.Cookie{Name: cookieName, Value: token})
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, req)
	return w
}

func TestWhoMayOpenTheConsole(t *testing.T) {
	g := NewWithT(t)
	m := world(job("one", "llama", "no room"))
	s := serve(m, everything)
	for token, code := range map[string]int{"": 401, "bad": 401, "good": 200} {
		w := get(s, "/console/", token)
		g.Expect(w.Code).To(Equal(code), "token %q", token)
		g.Expect(strings.Contains(w.Body.String(), "llama")).To(Equal(code == 200))
		g.Expect(w.Header().Get("Content-Security-Policy")).To(HavePrefix("default-src 'none'"))
	}
	closed := serve(m, func(r authorizationv1.SubjectAccessReviewSpec) bool { return r.NonResourceAttributes == nil })
	g.Expect(get(closed, "/console/jobs", "good").Code).To(Equal(http.StatusForbidden))
	g.Expect(get(s, "/console/nothing", "good").Code).To(Equal(http.StatusNotFound))
}

func TestReaderOfOneNamespaceOfThree(t *testing.T) {
	g := NewWithT(t)
	m := world(job("one", "llama", "two/secret holds 4 of nvidia.com/gpu"), job("two", "secret", ""), job("three", "covert", ""))
	m.Merges = []*v1beta1.MergeJob{mergeOf("one", "ctr"), mergeOf("two", "hidden")}
	m.Profiles = []*v1beta1.ResourceQuotaProfile{{ObjectMeta: metav1.ObjectMeta{Name: "ads"}}}
	s := serve(m, func(r authorizationv1.SubjectAccessReviewSpec) bool {
		a := r.ResourceAttributes
		return a == nil || a.Namespace == "one" || a.Resource == "nodes"
	})
	for _, path := range []string{"/console/", "/console/jobs"} {
		page := get(s, path, "good").Body.String()
		g.Expect(page).To(And(ContainSubstring("one/llama"), ContainSubstring("a job of another namespace holds 4 of nvidia.com/gpu"),
			Not(ContainSubstring("secret")), Not(ContainSubstring("covert")), Not(ContainSubstring("three"))), path)
	}
	g.Expect(get(s, "/console/jobs/one/llama", "good").Body.String()).To(And(
		ContainSubstring("a job of another namespace holds 4 of nvidia.com/gpu"), Not(ContainSubstring("secret"))))
	merges := get(s, "/console/merges", "good").Body.String()
	g.Expect(merges).To(And(ContainSubstring("one/ctr"), ContainSubstring("1 in namespaces that you may not read"),
		Not(ContainSubstring("hidden"))))
	// What may not be read is not told from what is not there.
	absent := get(s, "/console/jobs/one/nothing", "good")
	for _, path := range []string{"/console/jobs/two/secret", "/console/jobs/two/nothing", "/console/teams/ads"} {
		w := get(s, path, "good")
		g.Expect([]any{w.Code, w.Body.String()}).To(Equal([]any{404, absent.Body.String()}), path)
	}
	g.Expect(get(s, "/console/", "good").Body.String()).To(And(ContainSubstring("2 more wait in namespaces"),
		ContainSubstring("one/llama 2, others 4, 2 of 8 free")))
}

// Each question costs the API server, for each reader and namespace, every 30 seconds.
func TestMergesAreAskedAboutOnlyWhereItMatters(t *testing.T) {
	g := NewWithT(t)
	m := world(job("one", "llama", "two/covert holds 4 of nvidia.com/gpu"), job("two", "covert", ""), job("three", "covert", ""))
	m.Merges = []*v1beta1.MergeJob{mergeOf("three", "ctr")}
	asked := map[string]int{}
	s := serve(m, func(r authorizationv1.SubjectAccessReviewSpec) bool {
		a := r.ResourceAttributes
		if a != nil && a.Namespace != "" {
			asked[a.Resource+" of "+a.Namespace]++
		}
		return a == nil || a.Namespace == "one" || a.Namespace == "three" && a.Resource == "mergejobs"
	})
	g.Expect(get(s, "/console/", "good").Body.String()).To(And(ContainSubstring("one/llama"), Not(ContainSubstring("covert"))))
	g.Expect(get(s, "/console/merges", "good").Body.String()).To(ContainSubstring("three/ctr"), "merges alone may be seen")
	g.Expect(asked).To(Equal(map[string]int{
		"elastictrainingjobs of one": 1, "mergejobs of one": 1,
		"elastictrainingjobs of two":   1,
		"elastictrainingjobs of three": 1, "mergejobs of three": 1,
	}), "each once, and not whether merges of two may be seen, where there are none and no training may be seen")
}

// fill writes a text into every field that holds one, so that lists have one entry and pointers point somewhere.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), text)
	case reflect.Struct:
		if _, isTime := v.Interface().(metav1.Time); isTime {
			v.Set(reflect.ValueOf(metav1.Now()))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), text)
			}
		}
	case reflect.Int32, reflect.Int64:
		v.SetInt(1)
	default:
	}
}

// filled is a world with a text in all fields that pages show.
func filled(text string) *view.Model {
	j := job(text, text, text)
	fill(reflect.ValueOf(&j.Status).Elem(), text)
	j.Spec.Owner, j.Status.Phase = text, v1beta1.PhasePending
	p := &v1beta1.ResourceQuotaProfile{}
	fill(reflect.ValueOf(&p.Status).Elem(), text)
	fill(reflect.ValueOf(&p.Spec.Caps).Elem(), text)
	p.Name, j.Status.Profile = text, text
	merge := mergeOf(text, text)
	fill(reflect.ValueOf(&merge.Status).Elem(), text)
	merge.Spec.Owner = text
	m := world(j)
	m.Profiles, m.Merges = []*v1beta1.ResourceQuotaProfile{p}, []*v1beta1.MergeJob{merge}
	m.Nodes[0].Name, m.Nodes[0].Device = text, text
	return m
}

func mergeOf(namespace, name string) *v1beta1.MergeJob {
	m := &v1beta1.MergeJob{}
	m.Namespace, m.Name = namespace, name
	return m
}

// addresses are all pages about a world of one name.
func addresses(name string) []string {
	name = url.PathEscape(name)
	return []string{
		"/console/", "/console/jobs", "/console/merges?pool=" + name, "/console/teams/" + name, "/console/jobs/" + name + "/" + name,
		"/console/what-if?workers=2&namespace=" + name, "/console/what-if?days=99&team=" + name,
	}
}

func TestNamesMakeNoElements(t *testing.T) {
	g := NewWithT(t)
	// A slash would be part of the address.
	text := strings.ReplaceAll(hostile, "/", "")
	for _, path := range addresses(text) {
		w := get(serve(filled(text), everything), path, "good")
		g.Expect(w.Code).To(Equal(200), path)
		g.Expect(w.Body.String()).To(And(ContainSubstring("&lt;script&gt;"), Not(ContainSubstring("<script>")),
			Not(ContainSubstring("<img"))), path)
	}
}

func TestConsoleNeedsTLS(t *testing.T) {
	g := NewWithT(t)
	g.Expect(checkServed(config.Metrics{BindAddress: ":8443", Secure: true})).To(Succeed())
	g.Expect(checkServed(config.Metrics{BindAddress: "0", Secure: true})).To(MatchError(errUnservable))
	g.Expect(checkServed(config.Metrics{BindAddress: ":8443"})).To(MatchError(errUnservable))
}

// The operator says at its start that users cannot sign in, and each page says so to those who try.
func TestConsoleNeedsTheRightToReviewTokens(t *testing.T) {
	g := NewWithT(t)
	for _, may := range []bool{true, false} {
		api := interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
				switch review := o.(type) {
				case *authorizationv1.SelfSubjectAccessReview:
					review.Status.Allowed = may && review.Spec.ResourceAttributes.Resource == "tokenreviews"
				case *authenticationv1.TokenReview:
					return apierrors.NewForbidden(schema.GroupResource{Resource: "tokenreviews"}, "", errors.New("no such right"))
				}
				return nil
			},
		})
		s := serve(world(), everything)
		s.guard = newGuard(api)
		if may {
			g.Expect(s.guard.checkRights(t.Context())).To(Succeed())
			continue
		}
		g.Expect(s.guard.checkRights(t.Context())).To(MatchError(And(ContainSubstring("may not create tokenreviews"),
			ContainSubstring("system:auth-delegator"))))
		w := get(s, "/console/", "good")
		g.Expect(w.Code).To(Equal(http.StatusServiceUnavailable))
		g.Expect(w.Body.String()).To(ContainSubstring("it needs the right to create tokenreviews"))
	}
}

func TestSigningIn(t *testing.T) {
	g := NewWithT(t)
	s := serve(world(), everything)
	post := func(token, site string) *httptest.ResponseRecorder {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/console/sign-in",
			strings.NewReader(url.Values{"token": {token}}.Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Sec-Fetch-Site", site)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, req)
		return w
	}
	in := post(" good\n", "same-origin")
	g.Expect(in.Code).To(Equal(http.StatusSeeOther))
	g.Expect(in.Header().Get("Set-Cookie")).To(And(HavePrefix(cookieName+"=good;"), ContainSubstring("HttpOnly"),
		ContainSubstring("Secure"), ContainSubstring("SameSite=Strict"), ContainSubstring("Path=/console/")))
	g.Expect(post("good", "cross-site").Code).To(Equal(http.StatusForbidden))
	g.Expect(post(strings.Repeat("a", mostToken+1), "same-origin").Code).To(Equal(http.StatusBadRequest))
}

// A page of 10,000 jobs takes less than 50 MB, once the cluster was read. The time has a bound for busy machines and the race
// detector; 200 ms are meant, and not shown here.
func TestFirstPageOfManyJobs(t *testing.T) {
	g := NewWithT(t)
	var jobs []*v1beta1.ElasticTrainingJob
	for i := range 10_000 {
		jobs = append(jobs, job(fmt.Sprintf("team-%d", i%100), fmt.Sprintf("job-%d", i), "no room for 8 workers"))
		jobs[i].Status.Profile = "ads"
	}
	m := &view.Model{Jobs: jobs, Profiles: []*v1beta1.ResourceQuotaProfile{{ObjectMeta: metav1.ObjectMeta{Name: "ads"}}}}
	for i := range 10_000 {
		m.Merges = append(m.Merges, mergeOf(fmt.Sprintf("team-%d", i%100), fmt.Sprintf("merge-%d", i)))
	}
	s := serve(m, everything)
	get(s, "/console/", "good")
	for _, path := range []string{
		"/console/", "/console/jobs", "/console/teams/ads", "/console/jobs/team-7/job-7", "/console/merges",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begin := time.Now()
		w := get(s, path, "good")
		took := time.Since(begin)
		runtime.ReadMemStats(&after)
		g.Expect(w.Code).To(Equal(200))
		g.Expect(after.TotalAlloc-before.TotalAlloc).To(BeNumerically("<", 50<<20), "bytes of %s", path)
		g.Expect(took).To(BeNumerically("<", 2*time.Second), path)
		g.Expect(w.Body.Len()).To(BeNumerically("<", 200_000))
		t.Logf("%s: %s, %d kB", path, took, (after.TotalAlloc-before.TotalAlloc)/1000)
	}
}

const tooWide = `[...document.querySelectorAll("body, body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 0.5)
	.map(e => e.outerHTML.slice(0, 200)).concat(document.documentElement.scrollWidth > innerWidth ? ["the page scrolls"] : [])`

func TestPagesInABrowser(t *testing.T) {
	chromium, err := browser.Start(t.Context())
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = chromium.Stop() }()
	axe, noAxe := browser.Axe(t.Context())
	if noAxe != nil && !errors.Is(noAxe, browser.ErrNoAxe) {
		t.Fatal(noAxe)
	}
	m := filled(strings.Repeat("long-name-", 20))
	m.Jobs = append(m.Jobs, job("two", "llama", hostile))
	s := serve(m, everything)
	s.past = func(context.Context, *v1beta1.ElasticTrainingJob, time.Time) *view.Past {
		return pastOfTwo(time.Now().Add(-time.Hour))
	}
	long := strings.Repeat("long-name-", 20)
	shown := map[string]string{
		"sign-in":  get(s, "/console/", "").Body.String(),
		"no page":  get(s, "/console/"+long, "good").Body.String(),
		"no right": get(serve(m, nothing), "/console/", "good").Body.String(),
		"wrong":    get(s, "/console/what-if?namespace="+long, "good").Body.String(),
	}
	for _, path := range append(addresses(long), "/console/jobs/two/llama", fmt.Sprintf(asked, "mine")) {
		shown[path] = get(s, path, "good").Body.String()
	}
	for path, content := range shown {
		content = strings.Replace(content, `<link rel="stylesheet" href="/console/page.css">`,
			"<style>"+style+"</style>", 1)
		file := filepath.Join(t.TempDir(), "page.html")
		NewWithT(t).Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
		for _, width := range []int{360, 1440} {
			for _, scheme := range []string{"light", "dark"} {
				g := NewWithT(t)
				g.Expect(chromium.Show("file://"+file, width, scheme)).To(Succeed())
				var found []string
				g.Expect(chromium.Ask(tooWide, &found)).To(Succeed())
				g.Expect(found).To(BeEmpty(), "%s at %d pixels, %s", path, width, scheme)
				if axe != "" {
					g.Expect(chromium.Audit(axe)).To(BeEmpty(), "%s at %d pixels, %s", path, width, scheme)
				}
			}
		}
	}
	if noAxe != nil {
		t.Skipf("widths were looked at; contrasts, names and roles were not: %v", noAxe)
	}
}
