package merging

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// cappedMerge is a merge of alice, of 4 pods of 2 GPUs each that may grow to 8, under the caps of profile ads.
func cappedMerge(w *simulator, caps v1beta1.ProfileCaps) *merger {
	m := w.add("a", func(s *v1beta1.MergeJobSpec) {
		s.Owner, s.MaxReplicas = "alice", 8
		s.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}
	}).full(w, 12*time.Hour)
	m.profile = &v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: "ads"}}
	m.profile.Spec.Caps = &caps
	return m
}

func gpuCap(most string) []v1beta1.ResourceCap {
	return []v1beta1.ResourceCap{{Resource: "nvidia.com/gpu", Max: resource.MustParse(most)}}
}

func TestMergesKeepTheCapsOfTheirProfile(t *testing.T) {
	for name, c := range map[string]struct {
		caps   v1beta1.ProfileCaps
		reason string
		// most is how many pods the run may have; 0 for none.
		most int32
	}{
		"of a job, below the core":  {v1beta1.ProfileCaps{PerJob: gpuCap("7")}, v1beta1.ReasonQuotaExceeded, 0},
		"of a user, below the core": {v1beta1.ProfileCaps{PerUser: gpuCap("7")}, v1beta1.ReasonQuotaExceeded, 0},
		"of a job, below the most":  {v1beta1.ProfileCaps{PerJob: gpuCap("13")}, v1beta1.ReasonMerging, 6},
		"of a user, at the core":    {v1beta1.ProfileCaps{PerUser: gpuCap("8")}, v1beta1.ReasonMerging, 4},
		"that leave all":            {v1beta1.ProfileCaps{PerJob: gpuCap("16")}, v1beta1.ReasonMerging, 8},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 4)
			m := cappedMerge(w, c.caps)
			w.settle()
			g.Expect(m.status().Reason).To(Equal(c.reason))
			if c.most == 0 {
				g.Expect(m.status().Run).To(BeNil())
				g.Expect(m.status().Message).To(And(HavePrefix("The job asks for at least 8 nvidia.com/gpu, and profile ads lets a "),
					HaveSuffix("hold at most 7 nvidia.com/gpu. Lower minReplicas, or ask an administrator to raise the limit.")))
				return
			}
			g.Expect(m.status().Run.MaxReplicas).To(Equal(c.most))
		})
	}
}

func TestMergesWaitForBudgets(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	day := metav1.Duration{Duration: 24 * time.Hour}
	m := cappedMerge(w, v1beta1.ProfileCaps{
		AcceleratorHours: []v1beta1.HourCap{{Window: day, PerUser: 10, OnExceeded: v1beta1.ExceededQueue}},
	})
	m.profile.Status.OverBudget = []v1beta1.OverBudget{
		{User: "alice", Window: day, UsedHours: 12, MaxHours: 10, OnExceeded: v1beta1.ExceededQueue},
	}
	w.settle()
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonQuotaExceeded))
	g.Expect(m.status().Message).To(Equal("alice has used 12 of 10 accelerator hours in 24h (profile ads). The merge joins the " +
		"line by itself when enough of them are older than 24h."))
	g.Expect(m.status().Run).To(BeNil())

	m.profile.Status.OverBudget = nil
	w.settle()
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonMerging))
	m.profile.Status.OverBudget = []v1beta1.OverBudget{{User: "alice", OnExceeded: v1beta1.ExceededDeny}}
	w.settle()
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonMerging), "a run that has begun goes on")
}

func TestBudgetsOfNoHoursAreForNoMerge(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := cappedMerge(w, v1beta1.ProfileCaps{AcceleratorHours: []v1beta1.HourCap{
		{Window: metav1.Duration{Duration: time.Hour}, OnExceeded: v1beta1.ExceededDeny},
	}})
	w.settle()
	g.Expect(m.status().Message).To(Equal("Profile ads gives users no accelerator hours in 1h. Remove the accelerators, or ask an " +
		"administrator for hours."))
}
