package faults

import (
	"path/filepath"
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
	proxy *proxy

	t        *trial
	mu       sync.Mutex
	operator *testutil.Operator
	// deaths counts how often the operator was killed; over is true once it is not to be started any more.
	deaths int
	over   bool
}

// newSite makes a site with one node of so many GPUs, and starts the operator.
func newSite(t *trial, name string, gpus int64) *site {
	s := &site{Scenario: shared.NewScenario(t, name, gpus), Gomega: t.gomega(), t: t}
	var err error
	s.proxy, err = newProxy(shared.kubeconfig, s.Namespace, s.crash)
	s.Expect(err).NotTo(HaveOccurred(), "the proxy starts")
	t.Cleanup(s.proxy.close)
	file := filepath.Join(shared.dir, s.Namespace)
	s.Expect(s.proxy.writeKubeconfig(shared.kubeconfig, file+".kubeconfig")).To(Succeed(), "the operator learns of the proxy")
	s.operator, err = testutil.StartOperator(t.Context(), testutil.OperatorOptions{
		Program: shared.operator, Kubeconfig: file + ".kubeconfig", Log: file + ".log",
		// As users run it: no forced look at every object makes up for an event that was forgotten.
		Args: []string{"--resync-period=10h"},
	})
	t.Cleanup(s.end)
	s.Expect(err).NotTo(HaveOccurred(), "the operator starts")
	return s
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
	s.deaths++
	do()
	if err := s.operator.Start(s.t.Context()); err != nil {
		s.t.fail(err.Error())
	}
}

func (s *site) died() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deaths > 0
}

// end stops the operator, which must still run and have a clean log.
func (s *site) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if err := s.operator.Stop(); err != nil {
		s.t.fail(err.Error())
	}
	if err := s.operator.Misbehavior(); err != nil {
		s.t.fail(err.Error())
	}
	if s.t.Failed() {
		s.tell()
	}
}

// tell adds to what a failed trial tells what the operator did and said, in so far as it matters.
func (s *site) tell() {
	log, err := s.operator.Log()
	if err != nil {
		s.t.Logf("cannot read the operator's log: %v", err)
	}
	for line := range strings.Lines(string(log)) {
		if !strings.Contains(line, `"msg":"Starting `) && !strings.Contains(line, `"msg":"Stopping `) {
			s.t.Logf("%s", strings.TrimSpace(line))
		}
	}
	for _, c := range s.proxy.counted() {
		s.t.Logf("write %d, %s: %s, answered %d", c.number, c, c.fault, c.code)
	}
}
