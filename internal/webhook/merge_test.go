package webhook

import (
	"testing"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

// mergeSpec is of a merge that the schema has completed, in which nothing is wrong.
func mergeSpec() *v1alpha1.MergeJobSpec {
	return &v1alpha1.MergeJobSpec{
		Pool: "tideline-merge", MaxReplicas: 4,
		Store: v1alpha1.ModelStore{Type: v1alpha1.StoreS3, S3: &v1alpha1.S3Store{
			Bucket: "models", CredentialsRef: v1alpha1.ObjectRef{Name: "model-store"},
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
	folder := func(bucket string) v1alpha1.ModelStore {
		return v1alpha1.ModelStore{Type: v1alpha1.StoreFile, File: &v1alpha1.FileStore{Path: bucket}}
	}
	for name, c := range map[string]struct {
		edit func(*v1alpha1.MergeJobSpec, *config.Merges)
		says string // nothing for what is accepted
	}{
		"nothing wrong": {edit: func(*v1alpha1.MergeJobSpec, *config.Merges) {}},
		"an unknown tier": {
			func(s *v1alpha1.MergeJobSpec, _ *config.Merges) { s.Tier = "platinum" },
			`spec.tier: Invalid value: "platinum": is not a tier of the operator's configuration, which has exploratory, ` +
				`small-traffic, main-traffic: use one of these`,
		},
		"more pods": {
			func(s *v1alpha1.MergeJobSpec, _ *config.Merges) { s.MaxReplicas = 65 },
			`spec.maxReplicas: Invalid value: 65: is more than the 64 pods that the operator's configuration allows for a merge ` +
				`(limits.maxWorkersPerJob): use fewer`,
		},
		"another pool": {
			func(s *v1alpha1.MergeJobSpec, m *config.Merges) {
				s.Pool, m.Pools = "default", []string{"day", "night"}
			},
			`spec.pool: Invalid value: "default": is not a pool of the operator's configuration (merges.pools), which has day, ` +
				`night: use one of these`,
		},
		"a pool that is allowed": {edit: func(s *v1alpha1.MergeJobSpec, m *config.Merges) {
			s.Pool, m.Pools = "night", []string{"night"}
		}},
		"a server that is listed": {edit: func(s *v1alpha1.MergeJobSpec, m *config.Merges) {
			s.Store.S3.Endpoint, m.Endpoints = "https://s3.example/", []string{"https://s3.example"}
		}},
		"a server that is not listed": {
			func(s *v1alpha1.MergeJobSpec, m *config.Merges) {
				s.Store.S3.Endpoint, m.Endpoints = "http://169.254.169.254", []string{"aws", "https://s3.example"}
			},
			`spec.store.s3.endpoint: Invalid value: "http://169.254.169.254": is not a server ` + noServer +
				`aws, https://s3.example` + add,
		},
		"AWS where it is not listed": {
			func(_ *v1alpha1.MergeJobSpec, m *config.Merges) { m.Endpoints = nil },
			`spec.store.s3.endpoint: Invalid value: "": an empty endpoint means AWS, which is not a server ` + noServer + `none` + add,
		},
		"a folder that is allowed": {edit: func(s *v1alpha1.MergeJobSpec, m *config.Merges) {
			s.Store, m.LocalStores = folder("/stores/ctr"), "/stores"
		}},
		"a folder elsewhere": {
			func(s *v1alpha1.MergeJobSpec, m *config.Merges) {
				s.Store, m.LocalStores = folder("/stores/../etc"), "/stores"
			},
			`spec.store.file.path: Invalid value: "/stores/../etc": ` + noFolder + `use a folder in /stores`,
		},
		"a folder where none is allowed": {
			func(s *v1alpha1.MergeJobSpec, _ *config.Merges) { s.Store = folder("/stores/ctr") },
			`spec.store.file.path: Invalid value: "/stores/ctr": ` + noFolder + `it allows none, so use type S3`,
		},
		"a cron line": {edit: func(s *v1alpha1.MergeJobSpec, _ *config.Merges) {
			s.Schedule = &v1alpha1.MergeSchedule{Cron: "0 3 * * *", TimeZone: "Europe/Berlin"}
		}},
		"an interval": {edit: func(s *v1alpha1.MergeJobSpec, _ *config.Merges) { s.Schedule = &v1alpha1.MergeSchedule{} }},
		"a cron line that never comes true": {
			func(s *v1alpha1.MergeJobSpec, _ *config.Merges) {
				s.Schedule = &v1alpha1.MergeSchedule{Cron: "0 0 30 2 *"}
			},
			`spec.schedule: Invalid value: cron line "0 0 30 2 *" never comes true, because no month that it names has such a day: ` +
				`write minute, hour, day of the month, month and day of the week, as in 30 2 * * 1-5, or @daily and the like`,
		},
		"an unknown time zone": {
			func(s *v1alpha1.MergeJobSpec, _ *config.Merges) {
				s.Schedule = &v1alpha1.MergeSchedule{Cron: "@daily", TimeZone: "Mars/Base"}
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
		Verb: "assign-owner", Group: "tideline.io", Version: "v1alpha1", Resource: "mergejobs", Namespace: "ads", Name: "ctr",
	}}))
	g.Expect(claims[1].Rights).To(Equal([]authorizationv1.ResourceAttributes{
		{Verb: "create", Version: "v1", Resource: "pods", Namespace: "ads"},
		{Verb: "use", Version: "v1", Resource: "serviceaccounts", Namespace: "ads", Name: "merger"},
	}))

	local := mergeSpec()
	local.Store = v1alpha1.ModelStore{Type: v1alpha1.StoreFile, File: &v1alpha1.FileStore{Path: "/stores/ctr"}}
	g.Expect(DecideMerge(local, by, Rules{Config: config.DefaultConfiguration()}).Claims).To(BeEmpty(), "a folder has no Secret")
}
