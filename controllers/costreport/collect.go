package costreport

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/internal/cost/costreport"
	"github.com/tideline-io/tideline/internal/cost/fromledger"
)

// collectInput reads from the ledger what a period is computed from.
func (r *Reconciler) collectInput(ctx context.Context, v *view, m *costreport.Making) (*cost.Input, error) {
	in := &cost.Input{Period: m.Period, Prices: v.prices, Accelerators: r.config.CountedAccelerators()}
	if err := fromledger.LoadInput(ctx, v.ledger, in, v.report.Spec.Profiles, r.config.Tiers); err != nil {
		return nil, err
	}
	if until := r.Complete(); until.Before(m.Period.To) {
		in.Notes = append(in.Notes, "What ran after "+until.UTC().Format(time.RFC3339)+" was not recorded when this report was made.")
	}
	r.noteUse(in)
	return in, r.collectEarlier(ctx, v, m, in)
}

// noteUse says in the report that use is unknown where the operator asks no Prometheus.
func (r *Reconciler) noteUse(in *cost.Input) {
	if !r.config.Prometheus.IsConfigured() && len(in.Used) == 0 { // A ledger may have use from before.
		in.Notes = append(in.Notes, "What was used and wasted is unknown, because "+costreport.UseUnasked+".")
	}
}

// collectEarlier reads the reports of earlier periods: of each the last revision.
func (r *Reconciler) collectEarlier(ctx context.Context, v *view, m *costreport.Making, in *cost.Input) error {
	seen := map[int64]bool{m.Period.To.Unix(): true}
	for i := range v.kept { // the last periods and revisions first
		k := &v.kept[i]
		if seen[k.To.Unix()] || !k.To.Before(m.Period.To) {
			continue
		}
		seen[k.To.Unix()] = true
		text, there, err := v.ledger.ReportFile(ctx, *k, costreport.FileEarlier)
		if err != nil {
			return err
		}
		var e cost.Earlier
		if !there || json.Unmarshal([]byte(text), &e) != nil {
			continue // Of another version: nothing is compared with it.
		}
		in.Earlier = append(in.Earlier, e)
	}
	return nil
}
