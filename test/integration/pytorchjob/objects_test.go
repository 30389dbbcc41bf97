package pytorchjob

import (
	"cmp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Objects", func() {
	for _, name := range comparedNames() {
		It("of "+name+" differ as documented", func() {
			job := compared[name]
			theirs, ours := submit(job, 8)
			var all []int
			for rank := range pods(job) {
				all = append(all, rank)
			}
			for _, s := range []*side{theirs, ours} {
				Eventually(s.running).Should(Equal(all), "all pods run")
				host, _, _ := strings.Cut(s.rendezvous(1%len(all)), ":")
				Eventually(s.found).WithArguments(host).Should(Equal(s.pod(0).Name), "%s is rank 0", host)
			}
			Expect(differing(theirs.objects(), ours.objects())).To(Equal(expected(name)), "theirs is the first, ours the second")
		})
	}
})

// rendezvous is the address at which the pod of a rank is told to meet the others.
func (s *side) rendezvous(rank int) string {
	GinkgoHelper()
	told := s.podFacts(s.pod(rank))
	address := cmp.Or(told["variable PET_RDZV_ENDPOINT"], told["variable MASTER_ADDR"])
	Expect(address).NotTo(BeEmpty(), "rank %d is told an address", rank)
	return address
}

// expected are the differences documented for a job, each as one line.
func expected(job string) []string {
	var lines []string
	for _, d := range differences {
		for _, s := range d.seen {
			if slices.Contains(s.in, job) {
				lines = append(lines, line(d.what, s.theirs, s.ours))
			}
		}
	}
	slices.Sort(lines)
	return lines
}
