package elastictrainingjob

import (
	"encoding/json"
	"time"

	"github.com/tideline-io/tideline/internal/platform/moment"
	"github.com/tideline-io/tideline/internal/training/suspicion"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/ledger/decisionlog"
)

const (
	// recordAgainAfter is after what time a node is recorded again although about the same is held against it. A new leader does not
	// know the hours that jobs spent on the node since, which count in its favor.
	recordAgainAfter = 6 * time.Hour
	// sameSum is by how much the sum against a node may rise before it is recorded again.
	sameSum = 1
	// mostRecorded is how many nodes are recorded in one turn: the ledger's backlog is for the decisions about jobs too.
	mostRecorded = 100
)

// recorded is what was recorded of a node last.
type recorded struct {
	level suspicion.Level
	sum   float64
	told  bool
	// at is the time of the decision, and noted when it was made: they differ after the clock was set back.
	at, noted time.Time
}

// covers tells whether what was recorded still says enough.
func (r recorded) covers(f *suspicion.Suspect, told bool, now time.Time) bool {
	return r.level == f.Level && r.told == told && f.Sum < r.sum+sameSum && now.Sub(r.noted).Abs() < recordAgainAfter
}

// recall holds against nodes what earlier operators did, once that is known. Where owners are now known otherwise than then, one
// user would be two witnesses: then nothing is recalled.
func (s *suspects) recall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recorded != nil || s.journal == nil {
		return
	}
	held, known := s.journal.RecallSuspects()
	if !known {
		return
	}
	s.recorded = map[string]recorded{}
	now := s.now()
	for i := range held {
		d := &held[i]
		level, is := suspicion.LevelNamed(d.Reason)
		var witnesses []suspicion.Witness
		err := json.Unmarshal([]byte(d.Figures[decisionlog.Witnesses]), &witnesses)
		if !is || err != nil || d.Figures[decisionlog.Owners] != s.owners() {
			s.recorded[d.Name] = recorded{at: d.At} // What is found now is recorded in its place.
			continue
		}
		sum := s.evidence.RecallWitnesses(d.Name, witnesses, moment.EarlierOf(d.At, now))
		told := d.Figures[decisionlog.Told] != ""
		if s.recorded[d.Name] = (recorded{level, sum, told, d.At, moment.EarlierOf(d.At, now)}); told {
			s.told[d.Name] = true
		}
	}
}

// owners says how the owners of jobs are known.
func (s *suspects) owners() string {
	if s.webhooksOff {
		return "namespaces"
	}
	return "checked"
}

// record tells the journal what is held against nodes, where that was not recorded lately. It waits for what earlier operators
// recorded, which would be lost else.
func (s *suspects) record() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recorded == nil {
		return
	}
	now, still, room := s.now(), map[string]bool{}, mostRecorded
	for i := range s.found {
		f := &s.found[i]
		still[f.Node] = true
		was, told := s.recorded[f.Node], s.told[f.Node]
		if room == 0 || was.covers(f, told, now) {
			continue
		}
		witnesses, err := json.Marshal(s.evidence.WitnessesOf(f.Node, now))
		if err != nil {
			continue // A sum is not a number.
		}
		figures := map[string]string{decisionlog.Witnesses: string(witnesses), decisionlog.Owners: s.owners()}
		if told {
			figures[decisionlog.Told] = "true"
		}
		s.recorded[f.Node] = recorded{f.Level, f.Sum, told, s.decide(f.Node, f.Level, figures, now), now}
		room--
	}
	for node := range s.recorded {
		if !still[node] && room > 0 {
			s.decide(node, suspicion.Clear, nil, now)
			delete(s.recorded, node)
			room--
		}
	}
}

// decide hands the journal a decision about a node, which is later than the last one also where the clock was set back.
func (s *suspects) decide(node string, level suspicion.Level, figures map[string]string, now time.Time) time.Time {
	at := moment.LaterOf(now, s.recorded[node].at.Add(time.Microsecond))
	s.journal.Decided(ledger.Decision{
		At: at, Kind: decisionlog.NodeSuspected, Name: node, Reason: level.MetricLabel(), Figures: figures,
	})
	return at
}
