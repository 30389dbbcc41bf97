package collector

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// workerName is the name of worker i of a job without roles.
func workerName(job string, i int32) string {
	return rendezvous.WorkerName(&v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Name: job}}, i)
}

const training, merge = "ElasticTrainingJob", "MergeJob"

func TestRoleOfAPod(t *testing.T) {
	for _, c := range []struct {
		kind, pod string
		want      sizing.Role
	}{
		{training, workerName("ctr", 0), sizing.Master},
		{training, workerName("ctr", 1), sizing.Worker},
		{training, workerName("ctr", 10), sizing.Worker},
		{training, workerName("a-worker-0", 7), sizing.Worker},
		{training, workerName("a-worker-7", 0), sizing.Master},
		{training, "ctr-ps-1", "ps"},
		{training, "a-launcher-0", sizing.Master},
		{merge, mergepod.PodName("ctr", 0), sizing.Master},
		{merge, mergepod.PodName("ctr-2026-11", 3), sizing.Worker},
		{merge, workerName("ctr", 0), ""},
		{training, mergepod.PodName("ctr", 0), ""},
		{training, "ctr-worker-00", ""},
		{training, "ctr-worker-", ""},
		{training, "ctr", ""},
		{training, "", ""},
		{"Deployment", workerName("ctr", 0), sizing.Other},
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
