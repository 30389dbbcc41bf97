package merging

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// contender is a MergeJob of a place, at random.
func contender(r *rand.Rand, i int) v1beta1.MergeJob {
	created := morning.Add(time.Duration(r.IntN(4)) * time.Second)
	job := v1beta1.MergeJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ads", Name: fmt.Sprint("m", i), CreationTimestamp: metav1.NewTime(created),
	}}
	if r.IntN(2) == 0 {
		job.Status.Weight = ptr.To[int64](1)
	}
	switch r.IntN(4) {
	case 0:
		job.Status.Run = &v1beta1.MergeRun{}
	case 1:
		job.Status.Reason = v1beta1.ReasonDuplicateModel
	case 2:
		job.DeletionTimestamp = ptr.To(metav1.NewTime(morning))
	}
	return job
}

// TestFewRivalsTellWhatAllTell: what a MergeJob decides by those that are kept is what it would decide by all.
func TestFewRivalsTellWhatAllTell(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			g := NewWithT(t)
			r := rand.New(rand.NewPCG(seed, 7))
			all := make([]v1beta1.MergeJob, 1+r.IntN(8))
			for i := range all {
				all[i] = contender(r, i)
			}
			place := ContendersOf(all)
			for i := range all {
				me := RivalOf(&all[i])
				var others []Rival
				for j := range all {
					if j != i && all[j].DeletionTimestamp == nil {
						others = append(others, RivalOf(&all[j]))
					}
				}
				kept := RivalsIn(me.Key, place, place)
				g.Expect(len(kept)).To(BeNumerically("<=", 6))
				for what, holds := range map[string]func(Rival) bool{
					"runs":            func(o Rival) bool { return o.Running },
					"comes first":     func(o Rival) bool { return me.compare(o) > 0 },
					"has not yielded": func(o Rival) bool { return !o.Yields },
				} {
					g.Expect(slices.ContainsFunc(kept, holds)).To(Equal(slices.ContainsFunc(others, holds)), "%s: another %s", me.Key, what)
				}
				g.Expect(others).To(ContainElements(kept))
			}
		})
	}
}
