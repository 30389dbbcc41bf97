package arbiter

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity/devices"
	"github.com/tideline-io/tideline/internal/platform/kube"
)

// sharesDevices makes the node one with two devices of 16 GiB, and has pods ask for half of one.
func (s *fixture) sharesDevices(jobs ...*v1beta1.ElasticTrainingJob) {
	node, _ := s.objects[0].(*corev1.Node)
	node.Annotations = map[string]string{
		devices.Registered: "GPU-a,10,16384,NVIDIA-A100,true,hami-core:GPU-b,10,16384,NVIDIA-A100,true,hami-core:",
	}
	has := node.Status.Allocatable
	has[devices.Number], has[devices.Memory], has[devices.Cores] =
		resource.MustParse("20"), resource.MustParse("32768"), resource.MustParse("200")
	for _, job := range jobs {
		half(&job.Spec.Template.Spec)
	}
}

func half(spec *corev1.PodSpec) {
	asks := corev1.ResourceList{
		devices.Number: resource.MustParse("1"), devices.Memory: resource.MustParse("8192"), devices.Cores: resource.MustParse("50"),
	}
	spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: asks, Requests: asks}
}

// cached passes nodes and pods through what the caches keep of them.
func (s *fixture) cached() {
	for _, all := range [][]client.Object{s.objects, s.waits} {
		for i, o := range all {
			var kept any = o
			switch o.(type) {
			case *corev1.Node:
				kept, _ = kube.StripNode(o)
			case *corev1.Pod:
				kept, _ = kube.StripPod("")(o)
			}
			all[i], _ = kept.(client.Object)
		}
	}
}

func TestGangsOfPartsAreJudgedByWhatCachesHold(t *testing.T) {
	for name, c := range map[string]struct {
		// held are the annotations of pods on the node, each of half a device.
		held    []string
		largest int32
		unknown string
	}{
		"two devices are free":         {nil, 4, ""},
		"a half of each":               {[]string{"GPU-a,NVIDIA,8192,50:;", "GPU-b,NVIDIA,8192,50:;"}, 2, ""},
		"one half is left":             {[]string{"GPU-a,NVIDIA,8192,50:;", "GPU-b,NVIDIA,8192,50:;", "GPU-b,NVIDIA,8192,50:;"}, 1, ""},
		"which half, nobody says":      {[]string{""}, 0, devices.Unclear},
		"a device that it has no more": {[]string{"GPU-c,NVIDIA,8192,50:;"}, 0, devices.Unclear},
	} {
		g := NewWithT(t)
		s := newFixture(t)
		job := s.job("ctr", 2, 0)
		s.sharesDevices(job)
		for i, text := range c.held {
			p := s.stranger(name + string(rune('a'+i)))
			half(&p.Spec)
			p.Annotations[devices.Assigned] = text
		}
		s.wait()
		s.cached()
		answer := s.judge().Answer
		g.Expect(answer.Unknown).To(Equal(c.unknown), name)
		g.Expect(answer.Largest).To(Equal(c.largest), name)
		g.Expect(answer.Fits).To(Equal(c.largest >= 2), name)
	}
}

func TestPodsThatAskOtherwiseOfDevicesAreOfOtherShapes(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	job := s.job("ctr", 2, 0)
	s.sharesDevices(job)
	s.hold(job, func(p *corev1.Pod) {
		if p.Labels[v1beta1.LabelWorkerIndex] == "1" {
			p.Annotations[devices.Mode] = "mig"
		}
	})
	s.cached()
	g.Expect(s.judge().Answer.Unknown).To(Equal(devices.OtherMode))
}
