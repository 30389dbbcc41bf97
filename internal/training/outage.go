package training

import (
	"time"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/growth"
)

// noteOutage writes down how long the last change of size kept the training from progress, joined with what was known.
func (p *planner) noteOutage() {
	if p.MeasuredOutage <= 0 {
		return
	}
	if p.Status.Elasticity == nil {
		p.Status.Elasticity = &v1beta1.ElasticityStatus{}
	}
	e := p.Status.Elasticity
	outage := growth.SmoothOutage(time.Duration(e.OutageSeconds)*time.Second, p.MeasuredOutage)
	e.OutageSeconds = max(1, int32(outage.Round(time.Second)/time.Second)) // 0 is for none.
}

// forgetSurplus forgets which surplus came and went, of a job that ends or stops. What was measured holds for its next attempt
// and for the next job of its task.
func (p *planner) forgetSurplus() {
	e := p.Status.Elasticity
	p.Status.Elasticity = nil
	if e != nil && (e.OutageSeconds > 0 || len(e.Speeds) > 0) {
		p.Status.Elasticity = &v1beta1.ElasticityStatus{OutageSeconds: e.OutageSeconds, Speeds: e.Speeds}
	}
}
