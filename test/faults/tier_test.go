package faults

import (
	"fmt"
	"os"
	"strings"

	. "github.com/onsi/gomega"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tierStories are told as stories are.
var tierStories = []*story{completing}

// completing is about the operator's first writes, which it makes when it starts.
var completing = tell(story{
	name: "a tier gets its PriorityClasses when the operator starts", slug: "tier", gpus: 1, clusterWide: true,
	prepare: ownTier,
	prelude: func(s *site) { s.Eventually(s.classes).Should(HaveLen(2), "both classes are created") },
	strike: func(s *site) {
		s.Delete(s.class(""))
		s.Delete(s.class("-surplus"))
	},
	sequel: func(s *site) {
		s.crash()
		s.Eventually(s.classes).Should(HaveLen(2), "both classes are created anew")
	},
})

// ownTier has the operators of the site know one tier, which is the site's alone.
func ownTier(s *site) {
	file := s.file("configuration.yaml")
	s.Expect(os.WriteFile(file, fmt.Appendf(nil, `
apiVersion: config.tideline.io/v1alpha1
kind: Configuration
tiers:
- {name: %s, priority: 2000, surplusPriority: -50, qos: Burstable, default: true}
`, s.Namespace), 0o600)).To(Succeed(), "the configuration is written")
	s.flags = append(s.flags, "--config="+file)
}

// class is a PriorityClass of the site's own tier.
func (s *site) class(suffix string) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "tideline-" + s.Namespace + suffix}}
}

// classes are the PriorityClasses of the site's own tier.
func (s *site) classes() ([]schedulingv1.PriorityClass, error) {
	list := &schedulingv1.PriorityClassList{}
	err := s.Client.List(s.t.Context(), list)
	var own []schedulingv1.PriorityClass
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].Name, s.class("").Name) {
			own = append(own, list.Items[i])
		}
	}
	return own, err
}

// describeClasses tells what the PriorityClasses of the site's own tier say.
func (s *site) describeClasses(b *strings.Builder) error {
	classes, err := s.classes()
	for i := range classes {
		c := &classes[i]
		fmt.Fprintf(b, "PriorityClass %s: %d, preempts %s: %s\n", c.Name, c.Value, *c.PreemptionPolicy, c.Description)
	}
	return err
}
