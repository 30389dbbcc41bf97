package training

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// withClicks is a profile whose data set clicks has one version, in a claim of that name.
func withClicks(version, claim string) *v1beta1.ResourceQuotaProfile {
	return &v1beta1.ResourceQuotaProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "ads"},
		Spec: v1beta1.ResourceQuotaProfileSpec{DataSets: []v1beta1.ProfileDataSet{
			{Name: "clicks", Versions: []v1beta1.DataVersion{{Version: version, Claim: claim}}},
		}},
		Status: v1beta1.ResourceQuotaProfileStatus{Queue: "ads"},
	}
}

// reads has the job name version 1 of clicks.
func (w *simulator) reads(profile *v1beta1.ResourceQuotaProfile) *simulator {
	w.o.Profile = profile
	w.o.Job.Spec.DataSets = []v1beta1.JobDataSet{{Name: "clicks", Version: "1"}}
	return w
}

// claimOf is the claim that worker i mounts.
func claimOf(w *simulator, i int32) string {
	job := w.o.Job.DeepCopy()
	job.Status = *w.status()
	pod := trainingpod.Blueprint{Job: job, Attempt: job.Status.Attempt, Tier: w.o.Config.Tiers[0]}.NewPod(i)
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			return v.PersistentVolumeClaim.ClaimName
		}
	}
	return ""
}

func TestDataThatHoldsAJob(t *testing.T) {
	for name, c := range map[string]struct {
		profile *v1beta1.ResourceQuotaProfile
		lacking []string
		reason  string
		message string
	}{
		"no such version": {withClicks("2", "clicks"), nil, v1beta1.ReasonDataSetNotFound,
			"spec.dataSets[0].version: data set clicks of profile ads has no version 1; it has 2. Suspend the job, change it, and " +
				"resume the job, or ask for it to be added to the profile; the job then continues by itself."},
		"no such data set": {&v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: "ads"}}, nil,
			v1beta1.ReasonDataSetNotFound,
			"spec.dataSets[0].name: profile ads has no data set clicks; it has none. Suspend the job, change it, and resume the job, or " +
				"ask for it to be added to the profile; the job then continues by itself."},
		"no profile": {nil, nil, v1beta1.ReasonDataSetNotFound,
			"spec.dataSets[0].name: the namespace belongs to no ResourceQuotaProfile, and data sets are those of profiles. Suspend the " +
				"job, change it, and resume the job, or ask for the namespace to be added to a profile; the job then continues by itself."},
		"no claim": {withClicks("1", "clicks"), []string{"clicks"}, v1beta1.ReasonDataClaimNotFound,
			"Version 1 of data set clicks is in PersistentVolumeClaim clicks, which namespace ads does not have or is deleting. Create " +
				"it; the job then continues by itself."},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 2, 2).reads(c.profile)
			w.o.LackingClaims = c.lacking
			w.settle()
			g.Expect(w.status().Reason).To(Equal(c.reason))
			g.Expect(w.status().Message).To(Equal(c.message))
			g.Expect(condition(w, v1beta1.ConditionStalled)).To(Equal("absent"), "it comes without a change of the job")
			g.Expect(w.changes).To(BeZero(), "nothing is created before")
			w.reads(withClicks("1", "clicks")).o.LackingClaims = nil
			g.Expect(w.trains().status().Reason).To(Equal(v1beta1.ReasonTraining))
			g.Expect(claimOf(w, 0)).To(Equal("clicks"))
		})
	}
}

func TestAJobKeepsTheDataThatItBeganWith(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).reads(withClicks("1", "clicks")).trains()
	g.Expect(w.status().Attempt.DataSets).To(Equal([]v1beta1.DataPlace{{Name: "clicks", Version: "1", Claim: "clicks"}}))
	first := w.status().Attempt.Number

	w.o.Profile = nil
	w.o.Job.Spec.Suspend = true
	w.settle().o.Job.Spec.Suspend = false
	w.trains()
	g.Expect(w.status().Attempt.Number).To(Equal(first+1), "without its profile it goes on all the same")
	g.Expect(claimOf(w, 1)).To(Equal("clicks"))

	w.o.Profile = withClicks("1", "others")
	w.o.Job.Spec.Suspend = true
	w.settle().o.Job.Spec.Suspend = false
	g.Expect(claimOf(w.trains(), 1)).To(Equal("clicks"), "and what is called version 1 later is not what it trained on")
}

func TestDataThatIsMissingAtARestartTakesNothingAway(t *testing.T) {
	g := NewWithT(t)
	profile := withClicks("1", "clicks")
	w := newSimulator(t, 2, 2).reads(profile).trains()
	had := w.status().Attempt.DataSets
	// What the API server refuses unless the job is stopped, and stops no attempt if it comes through.
	w.o.Job.Spec.DataSets = append(w.o.Job.Spec.DataSets, v1beta1.JobDataSet{Name: "words", Version: "1"})
	w.settle()
	g.Expect(w.status().Attempt.DataSets).To(Equal(had))
	g.Expect(nextPlaces(&jobstate.State{Observed: w.o})).To(Equal(had), "nothing is forgotten")
	profile.Spec.DataSets = append(profile.Spec.DataSets, v1beta1.ProfileDataSet{
		Name: "words", Versions: []v1beta1.DataVersion{{Version: "1", Claim: "words"}},
	})
	g.Expect(nextPlaces(&jobstate.State{Observed: w.o})).To(HaveLen(2))
}

func TestAJobThatIsNotPlacedTakesOtherDataAtOnce(t *testing.T) {
	g := NewWithT(t)
	profile := withClicks("1", "clicks")
	profile.Spec.DataSets[0].Versions = append(profile.Spec.DataSets[0].Versions, v1beta1.DataVersion{Version: "2", Claim: "others"})
	w := newSimulator(t, 2, 2).reads(profile).settle()
	g.Expect(claimOf(w, 0)).To(Equal("clicks"))
	w.o.Job.Spec.DataSets[0].Version = "2"
	w.settle()
	g.Expect(claimOf(w, 0)).To(Equal("others"), "no worker may begin with what the job does not name")
	g.Expect(claimOf(w.trains(), 1)).To(Equal("others"))
}

func TestWorkersMountDataReadOnly(t *testing.T) {
	g := NewWithT(t)
	profile := withClicks("1", "clicks")
	profile.Spec.DataSets[0].Versions[0].Folder = "raw"
	profile.Spec.DataSets = append(profile.Spec.DataSets, v1beta1.ProfileDataSet{
		Name: "image-net", Versions: []v1beta1.DataVersion{{Version: "1k", Prefix: "s3://ads/image-net/$(KEY)"}},
	})
	w := newSimulator(t, 2, 2).reads(profile)
	w.o.Job.Spec.DataSets[0].MountPath = "/in/clicks"
	w.o.Job.Spec.DataSets = append(w.o.Job.Spec.DataSets, v1beta1.JobDataSet{Name: "image-net", Version: "1k"})
	w.trains()
	pod := trainingpod.Blueprint{Job: w.o.Job, Attempt: w.status().Attempt, Tier: w.o.Config.Tiers[0]}.NewPod(1)
	g.Expect(pod.Spec.Volumes).To(ContainElement(corev1.Volume{Name: "tideline-data-clicks", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "clicks", ReadOnly: true},
	}}))
	trainer := pod.Spec.Containers[0]
	g.Expect(trainer.VolumeMounts).To(ContainElement(corev1.VolumeMount{
		Name: "tideline-data-clicks", MountPath: "/in/clicks", SubPath: "raw", ReadOnly: true,
	}))
	g.Expect(trainer.Env).To(ContainElements(
		corev1.EnvVar{Name: "TIDELINE_DATA_CLICKS", Value: "/in/clicks"},
		corev1.EnvVar{Name: "TIDELINE_DATA_IMAGE_NET", Value: "s3://ads/image-net/$$(KEY)"},
	))
	g.Expect(pod.Spec.Volumes).NotTo(ContainElement(HaveField("Name", "tideline-data-image-net")), "nothing of a store is mounted")
}
