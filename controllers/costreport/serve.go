package costreport

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tideline-io/tideline/internal/usage/ledger"
)

const (
	// servedAt is where reports are served: /reports/NAME/latest/FILE, or a time as in 2026-11-16T09:00:00Z in place of latest.
	servedAt = "/reports/"
	// latest is the last period.
	latest = "latest"
	// serveTimeout bounds how long the ledger may take to answer.
	serveTimeout = 30 * time.Second
)

// mediaTypes are those of files that are served.
var mediaTypes = map[string]string{
	fileHTML: "text/html; charset=utf-8", fileCSV: "text/csv; charset=utf-8", fileJSON: "application/json",
	fileFOCUS: "text/csv; charset=utf-8",
}

// serve has reports served beside the metrics, to whom the API server lets get their path: not at all where metrics are
// everybody's.
func (r *Reconciler) serve(mgr ctrl.Manager) error {
	if !r.config.Metrics.Secure {
		return nil
	}
	return mgr.AddMetricsServerExtraHandler(servedAt, &files{
		open: r.OpenLedger, kept: r.config.Ledger.Kept(), log: mgr.GetLogger().WithName("reports"),
	})
}

// files serves the files of reports, read-only.
type files struct {
	open func(context.Context) (*ledger.Ledger, error)
	kept bool
	log  logr.Logger
}

// ServeHTTP serves one file.
func (f *files) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		http.Error(w, "reports are read only: GET", http.StatusMethodNotAllowed)
		return
	}
	parts := strings.Split(strings.TrimPrefix(req.URL.Path, servedAt), "/")
	if len(parts) != 3 || mediaTypes[parts[2]] == "" || !f.kept {
		http.Error(w, "there are "+servedAt+"NAME/latest/FILE, with a time as in 2026-11-16T09:00:00Z in place of latest; FILE is "+
			"one of "+strings.Join([]string{fileHTML, fileCSV, fileJSON, fileFOCUS}, ", "), http.StatusNotFound)
		return
	}
	ctx, cancel := context.WithTimeout(req.Context(), serveTimeout)
	defer cancel()
	content, there, err := f.read(ctx, parts[0], parts[1], parts[2])
	switch {
	case err != nil:
		f.log.Error(err, "Cannot serve a report", "report", parts[0])
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

// read finds a file of the last revision of a report.
func (f *files) read(ctx context.Context, name, until, file string) (content string, there bool, err error) {
	l, err := f.open(ctx)
	if err != nil {
		return "", false, err
	}
	defer func() { _ = l.Close() }()
	reports, err := l.Reports(ctx, "", name)
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
