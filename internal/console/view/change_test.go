package view

import (
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

const gpu = "nvidia.com/gpu"

func devices(n int64) corev1.ResourceList {
	return corev1.ResourceList{gpu: *resource.NewQuantity(n, resource.DecimalSI)}
}

// changing asks about team ads.
func changing(more ...string) url.Values {
	query := url.Values{"team": {"ads"}, "device": {gpu}, "days": {"7"}}
	for i := 0; i < len(more); i += 2 {
		query.Set(more[i], more[i+1])
	}
	return query
}

func TestAnotherShareIsAskedAbout(t *testing.T) {
	g, cfg := NewWithT(t), config.DefaultConfiguration()
	c := NewChange(url.Values{"namespace": {"x"}}, nil, cfg)
	g.Expect(c.Team).To(BeEmpty(), "nothing is asked yet")
	g.Expect(c.Wrong).To(BeEmpty())

	is := &v1beta1.ResourceQuotaProfile{}
	is.Spec.Queue.Guarantee = devices(4)
	is.Spec.Caps = &v1beta1.ProfileCaps{PerUser: []v1beta1.ResourceCap{
		{Resource: gpu, Model: "A100", Max: resource.MustParse("1")}, {Resource: gpu, Max: resource.MustParse("2")},
	}}
	was := is.DeepCopy()
	c = NewChange(changing(), nil, cfg)
	g.Expect([]any{c.Team, c.Window}).To(Equal([]any{"ads", 7 * 24 * time.Hour}))
	g.Expect(c.ChangedProfile(is)).To(Equal(is), "empty fields leave it as it is")

	c = NewChange(changing("guarantee", "8", "capability", "16", "per-user", "3"), nil, cfg)
	changed := c.ChangedProfile(is)
	g.Expect(changed.Spec.Queue.Guarantee).To(Equal(devices(8)))
	g.Expect(changed.Spec.Queue.Capability).To(Equal(devices(16)))
	g.Expect(changed.Spec.Caps.PerUser[0].Max).To(Equal(resource.MustParse("1")), "that of one model stays")
	g.Expect(changed.Spec.Caps.PerUser[1].Max.Value()).To(BeEquivalentTo(3))
	g.Expect(is).To(Equal(was), "what was given is as it was")
	is.Spec.Caps = nil
	g.Expect(c.ChangedProfile(is).Spec.Caps.PerUser).To(HaveLen(1))
}

func TestWrongSharesAreRefused(t *testing.T) {
	cfg := config.DefaultConfiguration()
	for says, query := range map[string]url.Values{
		`Team: "Ads!" is not the name of a profile.`:                                 changing("team", "Ads!"),
		`Accelerator: "cpu" is not one of `:                                          changing("device", "cpu"),
		`Cap of accelerators of each user (empty: as it is): "1e999" is not a whole`: changing("per-user", "1e999"),
		`Days back: "32" is not a whole number from 1 to 31.`:                        changing("days", "32"),
		`is not a whole number from 0 to 1000000.`:                                   changing("guarantee", strings.Repeat("9", 1000)),
	} {
		g, c := NewWithT(t), NewChange(query, nil, cfg)
		g.Expect(c.Wrong).To(ConsistOf(ContainSubstring(says)))
		g.Expect(len(c.Wrong[0])).To(BeNumerically("<", 400))
		g.Expect(c.Team).To(BeEmpty())
	}
	for says, query := range map[string]url.Values{
		"The guarantee would be 9, more than capability, which is 8.": changing("guarantee", "9"),
		"The guarantee would be 6, more than deserved, which is 5.":   changing("guarantee", "6"),
		"The capability would be 4, less than deserved, which is 5.":  changing("capability", "4"),
		"The guarantee would be 3, more than capability, which is 2.": changing("guarantee", "3", "capability", "2"),
	} {
		g, is := NewWithT(t), &v1beta1.ResourceQuotaProfile{}
		is.Spec.Queue.Deserved, is.Spec.Queue.Capability = devices(5), devices(8)
		c := NewChange(query, nil, cfg)
		g.Expect(c.ChangedProfile(is)).To(BeNil())
		g.Expect(c.Wrong).To(ContainElement(says))
	}
}
