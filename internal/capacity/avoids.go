package capacity

import (
	"strconv"
	"strings"
)

// avoids are the anti-affinities of pods on nodes, by their words.
type avoids struct {
	terms []*avoided
	of    map[string]*avoided
	known map[*Kin]string
}

type avoided struct {
	Term
	by []*Pod
}

// addAvoids notes what a pod on a node keeps out.
func (m *inventory) addAvoids(p *Pod) {
	if p.Kin == nil || len(p.Kin.Apart) == 0 {
		return
	}
	if m.avoids == nil {
		m.avoids = &avoids{of: map[string]*avoided{}, known: map[*Kin]string{}}
	}
	for i := range p.Kin.Apart {
		t := &p.Kin.Apart[i]
		a := m.avoids.of[t.words()]
		if a == nil {
			a = &avoided{Term: *t}
			m.avoids.of[t.words()], m.avoids.terms = a, append(m.avoids.terms, a)
		}
		a.by = append(a.by, p)
	}
}

// keyFor names the anti-affinities of placed pods that are about the worker; empty for none.
func (a *avoids) keyFor(k *Kin) string {
	if a == nil || k == nil {
		return ""
	}
	key, known := a.known[k]
	if !known {
		var words []string
		for i, t := range a.terms {
			if t.meets(k) {
				words = append(words, strconv.Itoa(i))
			}
		}
		key = strings.Join(words, " ")
		a.known[k] = key
	}
	return key
}
