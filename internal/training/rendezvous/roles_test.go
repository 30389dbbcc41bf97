package rendezvous

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// withRoles is a job of these roles; one whose name begins with + leads.
func withRoles(framework v1beta1.FrameworkType, names ...string) *v1beta1.ElasticTrainingJob {
	j := job()
	j.Spec.Framework.Type = framework
	for _, name := range names {
		j.Spec.Roles = append(j.Spec.Roles, v1beta1.JobRole{
			Name: strings.TrimPrefix(name, "+"), Replicas: 1, Lead: strings.HasPrefix(name, "+"),
		})
	}
	return j
}

func TestNamesOfWorkersTellTheirRole(t *testing.T) {
	g := NewWithT(t)
	j := withRoles(v1beta1.FrameworkCustom, "ps", "+launcher")
	for i, want := range []string{"ctr-launcher-0", "ctr-ps-1", "ctr-worker-2"} {
		g.Expect(WorkerName(j, int32(i))).To(Equal(want))
		role, index, is := ReadName("ctr", want)
		g.Expect(is).To(BeTrue(), want)
		g.Expect([]any{role, index}).To(Equal([]any{j.Spec.SeatOf(int32(i)).Name(), int32(i)}))
	}
	for _, name := range []string{
		"ctr-worker", "ctr-worker-", "ctr--1", "ctr-worker-01", "ctr-worker-4096", "ctr-Ps-1", "ctr-1ps-1", "ctr-merge-1",
		"other-worker-1",
		"ctr-abcdefghijklm-1", "ctrworker-1", "ctr-a-b-1", "ctr-worker--1",
	} {
		_, _, is := ReadName("ctr", name)
		g.Expect(is).To(BeFalse(), name)
	}
}

func TestListsOfRoles(t *testing.T) {
	g := NewWithT(t)
	j := withRoles(v1beta1.FrameworkCustom, "+launcher", "ps")
	files := HostFiles(j, []int32{0, 1, 2, 3, 6}, 7, func(int32) int64 { return 8 })
	g.Expect(files).To(Equal(map[string]string{
		"hosts": "ctr-launcher-0.ctr-workers\nctr-ps-1.ctr-workers\nctr-worker-2.ctr-workers\nctr-worker-3.ctr-workers\n" +
			"ctr-worker-6.ctr-workers\n",
		"hostfile":        "ctr-worker-2.ctr-workers slots=8\nctr-worker-3.ctr-workers slots=8\nctr-worker-6.ctr-workers slots=8\n",
		"worker.host":     "ctr-worker-2.ctr-workers\nctr-worker-3.ctr-workers\nctr-worker-6.ctr-workers",
		"VC_WORKER_HOSTS": "ctr-worker-2.ctr-workers,ctr-worker-3.ctr-workers,ctr-worker-6.ctr-workers", "VC_WORKER_NUM": "3",
		"role0.host": "ctr-launcher-0.ctr-workers", "role0.hosts": "ctr-launcher-0.ctr-workers", "role0.num": "1",
		"role1.host": "ctr-ps-1.ctr-workers", "role1.hosts": "ctr-ps-1.ctr-workers", "role1.num": "1",
	}))
	for key := range files {
		g.Expect(HostKeys()).To(ContainElement(key), "the cache keeps no other")
	}
	paths := map[string]string{}
	for _, item := range HostItems(j) {
		g.Expect(files).To(HaveKey(item.Key), "a volume with a key that is not there is not mounted")
		paths[item.Path] = item.Key
	}
	g.Expect(paths).To(Equal(map[string]string{
		"hosts": "hosts", "hostfile": "hostfile", "worker.host": "worker.host", "launcher.host": "role0.host", "ps.host": "role1.host",
	}))
	g.Expect(HostItems(job())).To(BeNil(), "without roles the keys are the names of the files")
}

func TestEnvironmentOfRoles(t *testing.T) {
	g := NewWithT(t)
	j := withRoles(v1beta1.FrameworkCustom, "+launcher", "ps")
	attempt := &v1beta1.AttemptStatus{Number: 1, MinReplicas: 4, MaxReplicas: 8}
	for i, want := range []struct{ task, process string }{{"0", "0"}, {"0", ""}, {"0", "1"}, {"1", "2"}} {
		vars := values(PlainEnv(j, attempt, int32(i)))
		g.Expect(vars).To(HaveKeyWithValue("VC_TASK_INDEX", want.task), "%d", i)
		if want.process == "" {
			g.Expect(vars).NotTo(HaveKey("JAX_PROCESS_ID"), "a server of parameters is none of JAX's processes")
			continue
		}
		g.Expect(vars).To(HaveKeyWithValue("JAX_PROCESS_ID", want.process), "%d", i)
		g.Expect(vars).To(HaveKeyWithValue("JAX_NUM_PROCESSES", "3"))
		g.Expect(vars).To(HaveKeyWithValue("JAX_COORDINATOR_ADDRESS", "ctr-launcher-0.ctr-workers.ads.svc:29400"))
	}
	from := map[string]string{}
	for _, v := range PlainEnv(j, attempt, 0) {
		if v.ValueFrom != nil {
			from[v.Name] = v.ValueFrom.ConfigMapKeyRef.Key
		}
	}
	g.Expect(from).To(Equal(map[string]string{
		"VC_LAUNCHER_HOSTS": "role0.hosts", "VC_LAUNCHER_NUM": "role0.num", "VC_PS_HOSTS": "role1.hosts", "VC_PS_NUM": "role1.num",
		"VC_WORKER_HOSTS": "VC_WORKER_HOSTS", "VC_WORKER_NUM": "VC_WORKER_NUM", "MPI_HOST": "VC_WORKER_HOSTS",
	}))
}

// tfConfigOf is TF_CONFIG of a worker as its container has it, once the kubelet has put the cluster in its place.
func tfConfigOf(g Gomega, j *v1beta1.ElasticTrainingJob, core, i int32) (cluster map[string][]string, role string, index int) {
	attempt := &v1beta1.AttemptStatus{Number: 1, MinReplicas: core, MaxReplicas: core}
	indices := make([]int32, core)
	for n := range indices {
		indices[n] = int32(n)
	}
	files := HostFiles(j, indices, core, func(int32) int64 { return 1 })
	var text, key string
	for _, v := range PlainEnv(j, attempt, i) {
		switch v.Name {
		case "TIDELINE_TF_CLUSTER":
			g.Expect(text).To(BeEmpty(), "the kubelet knows only variables that stand before")
			key = v.ValueFrom.ConfigMapKeyRef.Key
		case "TF_CONFIG":
			text = v.Value
		}
	}
	g.Expect(HostKeys()).To(ContainElement(key))
	var config struct {
		Cluster map[string][]string
		Task    struct {
			Type  string
			Index int
		}
	}
	g.Expect(json.Unmarshal([]byte(strings.ReplaceAll(text, "$(TIDELINE_TF_CLUSTER)", files[key])), &config)).To(Succeed(), text)
	return config.Cluster, config.Task.Type, config.Task.Index
}

func TestTFConfig(t *testing.T) {
	g := NewWithT(t)
	host := func(name string) string { return name + ".ctr-workers:29400" }
	cluster, role, index := tfConfigOf(g, withRoles(v1beta1.FrameworkTensorFlow), 2, 1)
	g.Expect(cluster).To(Equal(map[string][]string{"worker": {host("ctr-worker-0"), host("ctr-worker-1")}}))
	g.Expect([]any{role, index}).To(Equal([]any{"worker", 1}))

	j := withRoles(v1beta1.FrameworkTensorFlow, "ps", "evaluator", "+chief")
	want := map[string][]string{
		"chief": {host("ctr-chief-0")}, "ps": {host("ctr-ps-1")}, "worker": {host("ctr-worker-3"), host("ctr-worker-4")},
	}
	for i, task := range []struct {
		role  string
		index int
	}{{"chief", 0}, {"ps", 0}, {"evaluator", 0}, {"worker", 0}, {"worker", 1}} {
		cluster, role, index = tfConfigOf(g, j, 5, int32(i))
		g.Expect(cluster).To(Equal(want), "the evaluator knows the cluster, which does not know it")
		g.Expect([]any{role, index}).To(Equal([]any{task.role, task.index}))
	}
}

func TestWorkersOfRolesAreNotTorchruns(t *testing.T) {
	g := NewWithT(t)
	j := withRoles(v1beta1.FrameworkTorchrun, "evaluator")
	attempt := &v1beta1.AttemptStatus{Number: 1, MinReplicas: 3, MaxReplicas: 6}
	g.Expect(JoinsTorchrun(&j.Spec, 0)).To(BeTrue())
	g.Expect(JoinsTorchrun(&j.Spec, 1)).To(BeFalse())
	g.Expect(JoinsTorchrun(&j.Spec, 2)).To(BeTrue())
	trainer := &j.Spec.Template.Spec.Containers[0]
	g.Expect(values(TorchrunEnv(j, attempt, 2, trainer, 0))).To(HaveKeyWithValue("PET_NNODES", "2:5"), "torchrun waits for no "+
		"evaluator")
}
