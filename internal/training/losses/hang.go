package losses

import (
	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// CountHang counts a restart of all workers, because they take no steps: what says so in sentences.
func (b *Books) CountHang(what string) {
	l := &loss{counted: true, hangs: true, failure: podstate.Failure{Reason: v1beta1.ReasonNoSteps, Message: what}}
	if w := b.At[0]; w != nil {
		l.uid, l.progress = w.UID, w.Progress
	}
	b.Growth().NoteRestart()
	b.countRestarts(l, ruling{action: v1beta1.ActionRestartJob}, 1, false)
	b.leadTo(Outcome{v1beta1.ActionRestartJob, v1beta1.ReasonRestarting,
		"All workers are created again (progress.stall.policy). " + what})
}

// FailHang fails the job because its workers take no steps.
func (b *Books) FailHang(what string) {
	b.leadTo(Outcome{v1beta1.ActionFailJob, v1beta1.ReasonNoSteps, what})
}
