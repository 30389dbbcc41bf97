package webhook

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

func TestDataOfJobsIsThatOfTheProfile(t *testing.T) {
	profile := &v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: "ads"}}
	profile.Spec.DataSets = []v1beta1.ProfileDataSet{
		{Name: "clicks", Versions: []v1beta1.DataVersion{{Version: "1", Claim: "clicks"}}},
		{Name: "words", Versions: []v1beta1.DataVersion{{Version: "1", Claim: "words"}}},
	}
	const instead = ": use one of these, or ask for it to be added to the profile"
	for name, c := range map[string]struct {
		profile *v1beta1.ResourceQuotaProfile
		asks    []v1beta1.JobDataSet
		refused string
	}{
		"a version that is there": {profile, []v1beta1.JobDataSet{{Name: "clicks", Version: "1"}}, ""},
		"another version": {profile, []v1beta1.JobDataSet{{Name: "clicks", Version: "1"}, {Name: "words", Version: "2"}},
			`spec.dataSets[1].version: Invalid value: "2": data set words of profile ads has no version 2; it has 1` + instead},
		"another name": {profile, []v1beta1.JobDataSet{{Name: "videos", Version: "1"}},
			`spec.dataSets[0].name: Invalid value: "videos": profile ads has no data set videos; it has clicks, words` + instead},
		"a path that is taken by the template": {profile, []v1beta1.JobDataSet{{Name: "clicks", Version: "1", MountPath: "/cache"}},
			`spec.dataSets[0].mountPath: Invalid value: "/cache": is, or has in it, /cache of spec.template.spec.containers[0].` +
				`volumeMounts, and data is read-only: set another mountPath`},
		"a path above one of the template": {profile, []v1beta1.JobDataSet{{Name: "clicks", Version: "1", MountPath: "/var"}},
			`spec.dataSets[0].mountPath: Invalid value: "/var": is, or has in it, /var/out of spec.template.spec.containers[0].` +
				`volumeMounts, and data is read-only: set another mountPath`},
		"a path below one of the template": {profile, []v1beta1.JobDataSet{{Name: "clicks", Version: "1", MountPath: "/cache/in"}}, ""},
		"a path that begins alike":         {profile, []v1beta1.JobDataSet{{Name: "clicks", Version: "1", MountPath: "/va"}}, ""},
		"a path that is taken by other data": {profile,
			[]v1beta1.JobDataSet{{Name: "clicks", Version: "1"}, {Name: "words", Version: "1", MountPath: "/data/clicks"}},
			`[spec.dataSets[0].mountPath: Invalid value: "/data/clicks": is, or has in it, /data/clicks of spec.dataSets[1], and data ` +
				`is read-only: set another mountPath, spec.dataSets[1].mountPath: Invalid value: "/data/clicks": is, or has in it, ` +
				`/data/clicks of spec.dataSets[0], and data is read-only: set another mountPath]`},
		"the volume of data": {profile, []v1beta1.JobDataSet{{Name: "words", Version: "1"}},
			`spec.template.spec.volumes[0].name: Invalid value: "tideline-data-words": is the name of the volume of data set words: ` +
				`choose another name`},
		"no profile": {nil, []v1beta1.JobDataSet{{Name: "clicks", Version: "1"}},
			`spec.dataSets[0].name: Invalid value: "clicks": the namespace belongs to no ResourceQuotaProfile, and data sets are those ` +
				`of profiles: mount the claim by spec.template, or ask for the namespace to be added to a profile`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			job := &v1beta1.ElasticTrainingJob{}
			job.Spec.DataSets = c.asks
			job.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "tideline-data-words"}}
			job.Spec.Template.Spec.Containers = []corev1.Container{{
				Name: "trainer", VolumeMounts: []corev1.VolumeMount{
					{Name: "cache", MountPath: "/cache/"}, {Name: "out", MountPath: "/var/out"},
				},
			}}
			rules := Rules{Config: config.DefaultConfiguration(), Profile: c.profile}
			if name != "the volume of data" {
				job.Spec.Template.Spec.Volumes = nil
			}
			refused := DecideCreation(job, Creation{User: "alice"}, rules).Refused
			if c.refused == "" {
				g.Expect(refused).To(BeEmpty())
				return
			}
			g.Expect(refused.ToAggregate()).To(MatchError(c.refused))
			g.Expect(DecideChange(job, job, Creation{User: "alice"}, rules).Refused).To(BeEmpty(),
				"what was so before is not refused again")
		})
	}
}

// What the operator goes on with is not refused because the profile has it no more.
func TestDataOfTheAttemptMayStay(t *testing.T) {
	g := NewWithT(t)
	profile := &v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: "ads"}}
	rules := Rules{Config: config.DefaultConfiguration(), Profile: profile}
	before := &v1beta1.ElasticTrainingJob{}
	before.Spec.DataSets = []v1beta1.JobDataSet{{Name: "clicks", Version: "1"}}
	before.Status.Attempt = &v1beta1.AttemptStatus{DataSets: []v1beta1.DataPlace{{Name: "clicks", Version: "1", Claim: "clicks"}}}
	after := before.DeepCopy()
	after.Spec.DataSets = []v1beta1.JobDataSet{
		{Name: "videos", Version: "1"}, {Name: "clicks", Version: "1"}, {Name: "clicks", Version: "2"},
	}
	refused := DecideChange(before, after, Creation{User: "alice"}, rules).Refused
	g.Expect(refused).To(HaveExactElements(HaveField("Field", "spec.dataSets[0].name"), HaveField("Field", "spec.dataSets[2].name")))
}
