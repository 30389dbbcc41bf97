package training

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// apply carries a decision out, as the controller does, until a request fails.
func (w *simulator) apply(d *Decision) bool {
	return w.applyCheckpoint(d) && w.deletePods(d) && w.forceDeletePods(d) && w.createShared(d) && w.applyGroups(d) &&
		w.createWorkers(d) && w.cleanUp(d) && w.restoreMarks(d)
}

// restoreMarks gives pods back the marks that they were made with.
func (w *simulator) restoreMarks(d *Decision) bool {
	if len(d.RestoreMarks) > 0 {
		w.o.PutBack = w.o.PutBack.AfterRestoring(w.clock())
	}
	for _, r := range d.RestoreMarks {
		if !w.do(func() {
			if p := w.worker(r.Index); p != nil && p.UID == r.UID {
				p.Marks = d.Blueprint.MarksByIndex()(p.Index, podstate.Marks{})
			}
		}) {
			return false
		}
	}
	return true
}

// do makes a request to the API server, unless it fails.
func (w *simulator) do(request func()) bool {
	if w.trouble.failing {
		if w.trouble.credit == 0 {
			return false
		}
		w.trouble.credit--
	}
	w.changes++
	request()
	return true
}

func (w *simulator) applyCheckpoint(d *Decision) bool {
	return d.RequestCheckpoint == nil || w.do(func() {
		if master := w.worker(0); master != nil && master.UID == d.RequestCheckpoint.UID {
			master.CheckpointRequested, _ = strconv.ParseInt(d.RequestCheckpoint.Value, 10, 64)
		}
	})
}

func (w *simulator) deletePods(d *Decision) bool {
	for i := range d.DeletePods {
		if !w.do(func() { w.leave(d.DeletePods[i].UID) }) {
			return false
		}
	}
	return true
}

// forceDeletePods takes pods away at once, whatever their node does.
func (w *simulator) forceDeletePods(d *Decision) bool {
	for i := range d.ForceDeletePods {
		if !w.do(func() { w.remove(d.ForceDeletePods[i].UID) }) {
			return false
		}
	}
	return true
}

// createShared creates and writes what all workers share.
func (w *simulator) createShared(d *Decision) bool {
	if d.CreateService && !w.do(func() { w.o.Service = w.uid("service") }) {
		return false
	}
	return d.WriteHosts == nil || w.do(func() {
		w.o.Hosts = &jobstate.Hosts{UID: "hosts", Data: d.WriteHosts.Data, Digests: map[string]string{}}
		for key, value := range d.WriteHosts.Data {
			w.o.Hosts.Digests[key] = text.Digest(value)
		}
		w.hostsWritten++
	})
}

func (w *simulator) applyGroups(d *Decision) bool {
	put := func(g gang.Group, uid types.UID) func() {
		return func() {
			if at := w.group(g.Name); *at == nil || (*at).UID == uid {
				state := gang.StateOf(g.PodGroup())
				state.UID = uid
				*at = &state
			}
		}
	}
	for _, g := range d.CreateGroups {
		if !w.do(put(g, w.uid("group"))) {
			return false
		}
	}
	for _, r := range d.RestoreGroups {
		if !w.do(put(r.Group, r.UID)) {
			return false
		}
	}
	return true
}

func (w *simulator) group(name string) **gang.State {
	if name == gang.CoreName(w.o.Job.Name) {
		return &w.o.Core
	}
	return &w.o.Surplus
}

// createWorkers creates pods. A name that is taken is refused, and so is every pod while the API server refuses them.
func (w *simulator) createWorkers(d *Decision) bool {
	for _, i := range d.CreateWorkers {
		if w.worker(i) != nil || w.refuses != "" || !w.do(func() {
			w.o.Workers = append(w.o.Workers, podstate.Worker{
				Index: i, UID: w.uid("pod"), Attempt: d.Blueprint.Attempt.ID(), Phase: corev1.PodPending,
				Avoids: podstate.AvoidedBy(trainingpod.WorkerSpec(d.Blueprint.Job, nil, "", i)),
				Marks:  d.Blueprint.MarksByIndex()(i, podstate.Marks{}), StepDomain: d.Blueprint.StepDomains[i].Name,
			})
		}) {
			return false
		}
	}
	return true
}

// cleanUp deletes what is named by UID, and nothing that has another.
func (w *simulator) cleanUp(d *Decision) bool {
	for _, g := range d.DeleteGroups {
		if !w.do(func() {
			if at := w.group(g.Name); *at != nil && (*at).UID == g.UID {
				*at = nil
			}
		}) {
			return false
		}
	}
	if d.DeleteService != "" && !w.do(func() {
		if w.o.Service == d.DeleteService {
			w.o.Service = ""
		}
	}) {
		return false
	}
	return !d.DeleteJob || w.do(func() { w.o.Job.DeletionTimestamp = ptr.To(metav1.NewTime(w.now)) })
}

// uid is one that no object has had.
func (w *simulator) uid(kind string) types.UID {
	w.uids++
	return types.UID(kind + "-" + strconv.Itoa(w.uids))
}

// leave is what becomes of a pod that is deleted.
func (w *simulator) leave(uid types.UID) {
	i := slices.IndexFunc(w.o.Workers, func(p podstate.Worker) bool { return p.UID == uid })
	switch {
	case i < 0:
	case w.graceful && w.o.Workers[i].Scheduled && !w.o.Workers[i].HasEnded():
		w.o.Workers[i].Terminating = true
	default:
		w.remove(uid)
	}
}

// endPods takes away the pods that were asked to leave, but for those of nodes that do not answer.
func (w *simulator) endPods() {
	for i := len(w.o.Workers) - 1; i >= 0; i-- {
		if _, silent := w.o.Unreachable[w.o.Workers[i].Node]; w.o.Workers[i].Terminating && !silent {
			w.remove(w.o.Workers[i].UID)
		}
	}
}
