package training

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// Restored are labels and annotations of a worker's pod that somebody changed, to be put back.
type Restored struct {
	Index int32
	// UID of the pod, so that a pod created since is left alone.
	UID   types.UID
	Marks []podstate.Mark
}

// restoreMarks puts back what somebody changed of the labels and annotations by which the workers of the attempt are known. All
// that is found at once is put back at once, and then nothing for a while, because somebody may set them again and again.
func (p *planner) restoreMarks() {
	var all []Restored
	want := p.d.Blueprint.MarksByIndex()
	for w := range p.AttemptWorkers() {
		if w.Terminating {
			continue
		}
		if changed := want(w.Index, w.Marks).Differences(w.Marks); changed != nil {
			all = append(all, Restored{Index: w.Index, UID: w.UID, Marks: changed})
		}
	}
	if all == nil {
		return
	}
	if pause := p.PutBack.PauseAt(p.Now); pause > 0 {
		p.requeueAfter(pause)
		return
	}
	p.d.RestoreMarks = all
}
