package faults

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/test/testutil"
)

// site is where a trial takes place: a namespace, a pool of nodes, and an operator of its own behind a proxy. An operator that
// crashed is started anew at once, as a kubelet does.
type site struct {
	*testutil.Scenario
	Gomega
	// story is what is told here.
	story *story
	// replica is the operator that is there from the beginning.
	*replica
	// deputy takes over when it is paused; nil if there is none.
	deputy *replica
	// flags are further flags of the operators.
	flags []string
	// merges is what is seen of the MergeJobs; nil in a story of jobs.
	merges *mergeRecord
	// held is what the pods hold; nil in a story without a cap.
	held *heldRecord
	// books are what its reports are made of; nil in a story without reports.
	books *books
	// release closes goOn, for which a request of a paused operator waits.
	goOn    chan struct{}
	release func()

	t  *trial
	mu sync.Mutex
	// absences counts how often the operator was killed, paused or cut off; over is true once it is not to be started any more.
	absences int
	over     bool
}

// replica is an operator and the proxy through which it reaches the API server.
type replica struct {
	proxy    *proxy
	operator *testutil.Operator
	// paused is true for one that was paused, which must then end by itself.
	paused bool
}

// newSite makes a site for a story, prepares it and starts the operator.
func newSite(t *trial, st *story, prepare ...func(*site)) *site {
	s := &site{
		Gomega: t.gomega(), story: st, t: t,
		// As users run it: no forced look at every object makes up for an event that was forgotten.
		flags: []string{"--resync-period=10h", "--config=" + shared.configuration}, goOn: make(chan struct{}),
	}
	s.release = sync.OnceFunc(func() { close(s.goOn) })
	t.Cleanup(s.dissolve)
	s.Scenario = shared.NewScenario(t, st.slug, st.gpus)
	if st.clusterWide {
		var err error
		s.Audit, err = shared.AuditNamed(s.Namespace)
		s.Expect(err).NotTo(HaveOccurred(), "the audit log is read")
	}
	t.Cleanup(s.end)
	if len(st.runs) > 0 {
		s.merges = s.recordMerges()
	}
	for _, do := range prepare {
		do(s)
	}
	s.replica = s.newReplica("operator")
	s.Expect(s.operator.Start(t.Context())).To(Succeed(), "the operator starts")
	return s
}

// file is the path of a file of the site's alone.
func (s *site) file(name string) string { return filepath.Join(shared.dir, s.Namespace+"-"+name) }

// newReplica makes an operator that is not yet started, and its proxy.
func (s *site) newReplica(name string) *replica {
	p, err := newProxy(shared.kubeconfig, view{s.Namespace, s.story.clusterWide}, hooks{s.crash, s.pauseHere, s.loseSight})
	s.Expect(err).NotTo(HaveOccurred(), "the proxy starts")
	file := s.file(name)
	s.Expect(p.writeKubeconfig(shared.kubeconfig, file+".kubeconfig")).To(Succeed(), "the operator learns of the proxy")
	return &replica{proxy: p, operator: testutil.NewOperator(testutil.OperatorOptions{
		Program: shared.operator, Kubeconfig: file + ".kubeconfig", Log: file + ".log", Args: s.flags,
	})}
}

// replicas are the operators of the site.
func (s *site) replicas() []*replica {
	return slices.DeleteFunc([]*replica{s.replica, s.deputy}, func(r *replica) bool { return r == nil })
}

// crash ends the operator as the loss of its node does, and starts it anew.
func (s *site) crash() { s.whileDown(func() {}) }

// whileDown does something while the operator does not run.
func (s *site) whileDown(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.operator.Kill()
	s.absences++
	do()
	if err := s.operator.Start(s.t.Context()); err != nil {
		s.t.fail(err.Error())
	}
}

// pause holds the operator where it is.
func (s *site) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.operator.Pause()
	s.replica.paused = true
	s.absences++
}

// pauseHere pauses the operator and returns when it is to go on.
func (s *site) pauseHere() {
	s.pause()
	<-s.goOn
}

// resume has an operator that was paused go on.
func (s *site) resume() {
	s.release()
	s.operator.Resume()
}

// loseSight notes that the operator does not see what happens for a while.
func (s *site) loseSight() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.absences++
}

// missed tells whether the operator was away for a while, and may have missed something.
func (s *site) missed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.absences > 0
}

// end stops the operators, which must still run, except one that was paused, and have a clean log.
func (s *site) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.release()
	for _, r := range s.replicas() {
		if r.paused {
			r.operator.Kill()
		} else if err := r.operator.Stop(); err != nil {
			s.t.fail(err.Error())
		}
		if err := r.operator.Misbehavior(); err != nil {
			s.t.fail(err.Error())
		}
		r.proxy.close()
		if s.t.Failed() {
			s.tell(r)
		}
	}
}

// tell adds to what a failed trial tells what an operator did and said, in so far as it matters.
func (s *site) tell(r *replica) {
	log, err := r.operator.Log()
	if err != nil {
		s.t.Logf("cannot read the operator's log: %v", err)
	}
	for line := range strings.Lines(string(log)) {
		if !strings.Contains(line, `"msg":"Starting `) && !strings.Contains(line, `"msg":"Stopping `) {
			s.t.Logf("%s", strings.TrimSpace(line))
		}
	}
	for _, c := range r.proxy.counted() {
		s.t.Logf("write %d, %s: %s, answered %d", c.number, c, c.fault, c.code)
	}
}
