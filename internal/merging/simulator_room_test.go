package merging

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// What the simulator's arbiter says of room.

// judged is what the arbiter says of the merge: whether what waits of its core fits into what is free.
func (m *merger) judged() capacity.Verdict {
	v, run := m.verdict, m.status().Run
	if a, may := m.world.ahead[types.NamespacedName{Namespace: "ads", Name: m.object.Name}]; may {
		v.Ahead = &a
	}
	if m.noClaim || v.Waiting > 0 || v.Never != nil || m.core == nil || run == nil || len(m.unplaced()) == 0 {
		return v
	}
	used := 0
	for _, o := range m.world.jobs {
		for _, p := range o.pods {
			if p.Scheduled && !p.HasEnded() {
				used++
			}
		}
	}
	v.Place, v.Waiting = 1, 1
	if m.unjudged {
		v.Answer.Unknown = "a volume"
	} else if missing := int(run.MinReplicas) - len(m.placedPods()); used+missing <= m.world.room {
		v.Answer.Fits = true
	} else {
		v.Answer.Short = capacity.Amounts{corev1.ResourcePods: int64(used + missing - m.world.room)}
	}
	return v
}

// judgeAhead asks the model of room, as the arbiter does, how the merges of the line stand to its head.
func (w *simulator) judgeAhead() map[types.NamespacedName]capacity.Ahead {
	s := capacity.Snapshot{
		Nodes:  []capacity.Node{{Name: "n", Allocatable: capacity.Amounts{corev1.ResourcePods: int64(w.room)}}},
		Queues: []capacity.Queue{{Name: "tideline-merge"}},
	}
	var head *capacity.Gang
	var others []*capacity.Gang
	for _, m := range w.jobs {
		key, run := types.NamespacedName{Namespace: "ads", Name: m.object.Name}, m.status().Run
		for _, p := range m.pods {
			if !p.Scheduled || p.HasEnded() {
				continue
			}
			pod := capacity.Pod{Node: "n", Queue: "tideline-merge", Leaving: p.Terminating}
			if run != nil && run.ExpectedEndTime != nil {
				pod.Until = run.ExpectedEndTime.Time
			}
			if run != nil && p.Index >= run.MinReplicas {
				pod.Surplus = &capacity.Surplus{Job: key, UID: p.UID}
			}
			s.Pods = append(s.Pods, pod)
		}
		switch g := (&capacity.Gang{Job: key, Queue: "tideline-merge", Workers: m.object.Spec.MinReplicas}); {
		case run == nil && m.status().Position != nil:
			others = append(others, g)
		case run != nil && run.Outcome == "" && run.PlaceTime == nil && run.Ahead == nil:
			head = g
			g.Workers = run.MinReplicas
		}
	}
	if head == nil {
		return nil
	}
	return capacity.New(s).JudgeAhead(head, others)
}

// placedPods are those of the core that have a place.
func (m *merger) placedPods() []*podstate.Worker {
	var all []*podstate.Worker
	for _, p := range m.pods {
		if p.Scheduled && p.Index < m.status().Run.MinReplicas {
			all = append(all, p)
		}
	}
	return all
}
