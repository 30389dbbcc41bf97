package losses

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

// member is all that status knows of a worker. Its parts are in lists of their own there, because few members have the others.
type member struct {
	v1beta1.Member
	// retry is the worker's back-off; zero for none.
	retry v1beta1.Retry
	// incident is the number of the last incident that restarted containers of the pod; 0 for none, or one before the status's.
	incident int32
}

// succeed makes a new pod the member. Failures of the old one count on; rejections do not, for this one runs.
func (m *member) succeed(index int32, uid types.UID) {
	m.Member, m.incident = v1beta1.Member{Index: index, UID: uid}, 0
	m.retry.Rejections = 0
}

// setStranded marks a living member as stranded, or takes the mark from it.
func (m *member) setStranded(is bool) {
	switch {
	case is:
		m.State = v1beta1.MemberStranded
	case m.IsStranded():
		m.State = ""
	}
}

// readMembers returns the members of the planned status by index. One without a UID stands for an index that has none.
func (b *Books) readMembers() []member {
	members := make([]member, len(b.At))
	for _, m := range b.Status.Members {
		members[m.Index].Member = m
	}
	for _, r := range b.Status.Retries {
		members[r.Index].retry = r
	}
	if incident := b.Status.Incident; incident != nil {
		for _, i := range incident.Workers {
			members[i].incident = incident.Number
		}
	}
	return members
}

// writeMembers writes the members into the planned status.
func (b *Books) writeMembers(members []member) {
	st := b.Status
	st.Members, st.Retries = nil, nil
	if st.Incident != nil {
		st.Incident.Workers = nil
	}
	stranded := false
	for i := range members {
		m := &members[i]
		if m.UID == "" {
			continue
		}
		st.Members = append(st.Members, m.Member)
		stranded = stranded || m.IsStranded()
		if m.retry.Failures > 0 || m.retry.Rejections > 0 {
			m.retry.Index = m.Index
			st.Retries = append(st.Retries, m.retry)
		}
		if m.incident > 0 && m.incident == st.Incident.Number {
			st.Incident.Workers = append(st.Incident.Workers, m.Index)
		}
	}
	if !stranded {
		st.StrandedTime = nil
	}
	st.Retries = latestRetries(st.Retries)
}

// replaceMember writes a member that is lost into the status, without what is known of the one before it. Its cost does not grow
// with the size of the job, because thousands of workers may leave in one evaluation.
func replaceMember(st *v1beta1.ElasticTrainingJobStatus, m v1beta1.Member) {
	byIndex := func(r v1beta1.Retry, i int32) int { return int(r.Index - i) }
	if at, has := slices.BinarySearchFunc(st.Retries, m.Index, byIndex); has {
		st.Retries = slices.Delete(st.Retries, at, at+1)
	}
	if st.Incident != nil {
		if at, has := slices.BinarySearch(st.Incident.Workers, m.Index); has {
			st.Incident.Workers = slices.Delete(st.Incident.Workers, at, at+1)
		}
	}
	at, has := slices.BinarySearchFunc(st.Members, m.Index, jobstate.CompareIndex)
	if !has {
		st.Members = slices.Insert(st.Members, at, m)
		return
	}
	last := st.Members[at]
	st.Members[at] = m
	if last.IsStranded() && !slices.ContainsFunc(st.Members, func(m v1beta1.Member) bool { return m.IsStranded() }) {
		st.StrandedTime = nil
	}
}

// latestRetries returns the back-offs that status has room for, by index: those with the latest times.
func latestRetries(all []v1beta1.Retry) []v1beta1.Retry {
	if len(all) <= v1beta1.MaxRetries {
		return all
	}
	slices.SortStableFunc(all, func(a, b v1beta1.Retry) int { return b.Time.Compare(a.Time.Time) })
	all = slices.Clip(all[:v1beta1.MaxRetries])
	slices.SortFunc(all, func(a, b v1beta1.Retry) int { return int(a.Index - b.Index) })
	return all
}
