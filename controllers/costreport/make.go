package costreport

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/internal/cost/costreport"
	"github.com/tideline-io/tideline/internal/cost/report"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// Files of a report. Those that people and programs read are served; what the operator reads itself is not.
const (
	fileHTML, fileCSV, fileJSON, fileFOCUS = "report.html", "report.csv", "report.json", "focus.csv"
	fileData, fileEarlier                  = "data.internal", "earlier.internal"
)

// carryOut makes the report that is due, forgets those that are kept no longer, and sends mails.
func (r *Reconciler) carryOut(ctx context.Context, v *view, d *costreport.Decision) error {
	if m := d.Make; m != nil {
		began := r.now()
		limited, cancel := context.WithTimeout(ctx, makeTimeout)
		defer cancel()
		if err := r.make(limited, v, m); err != nil {
			return fmt.Errorf("make the report until %s: %w", m.Period.To.Format(time.RFC3339), err)
		}
		r.metrics.made(v.report.Name, r.now().Sub(began))
	}
	if !d.ForgetBefore.IsZero() {
		if _, err := v.ledger.ForgetReports(ctx, string(v.report.UID), d.ForgetBefore); err != nil {
			return err
		}
	}
	if v.ledger == nil || d.Make != nil {
		return nil // What was made is told of and mailed in the next round.
	}
	if err := r.publish(ctx, v); err != nil {
		return err
	}
	return r.deliver(ctx, v)
}

// make computes a report and keeps it. It is kept whole or not at all, and what is kept already stays.
func (r *Reconciler) make(ctx context.Context, v *view, m *costreport.Making) error {
	in, err := r.collect(ctx, v, m)
	if err != nil {
		return err
	}
	computed := cost.Compute(in)
	files, err := filesOf(computed, &v.report.Spec, r.options(v.report, m.Revision))
	if err != nil {
		return err
	}
	summary, err := json.Marshal(keptSummary{
		ReportSummary: summaryOf(computed, m), Asked: m.Asked != "", Numbers: ptr.To(report.NumbersOf(computed)),
	})
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("A report was made", "decision", m.Period.To.UTC().Format(time.RFC3339), "revision", m.Revision,
		"rows", len(computed.By[cost.ByTask]))
	return v.ledger.KeepReport(ctx, ledger.KeptReport{
		Report: string(v.report.UID), Name: v.report.Name, From: m.Period.From, To: m.Period.To, Revision: int(m.Revision),
		MadeAt: r.now(), Summary: string(summary),
	}, files)
}

// options are how a report is written.
func (r *Reconciler) options(object *v1alpha1.CostReport, revision int32) report.Options {
	o := report.Options{Name: object.Name, Revision: int(revision), Top: int(object.Spec.Top)}
	for _, ranking := range object.Spec.Rankings {
		o.Rankings = append(o.Rankings, report.Ranking(ranking))
	}
	for _, dimension := range object.Spec.GroupBy {
		o.GroupBy = append(o.GroupBy, cost.Dimension(dimension))
	}
	return o
}

// filesOf are the files that are kept of a report.
func filesOf(computed *cost.Report, spec *v1alpha1.CostReportSpec, o report.Options) (map[string]string, error) {
	files := map[string]string{}
	for _, format := range spec.Formats {
		write := writers[format]
		content, err := write.write(*computed, o)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", write.file, err)
		}
		files[write.file] = string(content)
	}
	for name, content := range map[string]any{fileData: computed, fileEarlier: computed.Summary()} {
		b, err := json.Marshal(content)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
		files[name] = string(b)
	}
	return files, nil
}

// writers write the forms of a report.
var writers = map[v1alpha1.ReportFormat]struct {
	file  string
	write func(cost.Report, report.Options) ([]byte, error)
}{
	v1alpha1.FormatHTML: {fileHTML, report.Page}, v1alpha1.FormatCSV: {fileCSV, report.CSV},
	v1alpha1.FormatJSON: {fileJSON, report.JSON}, v1alpha1.FormatFOCUS: {fileFOCUS, report.FOCUS},
}

// summaryOf is what the status says of a report.
func summaryOf(computed *cost.Report, m *costreport.Making) v1alpha1.ReportSummary {
	f := report.FiguresOf(computed)
	return v1alpha1.ReportSummary{
		From: metav1.NewTime(m.Period.From.UTC()), To: metav1.NewTime(m.Period.To.UTC()), Revision: m.Revision,
		Total: f.Total, Waste: f.Waste, Recoverable: f.Recoverable, Utilization: f.Utilization, Fragmentation: f.Unusable,
	}
}

// data reads a report that was made, to write more of it.
func (r *Reconciler) data(ctx context.Context, v *view, k *ledger.KeptReport) (*cost.Report, error) {
	content, there, err := v.ledger.ReportFile(ctx, *k, fileData)
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, fmt.Errorf("%w: %s", errNotKept, fileData)
	}
	computed := &cost.Report{}
	if err := json.Unmarshal([]byte(content), computed); err != nil {
		return nil, fmt.Errorf("read %s: %w", fileData, err)
	}
	// JSON has offsets from UTC, and no zones.
	if zone, err := time.LoadLocation(v.report.Spec.TimeZone); err == nil {
		computed.Period.From, computed.Period.To = computed.Period.From.In(zone), computed.Period.To.In(zone)
		for i := range computed.Days {
			computed.Days[i].From = computed.Days[i].From.In(zone)
		}
	}
	return computed, nil
}

const (
	// summaryLimit is how long the text in a ConfigMap is at most, in bytes.
	summaryLimit = 64 << 10
	// summaryJSON is the key of the figures in it.
	summaryJSON = "summary.json"
)

// publish writes the text of the last report into a ConfigMap beside the operator, which goes with its CostReport.
func (r *Reconciler) publish(ctx context.Context, v *view) error {
	if len(v.kept) == 0 {
		return nil
	}
	last, current := &v.kept[0], &corev1.ConfigMap{}
	name := client.ObjectKey{Namespace: r.Namespace, Name: "tideline-report-" + v.report.Name}
	err := r.live.Get(ctx, name, current)
	there := err == nil
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("read ConfigMap %s: %w", name.Name, err)
	case !metav1.IsControlledBy(current, v.report):
		log.FromContext(ctx).Info("The summary is not written: a ConfigMap of that name is somebody else's", "decision", name.Name)
		return nil
	case current.Data[summaryJSON] == last.Summary:
		return nil
	}
	computed, err := r.data(ctx, v, last)
	if err != nil {
		return err
	}
	mail, err := report.Compose(*computed, r.options(v.report, int32(last.Revision)))
	if err != nil {
		return err
	}
	wanted := current.DeepCopy()
	wanted.Namespace, wanted.Name = name.Namespace, name.Name
	wanted.Data = map[string]string{"summary.txt": text.Clip(mail.Text, summaryLimit), summaryJSON: last.Summary}
	if there {
		return r.client.Patch(ctx, wanted, client.MergeFrom(current))
	}
	// Nobody who deletes a report waits until its summary is gone. To have them wait would take a right of its own where admission
	// plugin OwnerReferencesPermissionEnforcement is on, as on OpenShift.
	own := controllerutil.WithBlockOwnerDeletion(false)
	if err := controllerutil.SetControllerReference(v.report, wanted, r.client.Scheme(), own); err != nil {
		return err
	}
	return r.client.Create(ctx, wanted)
}
