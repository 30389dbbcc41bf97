// Package reportserver serves the files of reports by HTTP, as the ledger keeps them.
package reportserver

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/tideline-io/tideline/internal/cost/costreport"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

const (
	// Path is where reports are served: /reports/NAME/latest/FILE, or a time as in 2026-11-16T09:00:00Z in place of latest.
	Path = "/reports/"
	// latest is the last period.
	latest = "latest"
	// serveTimeout bounds how long the ledger may take to answer.
	serveTimeout = 30 * time.Second
)

// mediaTypes are those of files that are served.
var mediaTypes = map[string]string{
	costreport.FileHTML: "text/html; charset=utf-8", costreport.FileCSV: "text/csv; charset=utf-8",
	costreport.FileJSON: "application/json", costreport.FileFOCUS: "text/csv; charset=utf-8",
}

// Server serves the files of reports, read-only. It does not check rights; the server that it is registered with must.
type Server struct {
	open func(context.Context) (*ledger.Ledger, error)
	log  logr.Logger
}

// New returns a server of the reports in a ledger, which it opens for each request, to read it; nil where none is kept.
func New(open func(context.Context) (*ledger.Ledger, error), log logr.Logger) *Server {
	return &Server{open: open, log: log}
}

// ServeHTTP serves one file.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		http.Error(w, "reports are read only: GET", http.StatusMethodNotAllowed)
		return
	}
	parts := strings.Split(strings.TrimPrefix(req.URL.Path, Path), "/")
	if len(parts) != 3 || mediaTypes[parts[2]] == "" || s.open == nil {
		files := []string{costreport.FileHTML, costreport.FileCSV, costreport.FileJSON, costreport.FileFOCUS}
		http.Error(w, "there are "+Path+"NAME/latest/FILE, with a time as in 2026-11-16T09:00:00Z in place of latest; FILE is "+
			"one of "+strings.Join(files, ", "), http.StatusNotFound)
		return
	}
	ctx, cancel := context.WithTimeout(req.Context(), serveTimeout)
	defer cancel()
	content, there, err := s.findFile(ctx, parts[0], parts[1], parts[2])
	switch {
	case errors.Is(err, ledger.ErrBehind):
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case err != nil:
		s.log.Error(err, "Cannot serve a report", "report", parts[0])
		http.Error(w, "the ledger cannot be read: the operator's log says why", http.StatusServiceUnavailable)
	case !there:
		http.Error(w, "there is no such report, or it is not kept in that form (spec.formats)", http.StatusNotFound)
	default:
		head := w.Header()
		head.Set("Content-Type", mediaTypes[parts[2]])
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Cache-Control", "no-store")
		head.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'")
		http.ServeContent(w, req, "", time.Time{}, strings.NewReader(content))
	}
}

// findFile finds a file of the last revision of a report.
func (s *Server) findFile(ctx context.Context, name, until, file string) (content string, there bool, err error) {
	l, err := s.open(ctx)
	if err != nil {
		return "", false, err
	}
	defer func() { _ = l.Close() }()
	reports, err := l.QueryReports(ctx, "", name)
	if err != nil {
		return "", false, err
	}
	for i := range reports {
		if k := &reports[i]; until == latest || k.To.Format(time.RFC3339) == until {
			return l.ReportFile(ctx, *k, file)
		}
	}
	return "", false, nil
}
