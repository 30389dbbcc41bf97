package v1beta1_test

import (
	"strconv"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// seats lists the first workers of a job as role and index in it.
func seats(spec *v1beta1.ElasticTrainingJobSpec, workers int32) []string {
	var all []string
	for i := range workers {
		seat := spec.SeatOf(i)
		all = append(all, seat.Name()+strconv.Itoa(int(seat.Index)))
	}
	return all
}

func TestSeatsOfRoles(t *testing.T) {
	role := func(name string, replicas int32) v1beta1.JobRole {
		return v1beta1.JobRole{Name: name, Replicas: replicas}
	}
	lead := role("launcher", 1)
	lead.Lead = true
	for name, c := range map[string]struct {
		roles   []v1beta1.JobRole
		members int32
		want    []string
	}{
		"none":                  {nil, 0, []string{"worker0", "worker1", "worker2", "worker3", "worker4"}},
		"servers of parameters": {[]v1beta1.JobRole{role("ps", 2)}, 2, []string{"worker0", "ps0", "ps1", "worker1", "worker2"}},
		"one leads":             {[]v1beta1.JobRole{lead}, 1, []string{"launcher0", "worker0", "worker1", "worker2", "worker3"}},
		"one leads, named last": {[]v1beta1.JobRole{role("ps", 2), lead}, 3, []string{"launcher0", "ps0", "ps1", "worker0", "worker1"}},
		"two without a number": {[]v1beta1.JobRole{role("ps", 0), role("eval", 0)}, 2, []string{"worker0", "ps0", "eval0",
			"worker1", "worker2"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec := &v1beta1.ElasticTrainingJobSpec{Roles: c.roles}
			g.Expect(spec.RoleMembers()).To(Equal(c.members))
			g.Expect(seats(spec, 5)).To(Equal(c.want))
			g.Expect(spec.SeatOf(v1beta1.MaxWorkers).Role).To(BeNil(), "what stands for ordinary workers is of no role")
		})
	}
}
