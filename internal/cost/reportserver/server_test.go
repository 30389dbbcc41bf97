package reportserver

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/usage/ledger"
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
