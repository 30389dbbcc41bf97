package suspicion

import "time"

// Witness is a task whose failures are held against a node, in a form that outlives the operator.
type Witness struct {
	Owner string `json:"owner"`
	Task  string `json:"task"`
	// Sum is what it adds to the sum of the node. Failures and Rejections are how many of each count. All have faded.
	Sum        float64 `json:"sum"`
	Failures   float64 `json:"failures,omitempty"`
	Rejections float64 `json:"rejections,omitempty"`
}

// isSound is false for figures that no operator wrote.
func (w *Witness) isSound() bool { return w.Sum > 0 && w.Failures >= 0 && w.Rejections >= 0 }

// WitnessesOf are those against a node, as they count now; 16 at most, none for a node that nothing is held against.
func (e *Evidence) WitnessesOf(name string, now time.Time) []Witness {
	n := e.nodes[name]
	if n == nil {
		return nil
	}
	n.drain(now)
	var all []Witness
	for i := range n.gains {
		g := &n.gains[i]
		g.here.fade(now)
		all = append(all, Witness{
			Owner: g.Owner, Task: g.Task, Sum: g.sum, Failures: g.here.failed, Rejections: g.here.rejected,
		})
	}
	return all
}

// RecallWitnesses holds against a node what counted against it at a time, beside what is known since, and returns the sum of the
// node. Hours that jobs have spent on it in between are not known: what is recalled only fades.
func (e *Evidence) RecallWitnesses(name string, witnesses []Witness, at time.Time) float64 {
	n := e.nodeOf(name, at)
	if n == nil {
		return 0
	}
	n.drain(at)
	// A node on which jobs are has counted on since.
	part := fading(max(0, n.at.Sub(at)))
	for i := range witnesses[:min(len(witnesses), mostWitnesses)] {
		w := &witnesses[i]
		if !w.isSound() {
			continue
		}
		source := Source{Owner: w.Owner, Task: w.Task}
		g := n.find(source)
		if g == nil {
			g = n.add(source, n.at)
		}
		g.sum += min(w.Sum*part, max(0, mostByOwner-n.sumOf(w.Owner)))
		// They count as the task's and the owner's too: so a task that is rejected everywhere is known for it.
		for _, t := range []*tally{&g.here, e.taskOf(source, n.at), e.ownerOf(source.Owner, n.at)} {
			t.failed, t.rejected = t.failed+w.Failures*part, t.rejected+w.Rejections*part
		}
	}
	return n.sum()
}
