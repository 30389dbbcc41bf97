package convert

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// maxNodeSelector bounds spec.master.nodeSelector.
const maxNodeSelector = 32

// master carries over in what worker 0 differs from the others: the resources of its training container and its node selector.
// Anything else that the Master's template has and the Worker's has not is noted.
func (c *conversion) master() {
	if c.role() == master || !c.hasMaster() {
		return
	}
	of := func(t *corev1.PodTemplateSpec) *corev1.Container {
		return &t.Spec.Containers[slices.IndexFunc(t.Spec.Containers, isPyTorch)]
	}
	theirs := c.in.Spec.PyTorchReplicaSpecs[master].Template.DeepCopy()
	ours := c.in.Spec.PyTorchReplicaSpecs[worker].Template.DeepCopy()
	overrides := &v1beta1.Master{}
	if resources := of(theirs).Resources; !equality.Semantic.DeepEqual(resources, of(ours).Resources) {
		overrides.Resources = &resources
	}
	overrides.NodeSelector = c.masterNodeSelector(
		replicaPath(master)+".template.spec.nodeSelector", theirs.Spec.NodeSelector, ours.Spec.NodeSelector)
	if overrides.Resources != nil || overrides.NodeSelector != nil {
		c.out.Spec.Master = overrides
	}

	for _, t := range []*corev1.PodTemplateSpec{theirs, ours} {
		of(t).Resources = corev1.ResourceRequirements{}
		t.Spec.NodeSelector = nil
		// Training-operator replaces both.
		t.Name, t.Spec.RestartPolicy = "", ""
	}
	differences(replicaPath(master)+".template", asMap(theirs), asMap(ours), c.difference)
}

// masterNodeSelector is what worker 0 asks of its node beyond, or instead of, what the template asks.
func (d *draft) masterNodeSelector(path string, theirs, ours map[string]string) map[string]string {
	var added map[string]string
	for key, value := range theirs {
		if have, ok := ours[key]; !ok || have != value {
			if added == nil {
				added = map[string]string{}
			}
			added[key] = value
		}
	}
	for _, key := range sortedKeys(ours) {
		if _, ok := theirs[key]; !ok {
			d.note(path+"["+key+"]", nil, "the workers ask for "+show(ours[key])+
				", and so does worker 0: spec.master.nodeSelector adds labels and takes none away",
				"move the label from the template to a nodeSelector that the Master can bear")
		}
	}
	if n := len(added); n > maxNodeSelector {
		d.refuse(path, n, fmt.Sprintf("spec.master.nodeSelector may have %d labels; it will be refused", maxNodeSelector),
			"ask for fewer")
	}
	return added
}

// asMap is an object as it is written.
func asMap(t *corev1.PodTemplateSpec) map[string]any {
	// It can only fail for types that no object of Kubernetes has.
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t)
	if err != nil {
		panic(err)
	}
	return m
}

// differences tells each field below path in which the template of worker 0 differs from that of the others. Nil is a field that
// is not set.
func differences(path string, theirs, ours map[string]any, tell func(path string, theirs, ours any)) {
	keys := maps.Clone(theirs)
	maps.Copy(keys, ours)
	for _, key := range sortedKeys(keys) {
		a, b := theirs[key], ours[key]
		if reflect.DeepEqual(a, b) || empty(a) && empty(b) {
			continue
		}
		aMap, aOK := a.(map[string]any)
		bMap, bOK := b.(map[string]any)
		if !aOK || !bOK {
			aMap, aOK = byName(a)
			bMap, bOK = byName(b)
		}
		switch below := path + "." + key; {
		case aOK && bOK && named(a):
			elements(below, aMap, bMap, tell)
		case aOK && bOK:
			differences(below, aMap, bMap, tell)
		default:
			tell(below, a, b)
		}
	}
}

// elements tells the differences of two lists of named elements, such as containers and variables.
func elements(path string, theirs, ours map[string]any, tell func(path string, theirs, ours any)) {
	names := maps.Clone(theirs)
	maps.Copy(names, ours)
	for _, name := range sortedKeys(names) {
		below := path + "[" + name + "]"
		a, aOK := theirs[name].(map[string]any)
		b, bOK := ours[name].(map[string]any)
		if aOK && bOK {
			differences(below, a, b, tell)
		} else {
			tell(below, theirs[name], ours[name])
		}
	}
}

// difference notes a field in which the Master's template differs from the Worker's.
func (c *conversion) difference(path string, theirs, ours any) {
	meaning := "the workers have " + show(ours)
	if empty(ours) {
		meaning = "the workers do not have it"
	}
	if empty(theirs) {
		theirs = nil
	}
	c.note(path, theirs, meaning+", and worker 0 is made from their template",
		"give the workers the same, or let the script do it where RANK is 0")
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

func named(v any) bool {
	_, isList := v.([]any)
	return isList
}

// byName indexes a list whose elements all have names of their own.
func byName(v any) (map[string]any, bool) {
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	index := map[string]any{}
	for _, element := range list {
		fields, _ := element.(map[string]any)
		name, ok := fields["name"].(string)
		if !ok || index[name] != nil {
			return nil, false
		}
		index[name] = element
	}
	return index, true
}
