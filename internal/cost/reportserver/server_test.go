package reportserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/cost/report"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/test/testutil/week"
)

func answer(t *testing.T, s *Server, method, path string) *http.Response {
	t.Helper()
	recorded := httptest.NewRecorder()
	s.ServeHTTP(recorded, httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody))
	return recorded.Result()
}

func TestFilesOfReportsAreServed(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "ledger.db")
	open := func(ctx context.Context) (*ledger.Ledger, error) { return ledger.Open(ctx, ledger.Options{File: file}) }
	l, err := open(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	monday := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	for weeks, content := range []string{"this week", "last week"} {
		to := monday.AddDate(0, 0, -7*weeks)
		g.Expect(l.KeepReport(t.Context(), ledger.KeptReport{
			Report: "uid", Name: "weekly", From: to.AddDate(0, 0, -7), To: to, Revision: 1, MadeAt: to, Summary: "{}",
		}, map[string]string{"report.html": content, "data.internal": "secret"})).To(Succeed())
	}
	g.Expect(l.Close()).To(Succeed())

	read := func(ctx context.Context) (*ledger.Ledger, error) {
		return ledger.OpenToRead(ctx, ledger.Options{File: file})
	}
	s := New(read, logr.Discard())
	for path, code := range map[string]int{
		"/reports/weekly/latest/report.html":               http.StatusOK,
		"/reports/weekly/2026-11-16T09:00:00Z/report.html": http.StatusOK,
		"/reports/weekly/2026-11-17T09:00:00Z/report.html": http.StatusNotFound,
		"/reports/weekly/latest/report.csv":                http.StatusNotFound,
		"/reports/weekly/latest/data.internal":             http.StatusNotFound,
		"/reports/monthly/latest/report.html":              http.StatusNotFound,
		"/reports/weekly":                                  http.StatusNotFound,
	} {
		got := answer(t, s, http.MethodGet, path)
		g.Expect(got).To(HaveHTTPStatus(code), path)
		g.Expect(got.Body.Close()).To(Succeed())
	}
	last := answer(t, s, http.MethodGet, "/reports/weekly/2026-11-16T09:00:00Z/report.html")
	g.Expect(last).To(And(HaveHTTPBody("last week"), HaveHTTPHeaderWithValue("Content-Type", "text/html; charset=utf-8"),
		HaveHTTPHeaderWithValue("Content-Security-Policy", HavePrefix("default-src 'none'"))))
	g.Expect(last.Body.Close()).To(Succeed())
	written := answer(t, s, http.MethodPost, "/reports/weekly/latest/report.html")
	g.Expect(written).To(HaveHTTPStatus(http.StatusMethodNotAllowed))
	g.Expect(written.Body.Close()).To(Succeed())
}

// A replica that does not lead makes no ledger because a report is asked for, and says who will.
func TestServingMakesNoLedger(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "ledger.db")
	read := func(ctx context.Context) (*ledger.Ledger, error) {
		return ledger.OpenToRead(ctx, ledger.Options{File: file})
	}
	got := answer(t, New(read, logr.Discard()), http.MethodGet, "/reports/weekly/latest/report.html")
	g.Expect(got).To(And(HaveHTTPStatus(http.StatusServiceUnavailable),
		HaveHTTPBody(ContainSubstring("the operator that leads mends that when it starts; ask again then"))))
	g.Expect(got.Body.Close()).To(Succeed())
	g.Expect(file).NotTo(BeAnExistingFile())
}

func TestReportsThatCannotBeRead(t *testing.T) {
	g := NewWithT(t)
	down := func(context.Context) (*ledger.Ledger, error) { return nil, errors.New("down") }
	for _, c := range []struct {
		open func(context.Context) (*ledger.Ledger, error)
		code int
	}{{down, http.StatusServiceUnavailable}, {nil, http.StatusNotFound}} {
		got := answer(t, New(c.open, logr.Discard()), http.MethodGet, "/reports/weekly/latest/report.html")
		g.Expect(got).To(HaveHTTPStatus(c.code))
		g.Expect(got.Body.Close()).To(Succeed())
	}
}

func TestALeadersPageHasExactlyTheirPeople(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "ledger.db")
	l, err := ledger.Open(t.Context(), ledger.Options{File: file})
	g.Expect(err).NotTo(HaveOccurred())
	whole := week.Report()
	data, err := json.Marshal(whole)
	g.Expect(err).NotTo(HaveOccurred())
	leaders, err := json.Marshal(report.Leaders{
		Zone: "Asia/Shanghai", Options: report.Options{Name: "weekly", Revision: 1, Top: 20},
		People: map[string][]string{"bob@example.com": {"fatima", "yuki"}, "zoe": {"okafor"}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(l.KeepReport(t.Context(), ledger.KeptReport{
		Report: "uid", Name: "weekly", From: whole.Period.From, To: whole.Period.To, Revision: 1, MadeAt: whole.Period.To,
		Summary: "{}",
	}, map[string]string{"data.internal": string(data), "leaders.internal": string(leaders)})).To(Succeed())
	g.Expect(l.Close()).To(Succeed())
	s := New(func(ctx context.Context) (*ledger.Ledger, error) {
		return ledger.OpenToRead(ctx, ledger.Options{File: file})
	}, logr.Discard())
	read := func(path string) (int, string) {
		got := answer(t, s, http.MethodGet, "/reports/weekly/"+path)
		content, err := io.ReadAll(got.Body)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Body.Close()).To(Succeed())
		return got.StatusCode, string(content)
	}
	for _, name := range []string{"report.html", "report.csv"} {
		code, page := read("people/bob@example.com/latest/" + name)
		g.Expect(code).To(Equal(http.StatusOK), name)
		g.Expect(page).To(And(ContainSubstring("fatima"), ContainSubstring("yuki")), name)
		for _, other := range []string{"okafor", "tomas", "555,461", "555461"} {
			g.Expect(page).NotTo(ContainSubstring(other), "%s has others than their people", name)
		}
	}
	_, page := read("people/zoe/latest/report.html")
	g.Expect(page).To(And(ContainSubstring("okafor"), Not(ContainSubstring("yuki"))))
	for _, path := range []string{
		"people/fatima/latest/report.html", "people//latest/report.html", "people/zoe/2026-01-01T00:00:00Z/report.html",
		"people/zoe/latest/report.json", "people/zoe/latest/leaders.internal", "latest/leaders.internal", "people/zoe/report.html",
	} {
		code, _ := read(path)
		g.Expect(code).To(Equal(http.StatusNotFound), path)
	}
}
