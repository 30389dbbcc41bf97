package console

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/console/view"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/test/testutil/browser"
)

// hostile is what a name on a page must not do.
const hostile = `"><script>alert(1)</script><img src=x onerror=1>`

func job(namespace, name, why string) *v1alpha1.ElasticTrainingJob {
	j := &v1alpha1.ElasticTrainingJob{}
	j.Namespace, j.Name, j.Spec.Owner = namespace, name, "okafor"
	j.Status.Phase, j.Status.Reason, j.Status.Message = v1alpha1.PhasePending, v1alpha1.ReasonUnschedulable, why
	return j
}

func world(jobs ...*v1alpha1.ElasticTrainingJob) *view.Model {
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
	return newServer(&guard{api: api}, gather, config.DefaultConfiguration(), logr.Discard())
}

func everything(authorizationv1.SubjectAccessReviewSpec) bool { return true }

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
	s := serve(m, func(r authorizationv1.SubjectAccessReviewSpec) bool {
		a := r.ResourceAttributes
		return a == nil || a.Namespace == "one" || a.Resource == "nodes"
	})
	for _, path := range []string{"/console/", "/console/jobs"} {
		page := get(s, path, "good").Body.String()
		g.Expect(page).To(And(ContainSubstring("one/llama"), ContainSubstring("a job of another namespace holds 4 of nvidia.com/gpu"),
			Not(ContainSubstring("secret")), Not(ContainSubstring("covert")), Not(ContainSubstring("three"))), path)
	}
	g.Expect(get(s, "/console/", "good").Body.String()).To(And(ContainSubstring("2 more wait in namespaces"),
		ContainSubstring("one/llama 2, others 4, 2 of 8 free")))
}

func TestNamesMakeNoElements(t *testing.T) {
	g := NewWithT(t)
	j := job("one", hostile, hostile)
	j.Spec.Owner, j.Status.Reason, j.Status.Queue, j.Status.Tier, j.Status.Summary = hostile, hostile, hostile, hostile, hostile
	p := &v1alpha1.ResourceQuotaProfile{}
	p.Name, p.Status.Reason = hostile, hostile
	m := world(j)
	m.Profiles, m.Nodes[0].Name, m.Nodes[0].Device = []*v1alpha1.ResourceQuotaProfile{p}, hostile, hostile
	for _, path := range []string{"/console/", "/console/jobs?show=" + url.QueryEscape(hostile)} {
		page := get(serve(m, everything), path, "good").Body.String()
		g.Expect(page).To(And(ContainSubstring("&lt;script&gt;"), Not(ContainSubstring("<script")), Not(ContainSubstring("<img"))))
	}
}

func TestConsoleNeedsTLS(t *testing.T) {
	g := NewWithT(t)
	g.Expect(checkServed(config.Metrics{BindAddress: ":8443", Secure: true})).To(Succeed())
	g.Expect(checkServed(config.Metrics{BindAddress: "0", Secure: true})).To(MatchError(errUnservable))
	g.Expect(checkServed(config.Metrics{BindAddress: ":8443"})).To(MatchError(errUnservable))
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
	var jobs []*v1alpha1.ElasticTrainingJob
	for i := range 10_000 {
		jobs = append(jobs, job(fmt.Sprintf("team-%d", i%100), fmt.Sprintf("job-%d", i), "no room for 8 workers"))
	}
	s := serve(&view.Model{Jobs: jobs}, everything)
	get(s, "/console/", "good")
	for _, path := range []string{"/console/", "/console/jobs"} {
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
	j := job("one", strings.Repeat("long-name-", 20), strings.Repeat("x", 500))
	m := world(j, job("two", "llama", hostile))
	p := &v1alpha1.ResourceQuotaProfile{}
	p.Name = strings.Repeat("team", 15)
	m.Profiles = []*v1alpha1.ResourceQuotaProfile{p}
	s := serve(m, everything)
	for i, path := range []string{"/console/", "/console/jobs"} {
		content := strings.Replace(get(s, path, "good").Body.String(), `<link rel="stylesheet" href="/console/page.css">`,
			"<style>"+style+"</style>", 1)
		file := filepath.Join(t.TempDir(), fmt.Sprintf("page-%d.html", i))
		NewWithT(t).Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
		for _, width := range []int{360, 1440} {
			for _, scheme := range []string{"light", "dark"} {
				g := NewWithT(t)
				g.Expect(chromium.Show("file://"+file, width, scheme)).To(Succeed())
				var found []string
				g.Expect(chromium.Ask(tooWide, &found)).To(Succeed())
				g.Expect(found).To(BeEmpty(), "%s at %d pixels, %s", path, width, scheme)
			}
		}
	}
}
