package trainingpod

import (
	"strconv"

	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// MarksByIndex returns a function that says which marks worker i should have, given those that it has. A change of the owner of a
// job concerns later pods only, so that an owner is left as it is unless label and annotation disagree about it.
func (b Blueprint) MarksByIndex() func(i int32, have podstate.Marks) podstate.Marks {
	all := podstate.Marks{Job: b.Job.Name, Attempt: b.Attempt.ID(), Task: TaskOf(b.Job), Owner: b.Job.Spec.Owner}
	if all.Owner != "" {
		all.OwnerHash = OwnerHash(all.Owner)
	}
	return func(i int32, have podstate.Marks) podstate.Marks {
		m := all
		m.Index, m.Part, m.Group = strconv.Itoa(int(i)), PartOf(i, b.Attempt.MinReplicas), b.gangMember(i).Group
		m.Role = b.roleName(i)
		if have.Owner != m.Owner && agree(have) {
			m.Owner, m.OwnerHash = have.Owner, have.OwnerHash
		}
		return m
	}
}

// agree is true if label and annotation name the same owner, or both name none.
func agree(m podstate.Marks) bool {
	if m.Owner == "" {
		return m.OwnerHash == ""
	}
	return m.OwnerHash == OwnerHash(m.Owner)
}
