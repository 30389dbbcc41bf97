package quota

import (
	"maps"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// spareSelectors is how many are remembered beside those of the profiles that there are: dry runs have others.
const spareSelectors = 16

// selectors are those of profiles, compiled. Each reconcile of a job asks for the profile of its namespace, and a selector may
// have thousands of values, which are all checked when it is compiled.
var selectors memo

// memo remembers what was compiled last of each profile. The zero value is empty.
type memo struct {
	mu   sync.Mutex
	last map[types.UID]compiled
}

type compiled struct {
	from     metav1.LabelSelector
	selector labels.Selector
}

// compile returns the selector of a profile's namespaces; nil for one that is invalid.
func (m *memo) compile(p *v1beta1.ResourceQuotaProfile) labels.Selector {
	from := p.Spec.NamespaceSelector
	m.mu.Lock()
	known, is := m.last[p.UID]
	m.mu.Unlock()
	if is && isSame(known.from, from) {
		return known.selector
	}
	selector, err := metav1.LabelSelectorAsSelector(&from)
	if err != nil {
		selector = nil
	}
	if p.UID == "" {
		return selector
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		m.last = map[types.UID]compiled{}
	}
	m.last[p.UID] = compiled{from, selector}
	return selector
}

// forgetOthers forgets selectors of profiles that are gone, once there are many: each may take half a megabyte.
func (m *memo) forgetOthers(profiles []*v1beta1.ResourceQuotaProfile) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.last) <= len(profiles)+spareSelectors {
		return
	}
	there := make(map[types.UID]bool, len(profiles))
	for _, p := range profiles {
		there[p.UID] = true
	}
	maps.DeleteFunc(m.last, func(profile types.UID, _ compiled) bool { return !there[profile] })
}

// isSame tells whether two selectors are the same in memory. Objects of caches are never changed, and what is remembered is not
// freed, so that the same place has the same content. A dry run has other content under the same names and versions.
func isSame(a, b metav1.LabelSelector) bool {
	if len(a.MatchExpressions) != len(b.MatchExpressions) ||
		len(a.MatchExpressions) > 0 && &a.MatchExpressions[0] != &b.MatchExpressions[0] {
		return false
	}
	return reflect.ValueOf(a.MatchLabels).Pointer() == reflect.ValueOf(b.MatchLabels).Pointer()
}
