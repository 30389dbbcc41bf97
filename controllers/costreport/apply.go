package costreport

import (
	"context"
	"errors"

	"github.com/tideline-io/tideline/internal/cost/costreport"
)

// apply carries out a decision in its order. A text that cannot be written holds up no mail.
func (r *Reconciler) apply(ctx context.Context, v *view, d *costreport.Decision) error {
	if err := r.makeReport(ctx, v, d); err != nil {
		return err
	}
	if err := r.forgetReports(ctx, v, d); err != nil {
		return err
	}
	return errors.Join(r.publishText(ctx, v, d), r.deliverMails(ctx, v, d))
}

// forgetReports deletes reports that are too old to be kept.
func (r *Reconciler) forgetReports(ctx context.Context, v *view, d *costreport.Decision) error {
	if d.ForgetBefore.IsZero() {
		return nil
	}
	_, err := v.ledger.ForgetReports(ctx, string(v.report.UID), d.ForgetBefore)
	return err
}
