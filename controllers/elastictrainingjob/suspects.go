package elastictrainingjob

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/ownership"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/losses"
	"github.com/tideline-io/tideline/internal/training/suspicion"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// judgeEvery is how often nodes are judged anew.
const judgeEvery = 10 * time.Second

// suspects hold against nodes that workers fail on them. Only the operator that reconciles has any. If a ledger is kept, the next
// operator begins with what this one recorded there.
type suspects struct {
	now     func() time.Time
	journal Journal
	// webhooksOff is true for an operator that checks no owners.
	webhooksOff bool
	// tell tells the administrator of a node that is accused; false to be called again.
	tell func(context.Context, suspicion.Suspect) (done bool)

	mu       sync.Mutex
	evidence *suspicion.Evidence
	jobs     map[types.NamespacedName]known
	// found are the nodes that something is held against, and told those that the administrator was told of.
	found []suspicion.Suspect
	told  map[string]bool
	// recorded is the last record of each node; nil until the ledger was read.
	recorded map[string]recorded
}

// known is as what the evidence knows a job.
type known struct {
	uid    types.UID
	source suspicion.Source
}

func newSuspects(now func() time.Time) *suspects {
	return &suspects{
		now: now, evidence: suspicion.NewEvidence(), jobs: map[types.NamespacedName]known{}, told: map[string]bool{},
	}
}

// sourceOf is who answers for a job's failures. An owner that no webhook has checked is whoever the creator named, so that the
// namespace counts instead.
func sourceOf(job *v1beta1.ElasticTrainingJob, webhooksOff bool) suspicion.Source {
	owner := ownership.OfTraining(job, webhooksOff).User
	if owner == "" || webhooksOff || meta.IsStatusConditionFalse(job.Status.Conditions, v1beta1.ConditionOwnerChecked) {
		owner = "namespace " + job.Namespace
	}
	return suspicion.Source{Owner: owner, Task: job.Namespace + "/" + trainingpod.TaskOf(job)}
}

// observe notes on which nodes workers of a job run, and returns which of these are doubted, and which nodes all jobs shun.
func (s *suspects) observe(
	job *v1beta1.ElasticTrainingJob, workers []podstate.Worker, webhooksOff bool,
) (doubted, shunned []string) {
	var nodes []string
	for i := range workers {
		if w := &workers[i]; w.IsRunning() && job.DeletionTimestamp == nil {
			nodes = append(nodes, w.Node)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key, is := client.ObjectKeyFromObject(job), known{job.UID, sourceOf(job, webhooksOff)}
	// An earlier job of the name is gone, and is on no node any more.
	if was, there := s.jobs[key]; there && was.uid != is.uid {
		s.evidence.HoldNodes(was.uid, was.source, nil, s.now())
	}
	s.jobs[key] = is
	s.evidence.HoldNodes(is.uid, is.source, nodes, s.now())
	for _, f := range s.found {
		if slices.Contains(nodes, f.Node) {
			doubted = append(doubted, f.Node)
		}
		if f.Level >= suspicion.Shunned && len(shunned) < trainingpod.MostShunned {
			shunned = append(shunned, f.Node)
		}
	}
	return doubted, shunned
}

// note takes failures that the status of the job has now.
func (s *suspects) note(job *v1beta1.ElasticTrainingJob, failed []losses.Failure, webhooksOff bool) {
	if len(failed) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	source, now := sourceOf(job, webhooksOff), s.now()
	for _, f := range failed {
		if f.Rejected {
			s.evidence.NoteRejection(source, f.Node, now)
		} else {
			s.evidence.NoteFailure(job.UID, source, f.Node, now)
		}
	}
}

// forget notes that a job is gone. What it has shown of nodes stays.
func (s *suspects) forget(job types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, there := s.jobs[job]; there {
		s.evidence.HoldNodes(was.uid, was.source, nil, s.now())
		delete(s.jobs, job)
	}
}

// judge judges nodes from time to time, until the operator ends.
func (s *suspects) judge(ctx context.Context) error {
	ticker := time.NewTicker(judgeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		s.judgeOnce(ctx)
	}
}

// judgeOnce judges nodes, tells the administrator, and records what the next operator should know.
func (s *suspects) judgeOnce(ctx context.Context) {
	s.recall()
	for _, accused := range s.findAccused() {
		if !s.tell(ctx, accused) {
			s.tellAgain(accused.Node)
		}
	}
	s.record()
}

// tellAgain has the administrator be told of a node that is still accused when nodes are judged next.
func (s *suspects) tellAgain(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.told, node)
}

// findAccused judges all nodes, and returns those that the administrator has yet to be told of.
func (s *suspects) findAccused() []suspicion.Suspect {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.evidence.SettleFailures(now)
	s.found = s.evidence.ListSuspects(now)
	var fresh []suspicion.Suspect
	still := map[string]bool{}
	for _, f := range s.found {
		switch told := s.told[f.Node]; {
		case f.Level == suspicion.Accused && !told:
			fresh = append(fresh, f)
			still[f.Node] = true
		case f.Level >= suspicion.Shunned && told:
			still[f.Node] = true // It is told again only after it was cleared in between.
		}
	}
	s.told = still
	return fresh
}

// suspectWords says what is held against a node, and what an administrator can do.
func suspectWords(s suspicion.Suspect) string {
	return fmt.Sprintf("Workers of %d owners and %d tasks failed on this node or were rejected, about %.0f times, although their "+
		"tasks seldom fail elsewhere: evidence %.1f, and %.0f is the limit. Jobs prefer other nodes. Check its devices, and keep pods "+
		"off it with `kubectl taint node %s tideline.io/suspect=failures:NoSchedule`.",
		s.Owners, s.Tasks, max(1, s.Failures), s.Sum, s.Limit, s.Node)
}

var suspectsDesc = prometheus.NewDesc("tideline_suspect_nodes",
	"Nodes on which more workers fail than chance explains, by what follows from it.", []string{"level"}, nil)

// Describe implements prometheus.Collector.
func (*suspects) Describe(to chan<- *prometheus.Desc) { to <- suspectsDesc }

// Collect implements prometheus.Collector.
func (s *suspects) Collect(to chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[suspicion.Level]int{}
	for _, f := range s.found {
		counts[f.Level]++
	}
	for _, level := range []suspicion.Level{suspicion.Doubted, suspicion.Shunned, suspicion.Accused} {
		to <- prometheus.MustNewConstMetric(suspectsDesc, prometheus.GaugeValue, float64(counts[level]), level.MetricLabel())
	}
}
