package training

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/describe"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/progress"
)

// follower is a planner while it follows what the training says of its steps.
type follower struct{ *planner }

// noteProgress writes what the training says of its steps, as far as a word of it changes.
func (p *follower) noteProgress() {
	switch {
	case p.Spec.Progress == nil:
		p.Status.Training = nil
	case p.Trained != nil:
		p.Status.Training = progress.ShowFigures(p.Status.Training, *p.Trained)
		placeStraggler(p.State)
	}
}

// placeStraggler writes on which node the straggler is. An index that no worker has is not believed.
func placeStraggler(s *jobstate.State) {
	slow := s.Status.Training.Straggler
	switch {
	case slow == nil:
	case int(slow.Worker) >= len(s.At):
		s.Status.Training.Straggler = nil
	case s.At[slow.Worker] != nil && slow.Node == "":
		slow.Node = s.At[slow.Worker].Node
	}
}

// joinTime is for how long after surplus became ready a hang is told and not acted on. All workers meet again when the surplus
// joins, which may be minutes later: until then the others train on.
const joinTime = 5 * time.Minute

// judgeHang restarts or fails a training that takes no steps, if the job wants that.
func (p *follower) judgeHang() {
	if !hangs(p.State) || len(p.books.Counted) > 0 || p.Spec.Progress.Stall.Policy == v1beta1.StallTell {
		return
	}
	if left := joinTime - p.Now.Sub(p.lastJoin()); left > 0 {
		p.requeueAfter(left)
		return
	}
	what := describe.HangWords(p.State)
	switch p.Spec.Progress.Stall.Policy {
	case v1beta1.StallRestart:
		p.books.CountHang(what)
	case v1beta1.StallFail:
		p.books.FailHang(what)
	case v1beta1.StallTell:
	}
}

// tellHang says that the training takes no steps, until it takes one.
func (p *follower) tellHang() {
	if p.obstacle != nil || p.departing || jobstate.IsStopped(p.Status) {
		return
	}
	if hangs(p.State) {
		p.obstacle = &jobstate.Obstacle{Reason: v1beta1.ReasonNoSteps, Message: describe.HangWords(p.State), Stalled: true}
		return
	}
	// An operator that has just started has heard nothing yet, or only of the step that was the last.
	written := &p.Job.Status // The planned status may have the new step already.
	was := meta.FindStatusCondition(written.Conditions, v1beta1.ConditionStalled)
	if was == nil || was.Reason != v1beta1.ReasonNoSteps || p.Spec.Progress == nil || !p.CoreRuns() || written.Training == nil {
		return
	}
	if p.Trained == nil || !p.Trained.Fresh && p.Trained.Step == written.Training.Step {
		p.obstacle = &jobstate.Obstacle{Reason: was.Reason, Message: was.Message, Stalled: true}
	}
}

// lastJoin is when a surplus worker last became ready; zero without any. A time to come is another clock's.
func (p *follower) lastJoin() (last time.Time) {
	for w := range p.AttemptWorkers() {
		if p.IsSurplus(w.Index) && w.Ready && w.ReadyTime.After(last) && !w.ReadyTime.After(p.Now) {
			last = w.ReadyTime.Time
		}
	}
	return last
}

// hangs is true for a training that takes no steps although its core runs.
func hangs(s *jobstate.State) bool {
	return s.Spec.Progress != nil && s.Trained != nil && s.Trained.Stall != nil && s.CoreRuns()
}

// forgetPace forgets how fast the attempt trained, and how long that would take: it ends.
func (p *follower) forgetPace() {
	if t := p.Status.Training; t != nil {
		t.StepsPerSecond, t.TimeLeft = "", ""
	}
}
