package priorityclass

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/internal/platform/config"
)

// Class is the part of a PriorityClass that must be as configured.
type Class struct {
	Value  int32
	Policy corev1.PreemptionPolicy
}

// String is the value and the policy, as findings show them.
func (c Class) String() string { return fmt.Sprintf("%d %s", c.Value, c.Policy) }

// Problem is PriorityClasses of a tier, or of reservations, that are not as configured.
type Problem struct {
	// What was found, with the figures.
	What string
	// Do says how to correct it.
	Do string
	// Manifest is the YAML to apply.
	Manifest string
}

func classOf(c *schedulingv1.PriorityClass) Class {
	return Class{Value: c.Value, Policy: ptr.Deref(c.PreemptionPolicy, corev1.PreemptLowerPriority)}
}

// Read lists the PriorityClasses by name.
func Read(ctx context.Context, c client.Reader) (map[string]Class, error) {
	list := &schedulingv1.PriorityClassList{}
	if err := c.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list PriorityClasses: %w", err)
	}
	classes := make(map[string]Class, len(list.Items))
	for i := range list.Items {
		classes[list.Items[i].Name] = classOf(&list.Items[i])
	}
	return classes, nil
}

// FindProblems returns a problem for each tier whose PriorityClasses are not what the configuration says, and for reservations,
// whose class is always the same.
func FindProblems(have map[string]Class, tiers config.Tiers) []Problem {
	var problems []Problem
	for _, t := range tiers {
		problems = append(problems, judgeNeed("tier "+t.Name, "Name the tier otherwise, or delete", have, t.PriorityClasses())...)
	}
	return append(problems, judgeNeed("reservations", "Delete", have, []schedulingv1.PriorityClass{config.NewHandoverClass()})...)
}

// judgeNeed compares the PriorityClasses that something needs with those that exist, and returns one problem or none. wayOut
// begins the advice for a class that exists with another value.
func judgeNeed(what, wayOut string, have map[string]Class, needed []schedulingv1.PriorityClass) []Problem {
	var wrong, others []string
	for i := range needed {
		name, want := needed[i].Name, classOf(&needed[i])
		switch is, found := have[name]; {
		case !found:
			wrong = append(wrong, name+" is missing")
		case is != want:
			wrong = append(wrong, fmt.Sprintf("%s is %s and must be %s", name, is, want))
			others = append(others, name)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	p := Problem{
		What: fmt.Sprintf("PriorityClasses of %s are not as configured: %s.", what, strings.Join(wrong, "; ")),
		Do: "Start the operator with this configuration: it creates what is missing; its log says why it cannot. Or apply what " +
			"follows (kubectl apply -f FILE):",
		Manifest: manifest(needed),
	}
	if len(others) > 0 {
		p.Do = fmt.Sprintf("%s %s, because a class cannot change, which leaves running pods as they are, and apply what follows "+
			"(kubectl apply -f FILE):", wayOut, strings.Join(others, " and "))
	}
	return []Problem{p}
}

// manifest is the YAML of PriorityClasses, a document each.
func manifest(classes []schedulingv1.PriorityClass) string {
	var b strings.Builder
	for i := range classes {
		document, err := yaml.Marshal(&classes[i])
		if err != nil {
			return "" // Marshalling a PriorityClass never fails.
		}
		b.WriteString("---\n")
		b.Write(document)
	}
	return b.String()
}
