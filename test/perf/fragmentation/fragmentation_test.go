package main

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/test/perf/scheduler"
)

func TestMeasuresOfFragmentation(t *testing.T) {
	g := NewWithT(t)
	mix := mixOf([]shape{{4000, 100, 1}, {4000, 100, 1}, {4000, 100, 1}, {9000, 100, 4}, {1, 1, 0}})
	g.Expect(mix).To(HaveLen(2), "pods without GPUs leave no GPU unusable")
	nodes := []shape{{64000, 256 << 10, 8}, {10000, 1000, 4}}
	empty := measure(nodes, make([]shape, 2), mix)
	g.Expect(empty.Unusable+empty.OfFree+empty.Allocated).To(BeZero(), "all pods fit on both nodes")
	g.Expect(empty.Gangs).To(BeNumerically("~", 0.75*2/12, 1e-9), "ten cores are enough for two small pods")
	g.Expect(empty.Whole).To(Equal(1))
	// Of the first node three GPUs are free, too few for a pod of four; of the second all four, but no core.
	f := measure(nodes, []shape{{5000, 500, 5}, {10000, 400, 0}}, mix)
	g.Expect(f.Allocated).To(BeNumerically("~", 5.0/12, 1e-9))
	g.Expect(f.Unusable).To(BeNumerically("~", (4+0.25*3)/12, 1e-9))
	g.Expect(f.OfFree).To(BeNumerically("~", (4+0.25*3)/7, 1e-9))
	g.Expect(f.Gangs).To(BeNumerically("~", 0.75*4/7+0.25, 1e-9), "one of four finds no room anywhere")
	g.Expect(f.Whole).To(BeZero())
}

func TestPodsAreDrawnBySeed(t *testing.T) {
	g := NewWithT(t)
	from, err := readShapes(strings.NewReader("name,cpu_milli,memory_mib,num_gpu\na,1,2,3\nb,4,5,6\nc,7,8,9\n"), podColumns)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(from).To(Equal([]shape{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}))
	ten := func(seed uint64) (some []shape) {
		d := newDrawer(from, seed)
		for range 10 {
			some = append(some, d.next())
		}
		return some
	}
	g.Expect(ten(1)).To(Equal(ten(1)))
	g.Expect(ten(1)).NotTo(Equal(ten(2)))
}

func TestBadTraceIsRefused(t *testing.T) {
	for text, problem := range map[string]string{
		"": "names of columns", "cpu_milli,gpu\n": "memory_mib", "cpu_milli,memory_mib,gpu\n1,x,2\n": "row 2",
		"cpu_milli,memory_mib,gpu\n1,1,-2\n": "less than nothing",
	} {
		_, err := readShapes(strings.NewReader(text), nodeColumns)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(problem)))
	}
}

func TestWhatIsBoundIsTakenAndWhatIsNotGoes(t *testing.T) {
	g := NewWithT(t)
	f := &filling{nodes: []shape{{8000, 100, 2}}, taken: make([]shape, 1), number: map[string]int{}}
	q, all, err := f.begin()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all).To(BeNumerically("==", 2))
	coming := []arrival{f.add(&q, shape{1000, 10, 2}), f.add(&q, shape{1000, 10, 1})}
	next, err := f.settle(coming, &scheduler.Answer{Binds: map[string]string{"openb/pod-00001": "node-0000"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.taken).To(Equal([]shape{{1000, 10, 2}}))
	g.Expect(next.Pods).To(HaveLen(1))
	g.Expect(next.Pods[0].Status.Phase).To(Equal(corev1.PodRunning))
	g.Expect(next.Gone).To(Equal([]string{"openb/pod-00002"}))
	g.Expect(next.GoneGroups).To(Equal(next.Gone))
	_, err = f.settle(coming[1:], &scheduler.Answer{Binds: map[string]string{"openb/pod-00002": "node-0000"}})
	g.Expect(err).To(MatchError(ContainSubstring("more than it has")))
}

func TestThePageComparesSeedBySeed(t *testing.T) {
	of := func(subject string, seed uint64, allocated float64) result {
		return result{subject, seed, []figures{6: {Allocated: allocated}}}
	}
	page := tables("abc", []result{of("stock", 1, 0.8), of("ours", 1, 0.9), of("stock", 2, 0.6), of("ours", 2, 0.7)})
	NewWithT(t).Expect(page).To(ContainSubstring(
		"| 130 | GPUs allocated, % | 70.0 ± 127.1 | 80.0 ± 127.1 | 10.0 ± 0.0 |"), "both seeds gained ten")
}
