package rendezvous

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

func job() *v1alpha1.ElasticTrainingJob {
	j := &v1alpha1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "ctr", UID: "u-1"}}
	j.Spec.Rendezvous = v1alpha1.Rendezvous{
		Port: ptr.To[int32](29400), JoinTimeoutSeconds: ptr.To[int32](600),
		LastCallTimeoutSeconds: ptr.To[int32](30), ReadTimeoutSeconds: ptr.To[int32](300),
	}
	j.Spec.Template.Spec.Containers = []corev1.Container{{Name: "sidecar"}, {
		Name: "trainer", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4")}},
	}}
	return j
}

var attempt = &v1alpha1.AttemptStatus{
	Number: 2, StartTime: metav1.NewTime(time.Unix(1700000000, 0)), MinReplicas: 2, MaxReplicas: 8,
}

func values(vars []corev1.EnvVar) map[string]string {
	m := map[string]string{}
	for _, v := range vars {
		m[v.Name] = v.Value
	}
	return m
}

func TestEnv(t *testing.T) {
	g := NewWithT(t)
	g.Expect(values(Env(job(), attempt, 0))).To(Equal(map[string]string{
		"PET_NNODES":         "2:8",
		"PET_NPROC_PER_NODE": "4",
		"PET_RDZV_BACKEND":   "c10d",
		"PET_RDZV_ENDPOINT":  "ctr-worker-0.ctr-workers.ads.svc:29400",
		"PET_RDZV_ID":        "u-1-2-1700000000",
		"PET_RDZV_CONF":      "is_host=1,join_timeout=600,last_call_timeout=30,read_timeout=300",
		"PET_LOCAL_ADDR":     "ctr-worker-0.ctr-workers.ads.svc",
		"PET_MAX_RESTARTS":   "100",
	}))
	third := values(Env(job(), attempt, 3))
	g.Expect(third["PET_RDZV_CONF"]).To(HavePrefix("is_host=0,"))
	g.Expect(third["PET_LOCAL_ADDR"]).To(Equal("ctr-worker-3.ctr-workers.ads.svc"))
	g.Expect(third["PET_RDZV_ENDPOINT"]).To(Equal("ctr-worker-0.ctr-workers.ads.svc:29400"))
}

func TestEnvRespectsTheUser(t *testing.T) {
	g := NewWithT(t)
	j := job()
	j.Spec.Template.Spec.Containers[1].Env = []corev1.EnvVar{{Name: "PET_MAX_RESTARTS", Value: "3"}}
	j.Spec.Rendezvous.RdzvConf = []v1alpha1.RdzvConf{{Key: "close_timeout", Value: "60"}}
	env := values(Env(j, attempt, 1))
	g.Expect(env).NotTo(HaveKey("PET_MAX_RESTARTS"))
	g.Expect(env["PET_RDZV_CONF"]).To(HaveSuffix(",close_timeout=60"))
}

func TestGPUs(t *testing.T) {
	for name, c := range map[string]struct {
		limits, requests corev1.ResourceList
		gpus             int64
	}{
		"none":     {corev1.ResourceList{"cpu": resource.MustParse("8")}, nil, 0},
		"limits":   {corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}, nil, 8},
		"requests": {nil, corev1.ResourceList{"amd.com/gpu": resource.MustParse("2")}, 2},
		"mig":      {corev1.ResourceList{"nvidia.com/mig-1g.5gb": resource.MustParse("3")}, nil, 3},
		"shared":   {corev1.ResourceList{"volcano.sh/vgpu-memory": resource.MustParse("4096")}, nil, 0},
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
	NewWithT(t).Expect(values(Env(j, attempt, 0))["PET_NPROC_PER_NODE"]).To(Equal("1"))
}

func TestServicePublishesWorkersBeforeTheyAreReady(t *testing.T) {
	g := NewWithT(t)
	s := Service(job())
	g.Expect(s.ClusterIP).To(Equal("None"))
	g.Expect(s.PublishNotReadyAddresses).To(BeTrue())
	g.Expect(s.Selector).To(Equal(map[string]string{"tideline.io/job": "ctr"}))
	g.Expect(s.Ports[0].Port).To(Equal(int32(29400)))
}
