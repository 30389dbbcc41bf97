package recorder

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/internal/usage/ledger"
)

const (
	// mostStays bounds how many begins and ends of stays wait while the ledger cannot record them: about 25 MB. Beyond it the
	// oldest ends are dropped.
	mostStays = 50_000
	// mostDecisions bounds how many decisions wait. Beyond it the oldest are dropped.
	mostDecisions = 10_000
	// mostTrained bounds how many entries of trainings wait, of 10,000 trainings those of ten minutes. Beyond it the oldest are
	// dropped.
	mostTrained = 20_000
)

// backlog is what waits to be recorded. It stays empty until the operator leads.
type backlog struct {
	metrics *metrics

	mu      sync.Mutex
	leading bool
	// stays are begins and ends, by pod.
	stays map[types.UID]ledger.Stay
	// open are the pods that the ledger has as running. They count until they end, even if their namespace leaves its profile.
	open      map[types.UID]struct{}
	decisions []ledger.Decision
	trained   []ledger.Trained
}

// beginLeading makes the backlog keep entries from now on.
func (b *backlog) beginLeading() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leading, b.stays, b.open = true, map[types.UID]ledger.Stay{}, map[types.UID]struct{}{}
}

func (b *backlog) isLeading() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.leading
}

func (b *backlog) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.stays) + len(b.decisions) + len(b.trained)
}

// isKnown tells whether the begin of a pod is recorded or waits to be.
func (b *backlog) isKnown(pod types.UID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, open := b.open[pod]
	_, waits := b.stays[pod]
	return open || waits
}

// keepBegin keeps a stay that has begun. If there is no room, the stay is recorded later with all that run.
func (b *backlog) keepBegin(pod types.UID, s ledger.Stay) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.stays[pod]; !known && len(b.stays) < mostStays {
		b.stays[pod] = s
	}
}

// keepEnd keeps the end of a stay. The first end counts, unless it was a guess. The description of the pod from its begin
// is kept, because less may be known of a pod that is being deleted.
func (b *backlog) keepEnd(pod types.UID, s ledger.Stay) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, known := b.stays[pod]
	switch {
	case known && before.Final && (s.Uncertain || !before.Uncertain):
		return
	case known:
		s.Pod = before.Pod
	case len(b.stays) >= mostStays:
		b.dropOldest()
	}
	b.stays[pod] = s
}

// dropOldest makes room. A dropped begin is recorded later anyway, a dropped end is lost. The caller holds the lock.
func (b *backlog) dropOldest() {
	var oldest types.UID
	for pod, s := range b.stays {
		if !s.Final {
			delete(b.stays, pod)
			return
		}
		if oldest == "" || s.End.Before(b.stays[oldest].End) {
			oldest = pod
		}
	}
	delete(b.stays, oldest)
	b.metrics.stays.Inc()
}

func (b *backlog) keepDecisions(decisions ...ledger.Decision) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.leading {
		b.decisions = append(b.decisions, decisions...)
		b.trimDecisions()
	}
}

// giveBack puts decisions that were not recorded before those that came since.
func (b *backlog) giveBack(decisions []ledger.Decision) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.decisions = append(slices.Clone(decisions), b.decisions...)
	b.trimDecisions()
}

// trimDecisions drops the oldest of too many. The lock is held.
func (b *backlog) trimDecisions() {
	if more := len(b.decisions) - mostDecisions; more > 0 {
		b.decisions = slices.Delete(b.decisions, 0, more)
		b.metrics.decisions.Add(float64(more))
	}
}

// waitingStays are the stays that wait, in no order.
func (b *backlog) waitingStays() []ledger.Stay {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]ledger.Stay, 0, len(b.stays))
	for _, s := range b.stays {
		all = append(all, s)
	}
	return all
}

// takeDecisions takes the decisions that wait.
func (b *backlog) takeDecisions() []ledger.Decision {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.decisions
	b.decisions = nil
	return taken
}

// forgetRecorded forgets what waited of stays that are recorded now.
func (b *backlog) forgetRecorded(stays []ledger.Stay) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range stays {
		s := &stays[i]
		pod := types.UID(s.UID)
		if s.Final {
			delete(b.open, pod)
		} else {
			b.open[pod] = struct{}{}
		}
		if waits, known := b.stays[pod]; known && (s.Final || !waits.Final) {
			delete(b.stays, pod)
		}
	}
}

// noteOpened notes a pod that the ledger has as running.
func (b *backlog) noteOpened(pod types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open[pod] = struct{}{}
}
