package console

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/console/view"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/ledger/decisionlog"
)

const (
	// pastTimeout bounds how long a page waits for the ledger, pastLength how far back it looks for pods.
	pastTimeout, pastLength = 4 * time.Second, 14 * 24 * time.Hour
	// mostDecisions and mostStays bound what one page reads.
	mostDecisions, mostStays = 500, 20_000
)

// OpenLedger opens the ledger.
type OpenLedger = func(context.Context) (*ledger.Ledger, error)

// historian reads what is on record about trainings, for one page at a time.
type historian struct {
	// open is nil if no ledger is kept.
	open OpenLedger
	cfg  *config.Configuration
	log  logr.Logger

	mutex  sync.Mutex
	ledger *ledger.Ledger
}

// past is what is on record about a training: in the ledger, and without one in its status, which has the last of each kind.
func (h *historian) past(ctx context.Context, j *v1beta1.ElasticTrainingJob, now time.Time) *view.Past {
	p := &view.Past{Kept: h.open != nil, From: j.CreationTimestamp.Time}
	if earliest := now.Add(-pastLength); p.From.Before(earliest) {
		p.From = earliest
	}
	decided := decisionlog.TrainingDecisions(j, &v1beta1.ElasticTrainingJobStatus{}, &j.Status, now)
	if h.open != nil {
		kept, err := h.read(ctx, j, p, now)
		if err == nil {
			decided = kept
		} else {
			h.log.Error(err, "Cannot read the ledger for the console", "namespace", j.Namespace, "name", j.Name)
			p.Trouble = "The ledger could not be read, and the operator's log says why: of each kind only the last happening is known."
		}
	}
	for i := range decided {
		d := &decided[i]
		p.Happenings = append(p.Happenings, view.Happening{At: d.At, Kind: d.Kind, Reason: d.Reason, Message: d.Message})
	}
	slices.SortStableFunc(p.Happenings, func(a, b view.Happening) int { return a.At.Compare(b.At) })
	return p
}

// read reads the ledger. The ledger stays open until it fails.
func (h *historian) read(
	ctx context.Context, j *v1beta1.ElasticTrainingJob, p *view.Past, now time.Time,
) (_ []ledger.Decision, err error) {
	ctx, cancel := context.WithTimeout(ctx, pastTimeout)
	defer cancel()
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if h.ledger == nil {
		if h.ledger, err = h.open(ctx); err != nil {
			h.ledger = nil
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			_ = h.ledger.Close()
			h.ledger = nil
		}
	}()
	all, err := h.ledger.QueryDecisions(ctx, ledger.DecisionQuery{Namespace: j.Namespace, Name: j.Name, Limit: mostDecisions})
	if err != nil {
		return nil, err
	}
	// Of an earlier object by the same name, nothing.
	all = slices.DeleteFunc(all, func(d ledger.Decision) bool { return d.UID != string(j.UID) })
	var runs []string
	if a := j.Status.Attempt; a != nil {
		runs = append(runs, a.ID())
	}
	for i := range all {
		if run := all[i].Attempt; run != "" && !slices.Contains(runs, run) {
			runs = append(runs, run)
		}
	}
	stays, err := h.ledger.RunStays(ctx, p.From, now, runs)
	if err != nil {
		return nil, err
	}
	for i := range stays {
		s := &stays[i]
		if _, _, isOurs := rendezvous.ReadName(j.Name, s.Name); !isOurs || s.Namespace != j.Namespace ||
			s.Kind != v1beta1.ElasticTrainingJobKind {
			continue // Runs of several trainings may have one name.
		}
		if p.Unread = len(p.Stays) == mostStays; p.Unread {
			break
		}
		stay := view.Stay{Begin: s.Begin, End: s.End, Accelerators: h.accelerators(s.Resources)}
		if !s.Final {
			stay.End = now
		}
		p.Stays = append(p.Stays, stay)
	}
	return all, nil
}

// accelerators are those of a pod, in thousandths.
func (h *historian) accelerators(of ledger.Resources) (n int64) {
	for _, resource := range h.cfg.CountedAccelerators() {
		n += of[resource]
	}
	return n
}
