package faults

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/test/testutil"
)

// environment is where a run takes place: a namespace, a pool of nodes, and an operator of its own behind a proxy. An operator
// that crashed is started anew at once, as a kubelet does.
type environment struct {
	*testutil.Scenario
	Gomega
	// story is what is told here.
	story *story
	// replica is the operator that is there from the beginning.
	*replica
	// standby takes over when it is paused; nil if there is none.
	standby *replica
	// program is that of its operators, and flags and variables what they get beside the usual ones.
	program          string
	flags, variables []string
	// merges is what is seen of the MergeJobs; nil in a story of jobs.
	merges *mergeRecord
	// held is what the pods hold; nil in a story without a cap.
	held *heldRecord
	// books are what its reports are made of; nil in a story without reports.
	books *books
	// release closes goOn, for which a request of a paused operator waits.
	goOn    chan struct{}
	release func()

	t  *storyRun
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

// newEnvironment makes an environment for a story, prepares it and starts the operator.
func newEnvironment(t *storyRun, st *story, prepare ...func(*environment)) *environment {
	env := &environment{
		Gomega: t.gomega(), story: st, t: t, program: shared.operator,
		// As users run it: no forced look at every object makes up for an event that was forgotten.
		flags: []string{"--resync-period=10h", "--config=" + shared.configuration}, goOn: make(chan struct{}),
	}
	env.release = sync.OnceFunc(func() { close(env.goOn) })
	t.Cleanup(env.dissolve)
	env.Scenario = shared.NewScenario(t, st.slug, st.gpus)
	if st.clusterWide {
		var err error
		env.Audit, err = shared.AuditNamed(env.Namespace)
		env.Expect(err).NotTo(HaveOccurred(), "the audit log is read")
	}
	t.Cleanup(env.end)
	if len(st.runs) > 0 {
		env.merges = env.recordMerges()
	}
	for _, do := range prepare {
		do(env)
	}
	env.replica = env.newReplica("operator")
	env.Expect(env.operator.Start(t.Context())).To(Succeed(), "the operator starts")
	return env
}

// file is the path of a file that only this environment uses.
func (env *environment) file(name string) string {
	return filepath.Join(shared.dir, env.Namespace+"-"+name)
}

// newReplica makes an operator that is not yet started, and its proxy.
func (env *environment) newReplica(name string) *replica {
	p, err := newProxy(shared.kubeconfig, view{env.Namespace, env.story.clusterWide}, hooks{env.crash, env.pauseHere, env.loseSight})
	env.Expect(err).NotTo(HaveOccurred(), "the proxy starts")
	file := env.file(name)
	env.Expect(p.writeKubeconfig(shared.kubeconfig, file+".kubeconfig")).To(Succeed(), "the operator learns of the proxy")
	return &replica{proxy: p, operator: testutil.NewOperator(testutil.OperatorOptions{
		Program: env.program, Kubeconfig: file + ".kubeconfig", Log: file + ".log", Args: env.flags, Env: env.variables,
	})}
}

// replicas are the operators of the environment.
func (env *environment) replicas() []*replica {
	return slices.DeleteFunc([]*replica{env.replica, env.standby}, func(r *replica) bool { return r == nil })
}

// crash ends the operator as the loss of its node does, and starts it anew.
func (env *environment) crash() { env.whileDown(func() {}) }

// whileDown does something while the operator does not run.
func (env *environment) whileDown(do func()) {
	env.mu.Lock()
	defer env.mu.Unlock()
	if env.over {
		return
	}
	env.operator.Kill()
	env.absences++
	do()
	if err := env.operator.Start(env.t.Context()); err != nil {
		env.t.fail(err.Error())
	}
}

// pause holds the operator where it is.
func (env *environment) pause() {
	env.mu.Lock()
	defer env.mu.Unlock()
	env.operator.Pause()
	env.replica.paused = true
	env.absences++
}

// pauseHere pauses the operator and returns when it is to go on.
func (env *environment) pauseHere() {
	env.pause()
	<-env.goOn
}

// resume has an operator that was paused go on.
func (env *environment) resume() {
	env.release()
	env.operator.Resume()
}

// loseSight notes that the operator does not see what happens for a while.
func (env *environment) loseSight() {
	env.mu.Lock()
	defer env.mu.Unlock()
	env.absences++
}

// missed tells whether the operator was away for a while, and may have missed something.
func (env *environment) missed() bool {
	env.mu.Lock()
	defer env.mu.Unlock()
	return env.absences > 0
}

// end stops the operators, which must still run, except one that was paused, and have a clean log.
func (env *environment) end() {
	env.mu.Lock()
	defer env.mu.Unlock()
	env.over = true
	env.release()
	for _, r := range env.replicas() {
		if r.paused {
			r.operator.Kill()
		} else if err := r.operator.Stop(); err != nil {
			env.t.fail(err.Error())
		}
		if err := r.operator.Misbehavior(); err != nil {
			env.t.fail(err.Error())
		}
		r.proxy.close()
		if env.t.Failed() {
			env.tell(r)
		}
	}
}

// tell adds to what a failed run tells what an operator did and said, in so far as it matters.
func (env *environment) tell(r *replica) {
	log, err := r.operator.Log()
	if err != nil {
		env.t.Logf("cannot read the operator's log: %v", err)
	}
	for line := range strings.Lines(string(log)) {
		if !strings.Contains(line, `"msg":"Starting `) && !strings.Contains(line, `"msg":"Stopping `) {
			env.t.Logf("%s", strings.TrimSpace(line))
		}
	}
	for _, c := range r.proxy.counted() {
		env.t.Logf("write %d, %s: %s, answered %d", c.number, c, c.fault, c.code)
	}
}
