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
	setup:   func(env *environment) { env.Eventually(env.classes).Should(HaveLen(2), "both classes are created") },
	action: func(env *environment) {
		env.Delete(env.class(""))
		env.Delete(env.class("-surplus"))
	},
	sequel: func(env *environment) {
		env.crash()
		env.Eventually(env.classes).Should(HaveLen(2), "both classes are created anew")
	},
})

// ownTier has the operators of the environment know one tier, which is the environment's alone.
func ownTier(env *environment) {
	file := env.file("configuration.yaml")
	env.Expect(os.WriteFile(file, fmt.Appendf(nil, `
apiVersion: config.tideline.io/v1alpha1
kind: Configuration
tiers:
- {name: %s, priority: 2000, surplusPriority: -50, qos: Burstable, default: true}
`, env.Namespace), 0o600)).To(Succeed(), "the configuration is written")
	env.flags = append(env.flags, "--config="+file)
}

// class is a PriorityClass of the environment's own tier.
func (env *environment) class(suffix string) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "tideline-" + env.Namespace + suffix}}
}

// classes are the PriorityClasses of the environment's own tier.
func (env *environment) classes() ([]schedulingv1.PriorityClass, error) {
	list := &schedulingv1.PriorityClassList{}
	err := env.Client.List(env.t.Context(), list)
	var own []schedulingv1.PriorityClass
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].Name, env.class("").Name) {
			own = append(own, list.Items[i])
		}
	}
	return own, err
}

// describeClasses tells what the PriorityClasses of the environment's own tier say.
func (env *environment) describeClasses(b *strings.Builder) error {
	classes, err := env.classes()
	for i := range classes {
		c := &classes[i]
		fmt.Fprintf(b, "PriorityClass %s: %d, preempts %s: %s\n", c.Name, c.Value, *c.PreemptionPolicy, c.Description)
	}
	return err
}
