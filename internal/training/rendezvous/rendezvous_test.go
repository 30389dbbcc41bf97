package rendezvous

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

func job() *v1beta1.ElasticTrainingJob {
	j := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "ctr", UID: "u-1"}}
	j.Spec.Framework = v1beta1.Framework{Torchrun: &v1beta1.Torchrun{
		JoinTimeoutSeconds:     ptr.To[int32](600),
		LastCallTimeoutSeconds: ptr.To[int32](30), ReadTimeoutSeconds: ptr.To[int32](300),
	}}
	j.Spec.Template.Spec.Containers = []corev1.Container{{Name: "sidecar"}, {
		Name: "trainer", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4")}},
	}}
	return j
}

var attempt = &v1beta1.AttemptStatus{
	Number: 2, StartTime: metav1.NewTime(time.Unix(1700000000, 0)), MinReplicas: 2, MaxReplicas: 8,
}

func values(vars []corev1.EnvVar) map[string]string {
	m := map[string]string{}
	for _, v := range vars {
		m[v.Name] = v.Value
	}
	return m
}

func torchrun(j *v1beta1.ElasticTrainingJob, i int32) []corev1.EnvVar {
	containers := j.Spec.Template.Spec.Containers
	return TorchrunEnv(j, attempt, i, &containers[TrainerIndex(containers)], 0)
}

func TestEnv(t *testing.T) {
	g := NewWithT(t)
	g.Expect(values(torchrun(job(), 0))).To(Equal(map[string]string{
		"PET_NNODES":         "2:8",
		"PET_NPROC_PER_NODE": "4",
		"PET_RDZV_BACKEND":   "c10d",
		"PET_RDZV_ENDPOINT":  "ctr-worker-0.ctr-workers.ads.svc:29400",
		"PET_RDZV_ID":        "u-1-2-1700000000",
		"PET_RDZV_CONF":      "is_host=1,join_timeout=600,last_call_timeout=30,read_timeout=300",
		"PET_LOCAL_ADDR":     "ctr-worker-0.ctr-workers.ads.svc",
		"PET_MAX_RESTARTS":   "100",
	}))
	third := values(torchrun(job(), 3))
	g.Expect(third["PET_RDZV_CONF"]).To(HavePrefix("is_host=0,"))
	g.Expect(third["PET_LOCAL_ADDR"]).To(Equal("ctr-worker-3.ctr-workers.ads.svc"))
	g.Expect(third["PET_RDZV_ENDPOINT"]).To(Equal("ctr-worker-0.ctr-workers.ads.svc:29400"))
}

func TestEnvRespectsTheUser(t *testing.T) {
	g := NewWithT(t)
	j := job()
	j.Spec.Template.Spec.Containers[1].Env = []corev1.EnvVar{{Name: "PET_MAX_RESTARTS", Value: "3"}}
	j.Spec.Framework.Torchrun.RdzvConf = []v1beta1.RdzvConf{{Key: "close_timeout", Value: "60"}}
	env := values(torchrun(j, 1))
	g.Expect(env).NotTo(HaveKey("PET_MAX_RESTARTS"))
	g.Expect(env["PET_RDZV_CONF"]).To(HaveSuffix(",close_timeout=60"))
}

func TestGPUs(t *testing.T) {
	for name, c := range map[string]struct {
		limits, requests corev1.ResourceList
		gpus             int64
	}{
		"none":        {corev1.ResourceList{"cpu": resource.MustParse("8")}, nil, 0},
		"limits":      {corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}, nil, 8},
		"requests":    {nil, corev1.ResourceList{"amd.com/gpu": resource.MustParse("2")}, 2},
		"mig":         {corev1.ResourceList{"nvidia.com/mig-1g.5gb": resource.MustParse("3")}, nil, 3},
		"time slices": {corev1.ResourceList{"nvidia.com/gpu.shared": resource.MustParse("1")}, nil, 1},
		"volcano's vgpu": {corev1.ResourceList{
			"volcano.sh/vgpu-number": resource.MustParse("2"), "volcano.sh/vgpu-memory": resource.MustParse("4096"),
		}, nil, 2},
		"how much, of none":      {corev1.ResourceList{"volcano.sh/vgpu-memory": resource.MustParse("4096")}, nil, 0},
		"part of one":            {corev1.ResourceList{"aliyun.com/gpu-mem": resource.MustParse("8")}, nil, 1},
		"part of one, volcano's": {nil, corev1.ResourceList{"volcano.sh/gpu-memory": resource.MustParse("8192")}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			got := GPUs(&corev1.Container{Resources: corev1.ResourceRequirements{Limits: c.limits, Requests: c.requests}})
			NewWithT(t).Expect(got).To(Equal(c.gpus))
		})
	}
}

func TestNoGPUMeansOneProcess(t *testing.T) {
	j := job()
	j.Spec.Template.Spec.Containers = []corev1.Container{{Name: "only"}}
	NewWithT(t).Expect(values(torchrun(j, 0))["PET_NPROC_PER_NODE"]).To(Equal("1"))
}

func TestServicePublishesWorkersBeforeTheyAreReady(t *testing.T) {
	g := NewWithT(t)
	s := ServiceSpec(job())
	g.Expect(s.ClusterIP).To(Equal("None"))
	g.Expect(s.PublishNotReadyAddresses).To(BeTrue())
	g.Expect(s.Selector).To(Equal(map[string]string{"tideline.io/job": "ctr"}))
	g.Expect(s.Ports[0].Port).To(Equal(int32(29400)))
}

func TestNprocPerNodeIsTheUsersWord(t *testing.T) {
	j := job()
	attempt := &v1beta1.AttemptStatus{Number: 1, MinReplicas: 2, MaxReplicas: 4, NprocPerNode: 2}
	vars := TorchrunEnv(j, attempt, 0, &j.Spec.Template.Spec.Containers[1], 0)
	NewWithT(t).Expect(values(vars)["PET_NPROC_PER_NODE"]).To(Equal("2"))
}

func TestJobsOnTheHostsNetworkHavePortsOfTheirOwn(t *testing.T) {
	g := NewWithT(t)
	j := job()
	j.Spec.Template.Spec.HostNetwork = true
	seen := map[int32]bool{}
	for i := range 20000 {
		j.UID = types.UID(strconv.Itoa(i))
		port := PortOf(j)
		seen[port] = true
		if port < 20000 || port > 29999 || port == v1beta1.DefaultPort {
			t.Fatalf("job %d has port %d", i, port)
		}
	}
	g.Expect(len(seen)).To(BeNumerically(">", 8000), "ports are spread")
	j.UID = "u-1"
	endpoint := values(torchrun(j, 3))["PET_RDZV_ENDPOINT"]
	g.Expect(endpoint).To(Equal(fmt.Sprintf("ctr-worker-0.ctr-workers.ads.svc:%d", PortOf(j))))
	g.Expect(ServiceSpec(j).Ports[0].Port).To(Equal(PortOf(j)), "the Service says the same")
	j.Spec.Framework.Port = ptr.To[int32](29400)
	g.Expect(PortOf(j)).To(Equal(int32(29400)), "a port that somebody chose stands")
	g.Expect(HostPort(j, config.DefaultHostPorts())).To(BeZero())
}

func TestPortsAreDrawnAmongThoseThatAreConfigured(t *testing.T) {
	g := NewWithT(t)
	j := job()
	g.Expect(HostPort(j, config.DefaultHostPorts())).To(BeZero(), "a job with a network of its own needs none")
	j.Spec.Template.Spec.HostNetwork = true
	for _, among := range []config.HostPorts{
		{First: 20000, Last: 29999}, {First: 29350, Last: 29449}, {First: 29400, Last: 29499}, {First: 29301, Last: 29400},
		{First: 1024, Last: 1123},
	} {
		seen := map[int32]bool{}
		for i := range 5000 {
			j.UID = types.UID(strconv.Itoa(i))
			seen[HostPort(j, among)] = true
		}
		ports := slices.Sorted(maps.Keys(seen))
		g.Expect(ports).NotTo(ContainElement(v1beta1.DefaultPort))
		g.Expect(ports[0]).To(BeNumerically(">=", among.First))
		g.Expect(ports[len(ports)-1]).To(BeNumerically("<=", among.Last))
		g.Expect(len(ports)).To(BeNumerically(">=", 99), "each port is drawn, whatever the range")
	}
	among := config.HostPorts{First: 31000, Last: 31999}
	drawn := HostPort(j, among)
	j.Status.Attempt = &v1beta1.AttemptStatus{HostPort: drawn}
	g.Expect(PortOf(j)).To(Equal(drawn), "workers use the port that status has")
	g.Expect(HostPort(j, config.HostPorts{First: 31000, Last: 39999})).To(Equal(drawn), "the next attempt keeps it while it may")
	g.Expect(HostPort(j, config.HostPorts{First: 1024, Last: 2023})).To(BeNumerically("<", 2024))
	j.Status.Attempt.HostPort = 0
	before := PortOf(j)
	g.Expect(HostPort(j, config.DefaultHostPorts())).To(Equal(before), "an attempt of before status had it goes on with its port")
}

func TestPlainEnv(t *testing.T) {
	g := NewWithT(t)
	j := job()
	j.Spec.Framework.Type = v1beta1.FrameworkCustom
	from := map[string]string{}
	for _, v := range PlainEnv(j, attempt, 3) {
		if v.ValueFrom != nil {
			g.Expect(v.ValueFrom.ConfigMapKeyRef.Name).To(Equal("ctr-hosts"))
			from[v.Name] = v.ValueFrom.ConfigMapKeyRef.Key
		}
	}
	g.Expect(from).To(Equal(map[string]string{
		"VC_MASTER_HOSTS": "VC_MASTER_HOSTS", "VC_MASTER_NUM": "VC_MASTER_NUM", "VC_WORKER_HOSTS": "VC_WORKER_HOSTS",
		"VC_WORKER_NUM": "VC_WORKER_NUM",
	}))
	third := values(PlainEnv(j, attempt, 3))
	g.Expect(third).To(HaveKeyWithValue("VC_TASK_INDEX", "2"), "the third of task worker, counted from 0")
	g.Expect(third).To(HaveKeyWithValue("VK_TASK_INDEX", "2"))
	g.Expect(third).To(HaveKeyWithValue("JAX_COORDINATOR_ADDRESS", "ctr-worker-0.ctr-workers.ads.svc:29400"))
	g.Expect(third).To(HaveKeyWithValue("JAX_NUM_PROCESSES", "2"))
	g.Expect(third).To(HaveKeyWithValue("JAX_PROCESS_ID", "3"))
	g.Expect(third).NotTo(HaveKey("MPI_HOST"))
	zeroth := values(PlainEnv(j, attempt, 0))
	g.Expect(zeroth).To(HaveKeyWithValue("VC_TASK_INDEX", "0"), "the only one of task master")
	g.Expect(zeroth).To(HaveKey("MPI_HOST"))
}

func TestHosts(t *testing.T) {
	g := NewWithT(t)
	slots := func(i int32) int64 { return int64(8 - i) }
	g.Expect(HostFiles(job(), []int32{0, 1, 5}, 6, slots)).To(Equal(map[string]string{
		"hosts":           "ctr-worker-0.ctr-workers\nctr-worker-1.ctr-workers\nctr-worker-5.ctr-workers\n",
		"hostfile":        "ctr-worker-0.ctr-workers slots=8\nctr-worker-1.ctr-workers slots=7\nctr-worker-5.ctr-workers slots=3\n",
		"master.host":     "ctr-worker-0.ctr-workers",
		"worker.host":     "ctr-worker-1.ctr-workers\nctr-worker-5.ctr-workers",
		"VC_MASTER_HOSTS": "ctr-worker-0.ctr-workers", "VC_MASTER_NUM": "1",
		"VC_WORKER_HOSTS": "ctr-worker-1.ctr-workers,ctr-worker-5.ctr-workers", "VC_WORKER_NUM": "2",
	}))
	alone := HostFiles(job(), []int32{0}, 1, slots)
	g.Expect(alone["VC_WORKER_HOSTS"]).To(BeEmpty())
	g.Expect(alone["VC_WORKER_NUM"]).To(Equal("0"))
}

// Linux starts no container whose variable has more than 128 KiB, and the API server takes no ConfigMap of more than 1 MiB.
func TestListsOfTheLargestJobsAreInFilesThatCanBeStored(t *testing.T) {
	const largest = 4096
	indices := make([]int32, largest)
	for i := range indices {
		indices[i] = int32(i)
	}
	for name, longest := range map[string]bool{"ctr-main-traffic": false, strings.Repeat("x", 51): true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			j := job()
			j.Name, j.Spec.Framework.Type = name, v1beta1.FrameworkCustom
			attempt := &v1beta1.AttemptStatus{Number: 1, MinReplicas: 2, MaxReplicas: largest}
			files := HostFiles(j, indices, largest, func(int32) int64 { return 8 })
			size := 0
			for key, content := range files {
				size += len(key) + len(content)
			}
			g.Expect(size).To(BeNumerically("<", 1<<20))
			g.Expect(strings.Count(files["hostfile"], "\n")).To(Equal(largest), "this file is complete in any case")
			g.Expect(strings.Contains(files["worker.host"], "read them in hostfile")).To(Equal(longest))
			g.Expect(strings.Contains(files["hosts"], "read them in hostfile")).To(Equal(longest))
			for _, v := range PlainEnv(j, attempt, 0) {
				g.Expect(v.Name).NotTo(BeElementOf("VC_WORKER_HOSTS", "MPI_HOST"), "a list that is not there is noticed")
				if v.ValueFrom != nil {
					g.Expect(len(files[v.ValueFrom.ConfigMapKeyRef.Key])).To(BeNumerically("<", 128<<10), v.Name)
				}
			}
		})
	}
}

func TestListsThatFitAreInVariables(t *testing.T) {
	g := NewWithT(t)
	j := job()
	attempt := &v1beta1.AttemptStatus{Number: 1, MinReplicas: 2, MaxReplicas: 2000}
	var names []string
	for _, v := range PlainEnv(j, attempt, 0) {
		names = append(names, v.Name)
	}
	g.Expect(names).To(ContainElements("VC_WORKER_HOSTS", "MPI_HOST"))
	g.Expect(HostFiles(j, []int32{0, 1}, 2000, func(int32) int64 { return 1 })).To(
		HaveKeyWithValue("VC_WORKER_HOSTS", "ctr-worker-1.ctr-workers"), "whatever surplus runs")
}
