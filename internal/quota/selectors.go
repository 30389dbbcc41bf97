package quota

import (
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// mostSelectors bounds those that are remembered.
const mostSelectors = 1000

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
	if m.last == nil || len(m.last) >= mostSelectors {
		m.last = map[types.UID]compiled{} // Those of profiles that are gone, too.
	}
	m.last[p.UID] = compiled{from, selector}
	return selector
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
