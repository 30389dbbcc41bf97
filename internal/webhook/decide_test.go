package webhook

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

func TestDecide(t *testing.T) {
	const account = "system:serviceaccount:ci:deployer"
	for name, c := range map[string]struct {
		user, owner, tier string
		workers           int32
		want              bool // the owner is claimed
		refused           string
	}{
		"oneself":                    {user: "alice@example.com", owner: "alice@example.com"},
		"a service account, oneself": {user: account, owner: account},
		"somebody else":              {user: account, owner: "alice@example.com", want: true},
		"a name in other letters":    {user: "alice", owner: "Alice", want: true},
		"no owner":                   {user: "alice"},
		"a known tier":               {user: "alice", owner: "alice", tier: "main-traffic"},
		"an unknown tier": {user: "alice", owner: "alice", tier: "platinum", refused: `spec.tier: Invalid value: "platinum": ` +
			`is not a tier of the operator's configuration, which has exploratory, small-traffic, main-traffic: use one of these`},
		"as many workers as allowed": {user: "alice", owner: "alice", workers: 64},
		"more workers": {user: "alice", owner: "alice", workers: 65, refused: `spec.maxReplicas: Invalid value: 65: is more than the ` +
			`64 workers that the operator's configuration allows for a job (limits.maxWorkersPerJob): use fewer`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cfg := config.DefaultConfiguration()
			cfg.Limits.MaxWorkersPerJob = 64
			job := &v1beta1.ElasticTrainingJob{}
			job.Spec = v1beta1.ElasticTrainingJobSpec{Owner: c.owner, Tier: c.tier, MaxReplicas: c.workers}
			d := DecideCreation(job, Creation{User: c.user}, Rules{Config: cfg})
			if c.want {
				g.Expect(d.Claims).To(ConsistOf(HaveField("Refusal.Field", "spec.owner")))
			} else {
				g.Expect(d.Claims).To(BeEmpty())
			}
			if c.refused == "" {
				g.Expect(d.Refused).To(BeEmpty())
			} else {
				g.Expect(d.Refused.ToAggregate()).To(MatchError(c.refused))
			}
		})
	}
}

func TestServiceAccountIsClaimed(t *testing.T) {
	for name, c := range map[string]struct {
		account, older string
		claimed, field string // nothing for an account that takes no right
	}{
		"none":                   {},
		"default":                {account: "default"},
		"default, and another":   {account: "default", older: "trainer"},
		"another":                {account: "trainer", claimed: "trainer", field: "serviceAccountName"},
		"another by the old way": {older: "trainer", claimed: "trainer", field: "serviceAccount"},
		"two, and the new one counts": {
			account: "trainer", older: "default", claimed: "trainer", field: "serviceAccountName",
		},
		"the name in other letters": {account: "Default", claimed: "Default", field: "serviceAccountName"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			job := &v1beta1.ElasticTrainingJob{}
			job.Spec.Template.Spec.ServiceAccountName = c.account
			job.Spec.Template.Spec.DeprecatedServiceAccount = c.older
			by := Creation{User: "alice", Job: types.NamespacedName{Namespace: "ads", Name: "ctr"}}
			d := DecideCreation(job, by, Rules{Config: config.DefaultConfiguration()})
			g.Expect(d.Refused).To(BeEmpty())
			if c.claimed == "" {
				g.Expect(d.Claims).To(BeEmpty())
				return
			}
			g.Expect(d.Claims).To(HaveLen(1))
			g.Expect(d.Claims[0].Rights).To(Equal([]authorizationv1.ResourceAttributes{
				{Verb: "create", Version: "v1", Resource: "pods", Namespace: "ads"},
				{Verb: "use", Version: "v1", Resource: "serviceaccounts", Namespace: "ads", Name: c.claimed},
			}))
			g.Expect(d.Claims[0].Refusal.Field).To(Equal("spec.template.spec." + c.field))
		})
	}
}

func TestDecideHoldsAGangToTheCapsOfItsProfile(t *testing.T) {
	caps := func(perUser, perJob, model string) *v1beta1.ResourceQuotaProfile {
		of := func(most string) []v1beta1.ResourceCap {
			return []v1beta1.ResourceCap{{Resource: "nvidia.com/gpu", Model: model, Max: resource.MustParse(most)}}
		}
		return &v1beta1.ResourceQuotaProfile{
			ObjectMeta: metav1.ObjectMeta{Name: "ads"},
			Spec:       v1beta1.ResourceQuotaProfileSpec{Caps: &v1beta1.ProfileCaps{PerUser: of(perUser), PerJob: of(perJob)}},
		}
	}
	const asks = `spec.minReplicas: Invalid value: 4: The job asks for at least 8 nvidia.com/gpu`
	for name, c := range map[string]struct {
		profile *v1beta1.ResourceQuotaProfile
		models  []string
		refused string
	}{
		"as much as may be": {profile: caps("8", "8", "")},
		"more than a job may have": {profile: caps("8", "7", ""), refused: asks + ", and profile ads lets a job hold at most 7 " +
			"nvidia.com/gpu: lower minReplicas, or ask an administrator to raise the limit"},
		"more than a user may have": {profile: caps("7", "8", ""), refused: asks + ", and profile ads lets a user hold at most " +
			"7 nvidia.com/gpu: lower minReplicas, or ask an administrator to raise the limit"},
		"more than a part of a device": {profile: caps("8", "1500m", ""), refused: asks + ", and profile ads lets a job hold " +
			"at most 1.5 nvidia.com/gpu: lower minReplicas, or ask an administrator to raise the limit"},
		"of a model that it need not have": {profile: caps("7", "7", "A100"), models: []string{"A100", "H100"}},
		"of a model that it asks for": {
			profile: caps("7", "8", "A100"), models: []string{"A100"}, refused: asks + " (A100), and profile ads lets a user hold " +
				"at most 7 nvidia.com/gpu (A100): lower minReplicas, or ask an administrator to raise the limit",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			job := &v1beta1.ElasticTrainingJob{}
			job.Spec.MinReplicas, job.Spec.MaxReplicas = 4, 16
			job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "trainer", Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")},
			}}}
			if c.models != nil {
				job.Spec.Accelerator = &v1beta1.Accelerator{Models: c.models}
			}
			d := DecideCreation(job, Creation{}, Rules{Config: config.DefaultConfiguration(), Profile: c.profile})
			if c.refused == "" {
				g.Expect(d.Refused).To(BeEmpty())
			} else {
				g.Expect(d.Refused.ToAggregate()).To(MatchError(c.refused))
			}
		})
	}
}

func TestDecideHoldsPartsOfDevicesToCaps(t *testing.T) {
	g := NewWithT(t)
	cfg := config.DefaultConfiguration()
	cfg.Sharing = config.Sharing{{Resource: "nvidia.com/gpu.shared", CountsAs: "nvidia.com/gpu", Whole: 4}}
	job, profile := &v1beta1.ElasticTrainingJob{}, &v1beta1.ResourceQuotaProfile{}
	job.Spec.MinReplicas, job.Spec.MaxReplicas = 4, 16
	job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "trainer", Resources: corev1.ResourceRequirements{
		Limits: corev1.ResourceList{"nvidia.com/gpu.shared": resource.MustParse("1")},
	}}}
	profile.Name = "ads"
	one := v1beta1.ResourceCap{Resource: "nvidia.com/gpu", Max: resource.MustParse("1")}
	profile.Spec.Caps = &v1beta1.ProfileCaps{PerJob: []v1beta1.ResourceCap{one}}
	rules := Rules{Config: cfg, Profile: profile}
	g.Expect(DecideCreation(job, Creation{}, rules).Refused).To(BeEmpty())
	job.Spec.MinReplicas = 5
	g.Expect(DecideCreation(job, Creation{}, rules).Refused.ToAggregate()).To(MatchError(ContainSubstring(
		"The job asks for at least 1.25 nvidia.com/gpu, and profile ads lets a job hold at most 1 nvidia.com/gpu")))
	job.Spec.Owner = "alice"
	profile.Spec.Caps = nil
	profile.Status.OverBudget = []v1beta1.OverBudget{{User: "alice", OnExceeded: v1beta1.ExceededDeny}}
	g.Expect(DecideCreation(job, Creation{}, rules).Refused).To(HaveLen(1), "it would use parts of accelerators")
}

func TestDecideRefusesAcceleratorsWithoutHours(t *testing.T) {
	for name, c := range map[string]struct {
		hours   int32
		then    v1beta1.OnExceeded
		gpus    string
		refused bool
	}{
		"no hours":                        {0, v1beta1.ExceededDeny, "1", true},
		"no hours, for one without a GPU": {0, v1beta1.ExceededDeny, "0", false},
		"no hours, and one may wait":      {0, v1beta1.ExceededQueue, "1", false},
		"no hours, and it is noted":       {0, v1beta1.ExceededNotify, "1", false},
		"some":                            {1, v1beta1.ExceededDeny, "1", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			profile, job := &v1beta1.ResourceQuotaProfile{}, &v1beta1.ElasticTrainingJob{}
			profile.Name = "ads"
			profile.Spec.Caps = &v1beta1.ProfileCaps{AcceleratorHours: []v1beta1.HourCap{{
				Window: metav1.Duration{Duration: 168 * time.Hour}, PerUser: c.hours, OnExceeded: c.then,
			}}}
			job.Spec.Owner, job.Spec.MinReplicas, job.Spec.MaxReplicas = "alice", 1, 1
			job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "trainer", Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(c.gpus)},
			}}}
			refused := DecideCreation(job, Creation{User: "alice"}, Rules{Config: config.DefaultConfiguration(),
				Profile: profile}).Refused.ToAggregate()
			if !c.refused {
				g.Expect(refused).NotTo(HaveOccurred())
				return
			}
			g.Expect(refused).To(MatchError("spec.owner: Forbidden: profile ads gives users no accelerator hours in 168h: remove " +
				"the accelerators, or ask an administrator for hours"))
		})
	}
}

func TestDecideRefusesWhoHasUsedUpABudget(t *testing.T) {
	for name, c := range map[string]struct {
		over    v1beta1.OverBudget
		gpus    string
		refused string
	}{
		"who has": {v1beta1.OverBudget{User: "alice", OnExceeded: v1beta1.ExceededDeny}, "1", "spec.owner: Forbidden: alice " +
			"has used 501 of 500 accelerator hours in 168h (profile ads): wait until enough of them are older than 168h, or ask an " +
			"administrator for more"},
		"for a job without devices":       {v1beta1.OverBudget{User: "alice", OnExceeded: v1beta1.ExceededDeny}, "", ""},
		"for a job that asks for none":    {v1beta1.OverBudget{User: "alice", OnExceeded: v1beta1.ExceededDeny}, "0", ""},
		"who has, and may wait":           {v1beta1.OverBudget{User: "alice", OnExceeded: v1beta1.ExceededQueue}, "1", ""},
		"for what somebody else has used": {v1beta1.OverBudget{User: "bob", OnExceeded: v1beta1.ExceededDeny}, "1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c.over.Window, c.over.UsedHours, c.over.MaxHours = metav1.Duration{Duration: 168 * time.Hour}, 501, 500
			profile := &v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: "ads"}}
			profile.Status.OverBudget = []v1beta1.OverBudget{c.over}
			job := &v1beta1.ElasticTrainingJob{}
			job.Spec.Owner, job.Spec.MinReplicas, job.Spec.MaxReplicas = "alice", 1, 1
			job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "trainer"}}
			if c.gpus != "" {
				job.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(c.gpus)}
			}
			d := DecideCreation(job, Creation{User: "alice"}, Rules{Config: config.DefaultConfiguration(), Profile: profile})
			if c.refused == "" {
				g.Expect(d.Refused).To(BeEmpty())
			} else {
				g.Expect(d.Refused.ToAggregate()).To(MatchError(c.refused))
			}
		})
	}
}
