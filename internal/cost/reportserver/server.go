// Package reportserver serves the files of reports by HTTP, as the ledger keeps them.
package reportserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/internal/cost/costreport"
	"github.com/tideline-io/tideline/internal/cost/report"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

const (
	// Path is where reports are served: /reports/NAME/latest/FILE, or a time as in 2026-11-16T09:00:00Z in place of latest.
	Path = "/reports/"
	// people stands before a leader, whose page is that of their people: /reports/NAME/people/LEADER/latest/FILE. A right to the
	// path is a right to that page alone.
	people = "people"
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

// writers are those of leaders' pages, which are made when they are asked for.
var writers = map[string]func(cost.Report, report.Options) ([]byte, error){
	costreport.FileHTML: report.RenderPage, costreport.FileCSV: report.CSV,
}

// request is what is asked for.
type request struct {
	name, until, file string
	// leader whose people's page is asked for; empty for the whole report.
	leader string
}

// parseRequest reads a path; false for one that there is not.
func parseRequest(path string) (r request, valid bool) {
	switch parts := strings.Split(strings.TrimPrefix(path, Path), "/"); {
	case len(parts) == 3:
		r = request{name: parts[0], until: parts[1], file: parts[2]}
		return r, mediaTypes[r.file] != ""
	case len(parts) == 5 && parts[1] == people:
		r = request{name: parts[0], leader: parts[2], until: parts[3], file: parts[4]}
		return r, r.leader != "" && writers[r.file] != nil
	}
	return r, false
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
	asked, valid := parseRequest(req.URL.Path)
	if !valid || s.open == nil {
		files := []string{costreport.FileHTML, costreport.FileCSV, costreport.FileJSON, costreport.FileFOCUS}
		http.Error(w, "there are "+Path+"NAME/latest/FILE, with a time as in 2026-11-16T09:00:00Z in place of latest; FILE is "+
			"one of "+strings.Join(files, ", ")+"; and for the people of a leader "+Path+"NAME/people/LEADER/latest/FILE, with "+
			costreport.FileHTML+" and "+costreport.FileCSV, http.StatusNotFound)
		return
	}
	ctx, cancel := context.WithTimeout(req.Context(), serveTimeout)
	defer cancel()
	content, there, err := s.findFile(ctx, asked)
	switch {
	case errors.Is(err, ledger.ErrBehind):
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case err != nil:
		s.log.Error(err, "Cannot serve a report", "report", asked.name)
		http.Error(w, "the ledger cannot be read: the operator's log says why", http.StatusServiceUnavailable)
	case !there && asked.leader != "":
		http.Error(w, "there is no such report, or that user led no one in its directory when it was made", http.StatusNotFound)
	case !there:
		http.Error(w, "there is no such report, or it is not kept in that form (spec.formats)", http.StatusNotFound)
	default:
		head := w.Header()
		head.Set("Content-Type", mediaTypes[asked.file])
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Cache-Control", "no-store")
		head.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'")
		http.ServeContent(w, req, "", time.Time{}, strings.NewReader(content))
	}
}

// findFile finds a file of the last revision of a report.
func (s *Server) findFile(ctx context.Context, asked request) (content string, there bool, err error) {
	l, err := s.open(ctx)
	if err != nil {
		return "", false, err
	}
	defer func() { _ = l.Close() }()
	reports, err := l.QueryReports(ctx, "", asked.name)
	if err != nil {
		return "", false, err
	}
	for i := range reports {
		k := &reports[i]
		switch {
		case asked.until != latest && k.To.Format(time.RFC3339) != asked.until:
		case asked.leader != "":
			return leadersPage(ctx, l, k, asked)
		default:
			return l.ReportFile(ctx, *k, asked.file)
		}
	}
	return "", false, nil
}

// leadersPage makes the page of a leader's people, by the directory as it was when the report was made.
func leadersPage(ctx context.Context, l *ledger.Ledger, k *ledger.KeptReport, asked request) (string, bool, error) {
	text, there, err := l.ReportFile(ctx, *k, costreport.FileLeaders)
	if err != nil || !there {
		return "", false, err
	}
	var leaders report.Leaders
	if err := json.Unmarshal([]byte(text), &leaders); err != nil {
		return "", false, fmt.Errorf("read who leads whom: %w", err)
	}
	o, leads := leaders.OptionsOf(asked.leader)
	if !leads {
		return "", false, nil
	}
	text, there, err = l.ReportFile(ctx, *k, costreport.FileData)
	if err != nil || !there {
		return "", false, err
	}
	r, err := report.ReadReport(text, leaders.Zone)
	if err != nil {
		return "", false, err
	}
	content, err := writers[asked.file](*r, o)
	return string(content), err == nil, err
}
