package costreport

import (
	"context"

	"github.com/tideline-io/tideline/internal/cost/costreport"
)

// apply carries out a decision in its order and stops at the first problem.
func (r *Reconciler) apply(ctx context.Context, v *view, d *costreport.Decision) error {
	for _, step := range []func(context.Context, *view, *costreport.Decision) error{
		r.makeReport, r.forgetReports, r.publishText, r.deliverMails,
	} {
		if err := step(ctx, v, d); err != nil {
			return err
		}
	}
	return nil
}

// forgetReports deletes reports that are too old to be kept.
func (r *Reconciler) forgetReports(ctx context.Context, v *view, d *costreport.Decision) error {
	if d.ForgetBefore.IsZero() {
		return nil
	}
	_, err := v.ledger.ForgetReports(ctx, string(v.report.UID), d.ForgetBefore)
	return err
}
