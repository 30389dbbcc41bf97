// Package console serves pages of the cluster as it is now: read-only, to who may get their path, and to each what the reader
// may list in the cluster.
package console

import (
	"bytes"
	"context"
	_ "embed" // pages
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity/outlook"
	"github.com/tideline-io/tideline/internal/console/view"
	"github.com/tideline-io/tideline/internal/platform/claimcache"
	"github.com/tideline-io/tideline/internal/platform/config"
)

const (
	// pageTimeout bounds how long one page may take.
	pageTimeout = 20 * time.Second
	// atOnce is how many pages are made at a time, so that many readers do not slow reconciles down.
	atOnce = 2
	// cookieName is the cookie that holds the token of who signed in. Browsers keep at most 4 kB.
	cookieName, mostToken = "__Secure-tideline-console", 3800
	policy                = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; " +
		"script-src 'self'; connect-src 'self'"
)

var (
	//go:embed page.css
	style string
	//go:embed live.js
	script string
	//go:embed pages.html.tmpl
	pagesText string
	pages     = template.Must(template.New("pages").Parse(pagesText))
)

// Server serves the console. It asks who its readers are by itself, because what it shows depends on that.
type Server struct {
	guard  *guard
	gather func(context.Context) (*view.Model, error)
	past   pastOf
	// whatIfs are answered by what would be.
	whatIfs whatIfs
	cfg     *config.Configuration
	log     logr.Logger
	// now is the time by which pages say how long something lasts: that of the API server, as the times in statuses are.
	now    func() time.Time
	origin *http.CrossOriginProtection
	slots  chan struct{}
	// streams are the pages that are followed, and pace is how long each waits until it is made again.
	streams *streams
	pace    func(followed int, took time.Duration) time.Duration
}

// pastOf is what is on record about a training.
type pastOf = func(context.Context, *v1beta1.ElasticTrainingJob, time.Time) *view.Past

func newServer(
	g *guard, gather func(context.Context) (*view.Model, error), past pastOf, w whatIfs, cfg *config.Configuration,
	log logr.Logger,
) *Server {
	return &Server{
		guard: g, gather: gather, past: past, whatIfs: w, cfg: cfg, log: log, now: time.Now,
		origin: http.NewCrossOriginProtection(), slots: make(chan struct{}, atOnce), streams: newStreams(), pace: pace,
	}
}

// errUnservable is for a console that would be served nowhere, or to everybody.
var errUnservable = errors.New("console.enabled needs metrics.secure and a metrics.bindAddress, where it is served: set them, " +
	"or set console.enabled to false")

// checkServed tells whether the configuration serves metrics as the console needs it; [errUnservable] if not.
func checkServed(m config.Metrics) error {
	if !m.Secure || m.BindAddress == "0" {
		return errUnservable
	}
	return nil
}

// Setup has a manager's server of metrics serve the console. It fails if that server is off or has no TLS. The ledger is opened
// when a page asks for it, if one is configured. tellers answer what-if questions. now is the API server's clock.
func Setup(
	mgr ctrl.Manager, cfg *config.Configuration, claims *claimcache.Reader, open OpenLedger, tellers outlook.Tellers,
	now func() time.Time,
) error {
	if err := checkServed(cfg.Metrics); err != nil {
		return err
	}
	g := &gatherer{cache: mgr.GetCache(), cfg: cfg, counted: claims.CountedOf}
	log := mgr.GetLogger().WithName("console")
	if !cfg.Ledger.IsConfigured() {
		open = nil
	}
	h := &historian{open: open, cfg: cfg, log: log}
	s := newServer(newGuard(mgr.GetClient()), g.now, h.past, whatIfs{mgr.GetCache(), tellers}, cfg, log)
	s.now = now
	if err := mgr.Add(s.streams); err != nil {
		return err
	}
	// Trainings do not depend on the console, so that the operator starts all the same.
	err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if err := s.guard.checkRights(ctx); err != nil {
			log.Error(err, "Cannot let anybody in")
		}
		return nil
	}))
	if err != nil {
		return err
	}
	return mgr.AddMetricsServerExtraHandler(view.Root, s)
}

// Provider makes the filter of a server of metrics.
type Provider = func(*rest.Config, *http.Client) (metricsserver.Filter, error)

// LeaveOut has a filter leave the console to its own guard, which also knows who signed in by browser.
func LeaveOut(filter Provider) Provider {
	return func(c *rest.Config, h *http.Client) (metricsserver.Filter, error) {
		guarded, err := filter(c, h)
		if err != nil {
			return nil, err
		}
		return func(log logr.Logger, handler http.Handler) (http.Handler, error) {
			if _, is := handler.(*Server); is {
				return handler, nil
			}
			return guarded(log, handler)
		}, nil
	}
}

// page is what a template gets.
type page struct {
	Title   string
	Sight   *view.Sight
	Problem string
	Content any
	// Still is true for a page that is not followed.
	Still bool
}

// ServeHTTP serves one page.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	head := w.Header()
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Cache-Control", "no-store")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Content-Security-Policy", policy)
	path := strings.TrimPrefix(req.URL.Path, view.Root)
	switch {
	case req.Method == http.MethodPost && (path == "sign-in" || path == "sign-out"):
		s.sign(w, req, path == "sign-in")
	case req.Method != http.MethodGet && req.Method != http.MethodHead:
		http.Error(w, "the console is read only: GET", http.StatusMethodNotAllowed)
	case path == "page.css":
		head.Set("Content-Type", "text/css; charset=utf-8")
		http.ServeContent(w, req, "", time.Time{}, strings.NewReader(style))
	case path == "live.js":
		head.Set("Content-Type", "text/javascript; charset=utf-8")
		http.ServeContent(w, req, "", time.Time{}, strings.NewReader(script))
	default:
		a, there := addressOf(path)
		if !there {
			s.answer(w, http.StatusNotFound, "problem", page{Title: "No such page", Problem: "There is no page of this address."})
			return
		}
		if isFollowed(req) && a.section != whatIf {
			s.follow(w, req, a)
			return
		}
		found := s.read(req, a)
		s.answer(w, found.code, found.template, found.page)
	}
}

// answerTo is what a reader gets who asks for a page.
type answerTo struct {
	code     int
	template string
	page     page
}

// read makes a page for a reader who may see it, or one that says why not.
func (s *Server) read(req *http.Request, at address) answerTo {
	ctx, cancel := context.WithTimeout(req.Context(), pageTimeout)
	defer cancel()
	token := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	if cookie, err := req.Cookie(cookieName); token == "" && err == nil {
		token = cookie.Value
	}
	if token == "" {
		return answerTo{http.StatusUnauthorized, "sign-in", page{Title: "Sign in"}}
	}
	user, err := s.guard.identify(ctx, token)
	if errors.Is(err, errStranger) {
		return answerTo{http.StatusUnauthorized, "sign-in", page{Title: "Sign in", Problem: "The API server does not know this " +
			"token, or it has ended."}}
	}
	if errors.Is(err, errTooMany) {
		return answerTo{http.StatusTooManyRequests, "sign-in", page{Title: "Not now", Problem: "Too many sign in at once. Load the " +
			"page again in a few seconds."}}
	}
	var may bool
	if err == nil {
		may, err = s.guard.mayOpen(ctx, &user, view.Root+at.section)
	}
	if err == nil && !may {
		return answerTo{http.StatusForbidden, "problem", page{Title: "Not for you", Problem: user.Username + " may not get " +
			view.Root + ": have a cluster admin bind ClusterRole tideline-console."}}
	}
	var content page
	if err == nil {
		content, err = s.make(ctx, at, &user, req.URL.Query())
	}
	switch {
	case err != nil:
		s.log.Error(err, "Cannot serve the console")
		return answerTo{http.StatusServiceUnavailable, "problem", page{Title: "Not now", Problem: "The API server or the caches did " +
			"not answer. The operator's log says why; it needs the right to create tokenreviews, which component monitoring has."}}
	case content.Content == nil:
		content.Title, content.Problem = "Nothing here", "There is none by this name, or you may not read it."
		return answerTo{http.StatusNotFound, "problem", content}
	}
	return answerTo{http.StatusOK, at.template(), content}
}

// make makes a page for a user; its content is nil if what the page is about is not there, or not for this user.
func (s *Server) make(ctx context.Context, at address, user *authenticationv1.UserInfo, query url.Values) (page, error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return page{}, ctx.Err()
	}
	m, err := s.gather(ctx)
	if err != nil {
		return page{}, err
	}
	sight, err := s.guard.sightOf(ctx, user, m)
	if err != nil {
		return page{}, err
	}
	number := func(name string) int { n, _ := strconv.Atoi(query.Get(name)); return n }
	p, now := page{Sight: sight}, s.now()
	switch {
	case at.section == whatIf:
		p.Title, p.Still = "What if", true
		p.Content, err = s.whatIf(ctx, user, m, sight, query)
	case at.section == "":
		p.Title, p.Content = "The cluster now", view.NewCluster(m, sight, s.cfg, number("nodes"), now)
	case at.section == "merges":
		p.Title, p.Content = "Merges", view.NewMerges(m, sight, query.Get("pool"), number("page"), now)
	case at.section == "jobs" && at.name == "":
		p.Title, p.Content = "Trainings", view.NewJobs(m, sight, query.Get("show"), number("page"), now)
	case at.section == "jobs":
		if j := m.FindJob(sight, types.NamespacedName{Namespace: at.namespace, Name: at.name}); j != nil {
			p.Title, p.Content = at.namespace+"/"+at.name, view.NewJob(j, s.past(ctx, j, now), sight, now)
		}
	default:
		if of := m.FindTeam(sight, at.name); of != nil {
			p.Title, p.Content = "Team "+at.name, view.NewTeam(of, m, sight, s.cfg, number("page"), now)
		}
	}
	return p, err
}

// whatIf is the section in which people ask what would be.
const whatIf = "what-if"

// address is which page is asked for.
type address struct {
	// section is the part of the console: empty for the cluster, jobs, teams, merges or what-if.
	section string
	// namespace and name are of the object that a page is about; empty for lists.
	namespace, name string
}

// addressOf reads an address below the console's root; false for one of no page.
func addressOf(path string) (address, bool) {
	parts := strings.Split(path, "/")
	a := address{section: parts[0]}
	switch {
	case len(parts) == 1:
		return a, slices.Contains([]string{"", "jobs", "merges", whatIf}, a.section)
	case len(parts) == 2 && a.section == "teams":
		a.name = parts[1]
	case len(parts) == 3 && a.section == "jobs":
		a.namespace, a.name = parts[1], parts[2]
	}
	return a, a.name != ""
}

// template is the name of the page's template.
func (a address) template() string {
	switch {
	case a.section == "":
		return "cluster"
	case a.name == "":
		return a.section
	}
	return strings.TrimSuffix(a.section, "s")
}

// answer writes a page.
func (s *Server) answer(w http.ResponseWriter, code int, name string, p page) {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, p); err != nil {
		s.log.Error(err, "Cannot write a page of the console", "page", name)
		http.Error(w, "the page cannot be written: the operator's log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes())
}

// sign keeps the token of a form in a cookie of the browser, which scripts cannot read, or has the browser forget it.
func (s *Server) sign(w http.ResponseWriter, req *http.Request, in bool) {
	if err := s.origin.Check(req); err != nil {
		http.Error(w, "this form is of another site", http.StatusForbidden)
		return
	}
	cookie := &http.Cookie{
		Name: cookieName, Path: view.Root, Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: -1,
	}
	if in {
		req.Body = http.MaxBytesReader(w, req.Body, 1<<16)
		cookie.Value, cookie.MaxAge = strings.TrimSpace(req.PostFormValue("token")), 0
		if n := len(cookie.Value); n == 0 || n > mostToken {
			s.answer(w, http.StatusBadRequest, "sign-in", page{Title: "Sign in", Problem: "A token has from 1 to " +
				strconv.Itoa(mostToken) + " characters, because browsers keep no longer ones."})
			return
		}
	}
	http.SetCookie(w, cookie)
	http.Redirect(w, req, view.Root, http.StatusSeeOther)
}
