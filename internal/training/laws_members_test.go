package training

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

func (m *planned) membersAreInOrder() bool {
	for i, k := range m.st.Members {
		if k.UID == "" || k.Index < 0 || (i > 0 && k.Index <= m.st.Members[i-1].Index) ||
			(k.IsStranded() && m.st.StrandedTime == nil) ||
			slices.ContainsFunc(m.st.Members[:i], func(o v1beta1.Member) bool { return o.UID == k.UID }) {
			return false
		}
	}
	return true
}

// listsAreOfMembers is true if back-offs, and the workers of the last incident, are those of members, by rising index.
func (m *planned) listsAreOfMembers() bool {
	var retries, hit []int32
	for _, r := range m.st.Retries {
		if retries = append(retries, r.Index); r.Failures+r.Rejections == 0 || r.Time.IsZero() {
			return false
		}
	}
	if m.st.Incident != nil {
		hit = m.st.Incident.Workers
	}
	for _, list := range [][]int32{retries, hit} {
		for n, i := range list {
			_, known := slices.BinarySearchFunc(m.st.Members, i, jobstate.CompareIndex)
			if !known || (n > 0 && i <= list[n-1]) {
				return false
			}
		}
	}
	return len(retries) <= v1beta1.MaxRetries
}

func (m *planned) evictedAreInOrder() bool {
	if m.st.Elasticity == nil {
		return true
	}
	for i, index := range m.st.Elasticity.Evicted {
		if index < m.st.Attempt.MinReplicas || index >= m.st.Attempt.MaxReplicas ||
			(i > 0 && index <= m.st.Elasticity.Evicted[i-1]) {
			return false
		}
	}
	return len(m.st.Elasticity.Evicted) == 0 || m.st.Elasticity.LastEvictionTime != nil
}

// podsThatRun counts pods that did not end.
func podsThatRun(o *jobstate.Observed) int {
	n := 0
	for i := range o.Workers {
		if o.Workers[i].Phase == corev1.PodRunning || o.Workers[i].Phase == corev1.PodPending {
			n++
		}
	}
	return n
}

func (m *planned) restoresItsOwn() bool {
	return (len(m.d.RestoreMarks) == 0 || m.o.PutBack.PauseAt(m.now) <= 0) &&
		!slices.ContainsFunc(m.d.RestoreMarks, func(r Restored) bool {
			return len(r.Marks) == 0 || !slices.ContainsFunc(m.o.Workers, func(p podstate.Worker) bool {
				return p.UID == r.UID && p.Index == r.Index && m.current(&p) && !p.Terminating
			})
		})
}
