package costreport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/internal/cost/costreport"
	"github.com/tideline-io/tideline/internal/cost/mail"
	"github.com/tideline-io/tideline/internal/cost/report"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// makeReport makes the report that is due, in a bounded time.
func (r *Reconciler) makeReport(ctx context.Context, v *view, d *costreport.Decision) error {
	m := d.Make
	if m == nil {
		return nil
	}
	began := r.now()
	ctx, cancel := context.WithTimeout(ctx, makeTimeout)
	defer cancel()
	if err := r.computeAndKeep(ctx, v, m); err != nil {
		return fmt.Errorf("make the report until %s: %w", m.Period.To.Format(time.RFC3339), err)
	}
	r.metrics.countMade(v.report.Name, r.now().Sub(began))
	return nil
}

// computeAndKeep computes a report and keeps it. It is kept whole or not at all, and what is kept already stays.
func (r *Reconciler) computeAndKeep(ctx context.Context, v *view, m *costreport.Making) error {
	in, err := r.collectInput(ctx, v, m)
	if err != nil {
		return err
	}
	computed := cost.ComputeReport(in)
	files, err := filesOf(computed, &v.report.Spec, r.reportOptions(v.report, m.Revision), v.people)
	if err != nil {
		return err
	}
	summary, err := json.Marshal(keptSummary{
		ReportSummary: summaryOf(computed, m), Asked: m.Asked != "", Numbers: ptr.To(report.NumbersOf(computed)),
	})
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("Made a report", "decision", m.Period.To.UTC().Format(time.RFC3339), "revision", m.Revision,
		"rows", len(computed.By[cost.ByTask]))
	return v.ledger.KeepReport(ctx, ledger.KeptReport{
		Report: string(v.report.UID), Name: v.report.Name, From: m.Period.From, To: m.Period.To, Revision: int(m.Revision),
		MadeAt: r.now(), Summary: string(summary),
	}, files)
}

// dimensions are those of the API, as the computation calls them.
var dimensions = map[v1beta1.ReportDimension]cost.Dimension{
	v1beta1.GroupByUser: cost.ByUser, v1beta1.GroupByTeam: cost.ByTeam, v1beta1.GroupByTask: cost.ByTask,
}

// reportOptions are how a report is written.
func (r *Reconciler) reportOptions(object *v1beta1.CostReport, revision int32) report.Options {
	o := report.Options{Name: object.Name, Revision: int(revision), Top: int(object.Spec.Top)}
	for _, ranking := range object.Spec.Rankings {
		o.Rankings = append(o.Rankings, report.Ranking(ranking))
	}
	for _, dimension := range object.Spec.GroupBy {
		o.GroupBy = append(o.GroupBy, dimensions[dimension])
	}
	return o
}

// filesOf are the files that are kept of a report.
func filesOf(
	computed *cost.Report, spec *v1beta1.CostReportSpec, o report.Options, people mail.Directory,
) (map[string]string, error) {
	files := map[string]string{}
	for _, format := range spec.Formats {
		write := writers[format]
		content, err := write.write(*computed, o)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", write.file, err)
		}
		files[write.file] = string(content)
	}
	internal := map[string]any{costreport.FileData: computed, costreport.FileEarlier: computed.Summary()}
	if led := people.PeopleByLeader(); len(led) > 0 {
		internal[costreport.FileLeaders] = report.Leaders{Zone: spec.TimeZone, Options: o, People: led}
	}
	for name, content := range internal {
		b, err := json.Marshal(content)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
		files[name] = string(b)
	}
	return files, nil
}

var writers = map[v1beta1.ReportFormat]struct {
	file  string
	write func(cost.Report, report.Options) ([]byte, error)
}{
	v1beta1.FormatHTML: {costreport.FileHTML, report.RenderPage}, v1beta1.FormatCSV: {costreport.FileCSV, report.CSV},
	v1beta1.FormatJSON: {costreport.FileJSON, report.JSON}, v1beta1.FormatFOCUS: {costreport.FileFOCUS, report.FOCUS},
}

// summaryOf is what the status says of a report.
func summaryOf(computed *cost.Report, m *costreport.Making) v1beta1.ReportSummary {
	f := report.FiguresOf(computed)
	return v1beta1.ReportSummary{
		From: metav1.NewTime(m.Period.From.UTC()), To: metav1.NewTime(m.Period.To.UTC()), Revision: m.Revision,
		Total: f.Total, Waste: f.Waste, Recoverable: f.Recoverable, Utilization: f.Utilization, Fragmentation: f.Unusable,
	}
}

// readData reads a report that was made, to write more of it.
func (r *Reconciler) readData(ctx context.Context, v *view, k *ledger.KeptReport) (*cost.Report, error) {
	content, there, err := v.ledger.ReportFile(ctx, *k, costreport.FileData)
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, fmt.Errorf("%w: %s", errNotKept, costreport.FileData)
	}
	return report.ReadReport(content, v.report.Spec.TimeZone)
}

var errNotKept = errors.New("a file of a report is not in the ledger")
