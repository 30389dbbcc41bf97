package costreport

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tideline-io/tideline/internal/cost/costreport"
	"github.com/tideline-io/tideline/internal/cost/report"
	"github.com/tideline-io/tideline/internal/platform/text"
)

const (
	// summaryLimit is how long the text in a ConfigMap is at most, in bytes.
	summaryLimit = 64 << 10
	// summaryJSON is the key of the figures in it.
	summaryJSON = "summary.json"
)

// publishText writes the text of the last report into a ConfigMap beside the operator, which goes with its CostReport.
func (r *Reconciler) publishText(ctx context.Context, v *view, d *costreport.Decision) error {
	if !d.Publish {
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
		log.FromContext(ctx).Info("Cannot write the summary, because a ConfigMap of that name has another owner", "decision", name.Name)
		return nil
	case current.Data[summaryJSON] == last.Summary:
		return nil
	}
	computed, err := r.readData(ctx, v, last)
	if err != nil {
		return err
	}
	mail, err := report.ComposeMail(*computed, r.reportOptions(v.report, int32(last.Revision)))
	if err != nil {
		return err
	}
	wanted := current.DeepCopy()
	wanted.Namespace, wanted.Name = name.Namespace, name.Name
	wanted.Data = map[string]string{"summary.txt": text.ClipLine(mail.Text, summaryLimit), summaryJSON: last.Summary}
	if there {
		return r.client.Patch(ctx, wanted, client.MergeFrom(current))
	}
	// The owner reference does not block deletion. Blocking would require an extra right if admission plugin
	// OwnerReferencesPermissionEnforcement is on, as on OpenShift.
	own := controllerutil.WithBlockOwnerDeletion(false)
	if err := controllerutil.SetControllerReference(v.report, wanted, r.client.Scheme(), own); err != nil {
		return err
	}
	return r.client.Create(ctx, wanted)
}
