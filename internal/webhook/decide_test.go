package webhook

import (
	"testing"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/config"
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
		"nobody":                     {user: "alice"},
		"a known tier":               {user: "alice", owner: "alice", tier: "main-traffic"},
		"an unknown tier": {user: "alice", owner: "alice", tier: "platinum", refused: `spec.tier: Invalid value: "platinum": ` +
			`is not a tier of the operator's configuration, which knows exploratory, small-traffic, main-traffic: name one of these`},
		"as many workers as allowed": {user: "alice", owner: "alice", workers: 64},
		"more workers": {user: "alice", owner: "alice", workers: 65, refused: `spec.maxReplicas: Invalid value: 65: is more than the ` +
			`64 workers that the operator's configuration allows a job (limits.maxWorkersPerJob): ask for fewer`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cfg := config.Defaults()
			cfg.Limits.MaxWorkersPerJob = 64
			spec := &v1alpha1.ElasticTrainingJobSpec{Owner: c.owner, Tier: c.tier, MaxReplicas: c.workers}
			d := Decide(spec, Creation{User: c.user}, Rules{Config: cfg})
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
		"two, of which the new one counts": {
			account: "trainer", older: "default", claimed: "trainer", field: "serviceAccountName",
		},
		"the name in other letters": {account: "Default", claimed: "Default", field: "serviceAccountName"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec := &v1alpha1.ElasticTrainingJobSpec{}
			spec.Template.Spec.ServiceAccountName = c.account
			spec.Template.Spec.DeprecatedServiceAccount = c.older
			d := Decide(spec, Creation{"alice", types.NamespacedName{Namespace: "ads", Name: "ctr"}}, Rules{Config: config.Defaults()})
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
