package collector

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

const training, merge = "ElasticTrainingJob", "MergeJob"

func TestRoleOfAPod(t *testing.T) {
	for _, c := range []struct {
		kind, pod string
		want      sizing.Role
	}{
		{training, rendezvous.WorkerName("ctr", 0), sizing.Master},
		{training, rendezvous.WorkerName("ctr", 1), sizing.Worker},
		{training, rendezvous.WorkerName("ctr", 10), sizing.Worker},
		{training, rendezvous.WorkerName("a-worker-0", 7), sizing.Worker},
		{training, rendezvous.WorkerName("a-worker-7", 0), sizing.Master},
		{merge, mergepod.PodName("ctr", 0), sizing.Master},
		{merge, mergepod.PodName("ctr-2026-11", 3), sizing.Worker},
		{merge, rendezvous.WorkerName("ctr", 0), ""},
		{training, mergepod.PodName("ctr", 0), ""},
		{training, "ctr-worker-00", ""},
		{training, "ctr-worker-", ""},
		{training, "ctr", ""},
		{training, "", ""},
		{"Deployment", rendezvous.WorkerName("ctr", 0), sizing.Other},
	} {
		t.Run(c.kind+" "+c.pod, func(t *testing.T) {
			g := NewWithT(t)
			role, ok := roleOf(c.kind, c.pod)
			g.Expect(ok).To(Equal(c.want != ""))
			if ok {
				g.Expect(role).To(Equal(c.want))
			}
		})
	}
}
