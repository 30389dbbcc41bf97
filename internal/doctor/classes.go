package doctor

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/internal/config"
)

// Class is what counts of a PriorityClass.
type Class struct {
	Value  int32
	Policy corev1.PreemptionPolicy
}

// String is the value and the policy, as findings show them.
func (c Class) String() string { return fmt.Sprintf("%d %s", c.Value, c.Policy) }

func classOf(c *schedulingv1.PriorityClass) Class {
	return Class{Value: c.Value, Policy: ptr.Deref(c.PreemptionPolicy, corev1.PreemptLowerPriority)}
}

// readClasses lists the PriorityClasses by name.
func readClasses(ctx context.Context, c client.Reader) (map[string]Class, error) {
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

// ExamineTiers returns a finding for each tier whose PriorityClasses are not what the configuration says, and for reservations,
// whose class is always the same. The operator creates those that are missing when it begins to lead, before it asks.
func ExamineTiers(ctx context.Context, c client.Reader, tiers config.Tiers) ([]Finding, error) {
	have, err := readClasses(ctx, c)
	if err != nil {
		return nil, err
	}
	return unfit(have, tiers), nil
}

// classes judges the PriorityClasses of all tiers and of reservations: one finding for each that is to be mended, or one for all.
func classes(have map[string]Class, tiers config.Tiers) []Finding {
	if wrong := unfit(have, tiers); len(wrong) > 0 {
		return wrong
	}
	return []Finding{{OK: true, What: fmt.Sprintf("The PriorityClasses of all tiers and of reservations are there (%d).",
		len(tiers.Classes()))}}
}

func unfit(have map[string]Class, tiers config.Tiers) []Finding {
	var findings []Finding
	for _, t := range tiers {
		findings = append(findings, unfitOf("tier "+t.Name, "Name the tier otherwise, or delete", have, t.Classes())...)
	}
	return append(findings, unfitOf("reservations", "Delete", have, []schedulingv1.PriorityClass{config.Handover()})...)
}

// unfitOf judges the PriorityClasses that something needs: one finding, or none. A class of another value leaves deleting it, or
// what else the first words of the way out say.
func unfitOf(what, wayOut string, have map[string]Class, needed []schedulingv1.PriorityClass) []Finding {
	var problems, others []string
	for i := range needed {
		name, want := needed[i].Name, classOf(&needed[i])
		switch is, found := have[name]; {
		case !found:
			problems = append(problems, name+" is missing")
		case is != want:
			problems = append(problems, fmt.Sprintf("%s is %s and must be %s", name, is, want))
			others = append(others, name)
		}
	}
	if len(problems) == 0 {
		return nil
	}
	f := Finding{
		What: fmt.Sprintf("PriorityClasses of %s are not as configured: %s.", what, strings.Join(problems, "; ")),
		Do: "Start the operator with this configuration: it creates what is missing; its log says why it cannot. Or apply what " +
			"follows (kubectl apply -f FILE):",
		Manifest: manifest(needed),
	}
	if len(others) > 0 {
		f.Do = fmt.Sprintf("%s %s, because a class cannot change, which leaves running pods as they are, and apply what follows "+
			"(kubectl apply -f FILE):", wayOut, strings.Join(others, " and "))
	}
	return []Finding{f}
}

// manifest is the YAML of PriorityClasses, a document each.
func manifest(classes []schedulingv1.PriorityClass) string {
	var b strings.Builder
	for i := range classes {
		document, err := yaml.Marshal(&classes[i])
		if err != nil {
			return "" // of a type whose fields all can be written
		}
		b.WriteString("---\n")
		b.Write(document)
	}
	return b.String()
}
