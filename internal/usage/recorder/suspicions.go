package recorder

import (
	"maps"
	"slices"
	"sync"

	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/ledger/decisionlog"
)

// mostSuspects bounds the nodes that are recalled. Each takes 8 KB at most.
const mostSuspects = 1000

// suspicions are what earlier operators held against nodes.
type suspicions struct {
	mu sync.Mutex
	// nodes are what was recorded last of each, until somebody asks. It is all that there is once recalled is true.
	nodes    map[string]ledger.Decision
	recalled bool
}

// RecallSuspects returns what earlier operators held against nodes, as they recorded it last, one decision for each node; false
// until the ledger was read. Whoever asks next gets none. It never waits.
func (r *Recorder) RecallSuspects() (held []ledger.Decision, known bool) {
	s := &r.suspicions
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.recalled {
		return nil, false
	}
	held = slices.Collect(maps.Values(s.nodes))
	s.nodes = nil
	return held, true
}

// noteSuspect notes what a decision says of a node. They come from the oldest to the newest.
func (s *suspicions) noteSuspect(d *ledger.Decision) {
	if d.Kind != decisionlog.NodeSuspected {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes == nil {
		s.nodes = map[string]ledger.Decision{}
	}
	if _, known := s.nodes[d.Name]; known || len(s.nodes) < mostSuspects {
		s.nodes[d.Name] = *d
	}
	if d.Figures[decisionlog.Witnesses] == "" {
		delete(s.nodes, d.Name) // Nothing is held against it any more.
	}
}

// noteRecalled notes that all was read.
func (s *suspicions) noteRecalled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recalled = true
}
