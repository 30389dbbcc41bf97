package intern

import (
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestOneCopyOfWhatIsAlike(t *testing.T) {
	g := NewWithT(t)
	var table Table[*int]
	built := 0
	build := func() *int {
		built++
		return new(int)
	}

	first := table.Intern("a", build)
	g.Expect(table.Intern("a", build)).To(BeIdenticalTo(first))
	g.Expect(table.Intern("b", build)).NotTo(BeIdenticalTo(first))
	g.Expect(built).To(Equal(2))

	long := strings.Repeat("x", longestKey+1)
	g.Expect(table.Intern(long, build)).NotTo(BeIdenticalTo(table.Intern(long, build)), "long ones are not kept")
}

func TestTablesAreBounded(t *testing.T) {
	g := NewWithT(t)
	var table Table[int]
	for i := range 3 * mostKept {
		g.Expect(table.Intern(strconv.Itoa(i), func() int { return i })).To(Equal(i))
		g.Expect(len(table.kept)).To(BeNumerically("<=", mostKept))
	}
}
