package giveway

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/test/testutil"
)

// The workload was fixed before the first trial: 32 GPUs in four nodes, all taken by four jobs of 2..8 workers with one GPU
// each, so that each has a surplus of six; and a newcomer, a gang of 1 to 8 workers with one GPU each and of the same tier. It
// needs as many GPUs as it has workers, so that is how many must leave.
const (
	nodes, gpusPerNode = 4, 8
	minReplicas        = 2
	largest            = 8
	// cooldown outlasts a trial: who left does not come back in it.
	cooldown = 5 * time.Minute
)

// A scene is where the newcomer comes from.
type scene int

const (
	// sameQueue: newcomer and jobs are in one queue, and may use every node.
	sameQueue scene = iota
	// anotherQueue: the newcomer is in a queue that uses nothing of its share, one half; the jobs' queue uses both halves.
	anotherQueue
	// twoKinds: two nodes are of one kind and two of another, with two jobs each; the newcomer is bound to the second kind.
	twoKinds
	scenes
)

func (s scene) String() string {
	return [...]string{"its own queue", "another queue's share", "one of two kinds of nodes"}[s]
}

// A trial is one newcomer, the same under each pair of actions.
type trial struct {
	number int
	scene  scene
	// gang is how many workers the newcomer has.
	gang int
}

// trials are the first n.
func trials(n int) []trial {
	random := rand.New(rand.NewPCG(20, 2026))
	all := make([]trial, n)
	for i := range all {
		all[i] = trial{i, scene(i) % scenes, 1 + random.IntN(largest)}
	}
	return all
}

// stage is a full cluster before the newcomer comes.
type stage struct {
	// jobs are the scenarios of each job that was there, by its name.
	jobs map[string]*testutil.Scenario
	// newcomers is where the newcomer is created, bound to pool.
	newcomers *testutil.Scenario
	pool      string
}

// fill makes the cluster and waits until every GPU is in use.
func (tr trial) fill(t *testing.T, w *testutil.World) stage {
	t.Helper()
	st := stage{jobs: map[string]*testutil.Scenario{}}
	var homes []*testutil.Scenario
	scenario := func(what string, nodes int) *testutil.Scenario {
		gpus := make([]int64, nodes)
		for i := range gpus {
			gpus[i] = gpusPerNode
		}
		return w.NewScenario(t, fmt.Sprintf("trial-%d-%s", tr.number, what), gpus...)
	}
	switch tr.scene {
	case sameQueue:
		all := scenario("all", nodes)
		homes, st.newcomers, st.pool = []*testutil.Scenario{all, all, all, all}, all, all.Namespace
	case anotherQueue:
		all := scenario("all", nodes)
		homes, st.newcomers, st.pool = []*testutil.Scenario{all, all, all, all}, scenario("other", 0), all.Namespace
		for _, each := range []*testutil.Scenario{all, st.newcomers} {
			each.UseQueue(each.NewQueue(schedulingv1beta1.QueueSpec{Weight: 1, Deserved: corev1.ResourceList{
				testutil.GPUResource: *resource.NewQuantity(nodes*gpusPerNode/2, resource.DecimalSI),
			}}))
		}
	case twoKinds:
		one, two := scenario("one", nodes/2), scenario("two", nodes/2)
		homes, st.newcomers, st.pool = []*testutil.Scenario{one, one, two, two}, two, two.Namespace
	default:
		t.Fatalf("no scene %d", tr.scene)
	}
	for i, home := range homes {
		name := string(rune('a' + i))
		home.Submit(home.Job(name).Range(minReplicas, largest).Cooldown(cooldown))
		st.jobs[name] = home
	}
	for name, home := range st.jobs {
		NewWithT(t).Eventually(home.Fetch(name)).Should(testutil.Train(largest), "job %s fills its part", name)
	}
	return st
}
