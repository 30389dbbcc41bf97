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

// mergeSpec is of a merge that the schema has completed, in which nothing is wrong.
func mergeSpec() *v1beta1.MergeJobSpec {
	return &v1beta1.MergeJobSpec{
		Pool: "tideline-merge", MaxReplicas: 4,
		Store: v1beta1.ModelStore{Type: v1beta1.StoreS3, S3: &v1beta1.S3Store{
			Bucket: "models", CredentialsRef: v1beta1.ObjectRef{Name: "model-store"},
		}},
	}
}

func TestDecideMerge(t *testing.T) {
	const (
		noServer = `that the operator's configuration allows (merges.endpoints); it allows `
		add      = `: use one of these, or ask an administrator to add it`
		noFolder = `is outside the folder that the operator's configuration allows for stores of type File (merges.localStores, ` +
			`--allow-local-stores): `
	)
	folder := func(bucket string) v1beta1.ModelStore {
		return v1beta1.ModelStore{Type: v1beta1.StoreFile, File: &v1beta1.FileStore{Path: bucket}}
	}
	for name, c := range map[string]struct {
		edit func(*v1beta1.MergeJobSpec, *config.Merges)
		says string // nothing for what is accepted
	}{
		"nothing wrong": {edit: func(*v1beta1.MergeJobSpec, *config.Merges) {}},
		"an unknown tier": {
			func(s *v1beta1.MergeJobSpec, _ *config.Merges) { s.Tier = "platinum" },
			`spec.tier: Invalid value: "platinum": is not a tier of the operator's configuration, which has exploratory, ` +
				`small-traffic, main-traffic: use one of these`,
		},
		"more pods": {
			func(s *v1beta1.MergeJobSpec, _ *config.Merges) { s.MaxReplicas = 65 },
			`spec.maxReplicas: Invalid value: 65: is more than the 64 pods that the operator's configuration allows for a merge ` +
				`(limits.maxWorkersPerJob): use fewer`,
		},
		"another pool": {
			func(s *v1beta1.MergeJobSpec, m *config.Merges) {
				s.Pool, m.Pools = "default", []string{"day", "night"}
			},
			`spec.pool: Invalid value: "default": is not a pool of the operator's configuration (merges.pools), which has day, ` +
				`night: use one of these`,
		},
		"a pool that is allowed": {edit: func(s *v1beta1.MergeJobSpec, m *config.Merges) {
			s.Pool, m.Pools = "night", []string{"night"}
		}},
		"a server that is listed": {edit: func(s *v1beta1.MergeJobSpec, m *config.Merges) {
			s.Store.S3.Endpoint, m.Endpoints = "https://s3.example/", []string{"https://s3.example"}
		}},
		"a server that is not listed": {
			func(s *v1beta1.MergeJobSpec, m *config.Merges) {
				s.Store.S3.Endpoint, m.Endpoints = "http://169.254.169.254", []string{"aws", "https://s3.example"}
			},
			`spec.store.s3.endpoint: Invalid value: "http://169.254.169.254": is not a server ` + noServer +
				`aws, https://s3.example` + add,
		},
		"AWS where it is not listed": {
			func(_ *v1beta1.MergeJobSpec, m *config.Merges) { m.Endpoints = nil },
			`spec.store.s3.endpoint: Invalid value: "": an empty endpoint means AWS, which is not a server ` + noServer + `none` + add,
		},
		"a folder that is allowed": {edit: func(s *v1beta1.MergeJobSpec, m *config.Merges) {
			s.Store, m.LocalStores = folder("/stores/ctr"), "/stores"
		}},
		"a folder elsewhere": {
			func(s *v1beta1.MergeJobSpec, m *config.Merges) {
				s.Store, m.LocalStores = folder("/stores/../etc"), "/stores"
			},
			`spec.store.file.path: Invalid value: "/stores/../etc": ` + noFolder + `use a folder in /stores`,
		},
		"a folder where none is allowed": {
			func(s *v1beta1.MergeJobSpec, _ *config.Merges) { s.Store = folder("/stores/ctr") },
			`spec.store.file.path: Invalid value: "/stores/ctr": ` + noFolder + `it allows none, so use type S3`,
		},
		"a cron line": {edit: func(s *v1beta1.MergeJobSpec, _ *config.Merges) {
			s.Schedule = &v1beta1.MergeSchedule{Cron: "0 3 * * *", TimeZone: "Europe/Berlin"}
		}},
		"an interval": {edit: func(s *v1beta1.MergeJobSpec, _ *config.Merges) { s.Schedule = &v1beta1.MergeSchedule{} }},
		"a cron line that never comes true": {
			func(s *v1beta1.MergeJobSpec, _ *config.Merges) {
				s.Schedule = &v1beta1.MergeSchedule{Cron: "0 0 30 2 *"}
			},
			`spec.schedule: Invalid value: cron line "0 0 30 2 *" never comes true, because no month that it names has such a day: ` +
				`write minute, hour, day of the month, month and day of the week, as in 30 2 * * 1-5, or @daily and the like`,
		},
		"an unknown time zone": {
			func(s *v1beta1.MergeJobSpec, _ *config.Merges) {
				s.Schedule = &v1beta1.MergeSchedule{Cron: "@daily", TimeZone: "Mars/Base"}
			},
			`spec.schedule: Invalid value: time zone "Mars/Base" is not known: name one of the IANA database, as in Europe/Berlin`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cfg := config.DefaultConfiguration()
			cfg.Limits.MaxWorkersPerJob = 64
			spec := mergeSpec()
			c.edit(spec, &cfg.Merges)
			d := DecideMerge(spec, Creation{User: "alice"}, Rules{Config: cfg})
			if c.says == "" {
				g.Expect(d.Refused).To(BeEmpty())
				return
			}
			g.Expect(d.Refused.ToAggregate()).To(MatchError(c.says))
		})
	}
}

func TestWhatAMergeClaims(t *testing.T) {
	g := NewWithT(t)
	by := Creation{User: "alice", Job: types.NamespacedName{Namespace: "ads", Name: "ctr"}}
	spec := mergeSpec()
	spec.Owner = "alice"
	secret := authorizationv1.ResourceAttributes{
		Verb: "get", Version: "v1", Resource: "secrets", Namespace: "ads", Name: "model-store",
	}
	claims := DecideMerge(spec, by, Rules{Config: config.DefaultConfiguration()}).Claims
	g.Expect(claims).To(HaveLen(1))
	g.Expect(claims[0].Rights).To(Equal([]authorizationv1.ResourceAttributes{secret}))

	spec.Owner, spec.Template.Spec.ServiceAccountName = "bob", "merger"
	claims = DecideMerge(spec, by, Rules{Config: config.DefaultConfiguration()}).Claims
	g.Expect(claims).To(HaveLen(3))
	g.Expect(claims[0].Rights).To(Equal([]authorizationv1.ResourceAttributes{{
		Verb: "assign-owner", Group: "tideline.io", Version: "v1beta1", Resource: "mergejobs", Namespace: "ads", Name: "ctr",
	}}))
	g.Expect(claims[1].Rights).To(Equal([]authorizationv1.ResourceAttributes{
		{Verb: "create", Version: "v1", Resource: "pods", Namespace: "ads"},
		{Verb: "use", Version: "v1", Resource: "serviceaccounts", Namespace: "ads", Name: "merger"},
	}))

	local := mergeSpec()
	local.Store = v1beta1.ModelStore{Type: v1beta1.StoreFile, File: &v1beta1.FileStore{Path: "/stores/ctr"}}
	g.Expect(DecideMerge(local, by, Rules{Config: config.DefaultConfiguration()}).Claims).To(BeEmpty(), "a folder has no Secret")
}

func TestMergesKeepCapsAndBudgets(t *testing.T) {
	gpus := func(n string) corev1.ResourceList {
		return corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(n)}
	}
	for name, c := range map[string]struct {
		pods int32
		edit func(*v1beta1.ResourceQuotaProfile, *v1beta1.MergeJobSpec)
		says string
	}{
		"as many as a job may have": {1, nil, ""},
		"more than a job may have": {2, nil, "spec.minReplicas: Invalid value: 2: The job asks for at least 16 nvidia.com/gpu, and " +
			"profile ads lets a job hold at most 8 nvidia.com/gpu: lower minReplicas, or ask an administrator to raise the limit"},
		"more than a user may have of a model": {1, func(p *v1beta1.ResourceQuotaProfile, s *v1beta1.MergeJobSpec) {
			p.Spec.Caps.PerUser = []v1beta1.ResourceCap{{Resource: "nvidia.com/gpu", Model: "A100", Max: resource.MustParse("4")}}
			s.Template.Spec.NodeSelector = map[string]string{"nvidia.com/gpu.product": "A100"}
		}, "spec.minReplicas: Invalid value: 1: The job asks for at least 8 nvidia.com/gpu (A100), and profile ads lets a user hold " +
			"at most 4 nvidia.com/gpu (A100): lower minReplicas, or ask an administrator to raise the limit"},
		"more than the profile's own Queue may have, in which no merge is": {1,
			func(p *v1beta1.ResourceQuotaProfile, _ *v1beta1.MergeJobSpec) { p.Spec.Queue.Capability = gpus("2") }, ""},
		"of a user without budget": {1, func(p *v1beta1.ResourceQuotaProfile, _ *v1beta1.MergeJobSpec) {
			p.Status.OverBudget = []v1beta1.OverBudget{{
				User: "alice", UsedHours: 12, MaxHours: 10, Window: metav1.Duration{Duration: time.Hour}, OnExceeded: v1beta1.ExceededDeny,
			}}
		}, "spec.owner: Forbidden: alice has used 12 of 10 accelerator hours in 1h (profile ads): wait until enough of them are " +
			"older than 1h, or ask an administrator for more"},
		"of a user who may wait": {1, func(p *v1beta1.ResourceQuotaProfile, _ *v1beta1.MergeJobSpec) {
			p.Status.OverBudget = []v1beta1.OverBudget{{User: "alice", OnExceeded: v1beta1.ExceededQueue}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			profile := &v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: "ads"}}
			profile.Spec.Caps = &v1beta1.ProfileCaps{
				PerJob: []v1beta1.ResourceCap{{Resource: "nvidia.com/gpu", Max: resource.MustParse("8")}},
				AcceleratorHours: []v1beta1.HourCap{{
					Window: metav1.Duration{Duration: time.Hour}, PerUser: 10, OnExceeded: v1beta1.ExceededDeny,
				}},
			}
			spec := mergeSpec()
			spec.Owner, spec.MinReplicas = "alice", c.pods
			spec.Template.Spec.Containers = []corev1.Container{{Name: "merge", Resources: corev1.ResourceRequirements{Limits: gpus("8")}}}
			if c.edit != nil {
				c.edit(profile, spec)
			}
			cfg := config.DefaultConfiguration()
			cfg.Merges.Endpoints = []string{"aws"}
			d := DecideMerge(spec, Creation{User: "alice"}, Rules{Config: cfg, Profile: profile})
			if c.says == "" {
				g.Expect(d.Refused).To(BeEmpty())
				return
			}
			g.Expect(d.Refused.ToAggregate()).To(MatchError(c.says))
		})
	}
}
