package describe

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/internal/capacity"
)

func TestHoldersBeyondTheThirdAreCounted(t *testing.T) {
	g := NewWithT(t)
	all := make([]capacity.Holder, 5)
	for i := range all {
		all[i] = capacity.Holder{Job: types.NamespacedName{Namespace: "ads", Name: string(rune('a' + i))}, Workers: int32(5 - i)}
	}
	g.Expect(someHolders(all[:3])).To(Equal("ads/a (5), ads/b (4), ads/c (3)"))
	g.Expect(someHolders(all[:4])).To(Equal("ads/a (5), ads/b (4), ads/c (3) and 1 other job (2)"))
	g.Expect(someHolders(all)).To(Equal("ads/a (5), ads/b (4), ads/c (3) and 2 other jobs (3)"))
}
