package doctor

import (
	"strings"
	"testing"

	"github.com/tideline-io/tideline/internal/platform/priorityclass"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tideline-io/tideline/internal/platform/config"
)

const goldClasses = `---
apiVersion: scheduling.k8s.io/v1
description: Core workers of jobs of tier gold.
kind: PriorityClass
metadata:
  name: tideline-gold
value: 200000
---
apiVersion: scheduling.k8s.io/v1
description: Surplus workers of jobs of tier gold. They give way to any gang that
  waits.
kind: PriorityClass
metadata:
  name: tideline-gold-surplus
preemptionPolicy: Never
value: -50
`

// Each tier that is not as configured is said with the YAML that mends it, by the doctor and when the operator starts.
func TestTiersWithoutTheirClasses(t *testing.T) {
	gold := config.Tier{Name: "gold", Priority: 200000, SurplusPriority: -50}
	core := schedulingv1.PriorityClass{Value: 200000}
	core.Name = gold.ClassName()
	surplus := schedulingv1.PriorityClass{Value: -60}
	surplus.Name = gold.SurplusClassName()
	for name, c := range map[string]struct {
		installed []schedulingv1.PriorityClass
		what, do  string
	}{
		"both missing": {nil,
			"PriorityClasses of tier gold are not as configured: tideline-gold is missing; tideline-gold-surplus is missing.",
			"Start the operator with this configuration: it creates what is missing; its log says why it cannot. Or apply what follows " +
				"(kubectl apply -f FILE):",
		},
		"another value": {[]schedulingv1.PriorityClass{core, surplus},
			"PriorityClasses of tier gold are not as configured: tideline-gold-surplus is -60 PreemptLowerPriority and must be -50 Never.",
			"Name the tier otherwise, or delete tideline-gold-surplus, because a class cannot change, which leaves running pods as they " +
				"are, and apply what follows (kubectl apply -f FILE):",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			classes := config.DefaultTiers().PriorityClasses()
			builder := fake.NewClientBuilder().WithScheme(scheme.Scheme)
			for i := range classes {
				builder.WithObjects(&classes[i])
			}
			for i := range c.installed {
				builder.WithObjects(&c.installed[i])
			}
			tiers := append(config.DefaultTiers(), gold)
			want := Finding{What: c.what, Do: c.do, Manifest: goldClasses}
			have, err := priorityclass.Read(t.Context(), builder.Build())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(priorityclass.FindProblems(have, tiers)).To(Equal([]priorityclass.Problem{{What: c.what, Do: c.do,
				Manifest: goldClasses}}))

			f := healthy()
			for i := range c.installed {
				f.Classes[c.installed[i].Name] = priorityclass.Class{Value: c.installed[i].Value, Policy: corev1.PreemptLowerPriority}
			}
			cfg := config.DefaultConfiguration()
			cfg.Tiers = tiers
			findings := ExamineFacts(f, cfg)
			g.Expect(findings).To(ContainElement(want), "and nothing of the other tiers")
			var said strings.Builder
			wrong, err := PrintFindings(&said, findings)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(wrong).To(Equal(1))
			g.Expect(said.String()).To(ContainSubstring("WRONG " + c.what + "\n      -> " + c.do + "\n" + goldClasses))
		})
	}
}

// The class that reservations need is not of a tier, and its name is fixed.
func TestReservationsWithoutTheirClass(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(map[string]priorityclass.Class)
		what, do string
	}{
		"missing": {
			func(have map[string]priorityclass.Class) { delete(have, "tideline-handover") },
			"PriorityClasses of reservations are not as configured: tideline-handover is missing.",
			"Start the operator with this configuration: ",
		},
		"another value": {
			func(have map[string]priorityclass.Class) {
				have["tideline-handover"] = priorityclass.Class{Value: 5, Policy: corev1.PreemptLowerPriority}
			},
			"PriorityClasses of reservations are not as configured: tideline-handover is 5 PreemptLowerPriority and must be " +
				"1000000000 Never.",
			"Delete tideline-handover, because a class cannot change, ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := healthy()
			c.change(f.Classes)
			g.Expect(judgeClasses(f.Classes, config.DefaultTiers())).To(ConsistOf(And(
				HaveField("What", c.what), HaveField("Do", HavePrefix(c.do)), HaveField("Manifest", And(
					ContainSubstring("name: tideline-handover\n"), ContainSubstring("value: 1000000000\n"))))))
		})
	}
}
