package webhook

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/config"
)

func TestDecide(t *testing.T) {
	const account = "system:serviceaccount:ci:deployer"
	for name, c := range map[string]struct {
		user, owner, tier string
		workers           int32
		want              bool // NamesAnother
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
			d := Decide(&v1alpha1.ElasticTrainingJobSpec{Owner: c.owner, Tier: c.tier, MaxReplicas: c.workers}, c.user, cfg)
			g.Expect(d.NamesAnother).To(Equal(c.want))
			if c.refused == "" {
				g.Expect(d.Refused).To(BeEmpty())
			} else {
				g.Expect(d.Refused.ToAggregate()).To(MatchError(c.refused))
			}
		})
	}
}
