package pytorchjob

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// page is where people read of the differences.
var page = filepath.Join("..", "..", "..", "docs", "convert.md")

var _ = It("docs/convert.md has every difference, and no other", func() {
	content, err := os.ReadFile(page)
	Expect(err).NotTo(HaveOccurred())
	_, chapter, found := strings.Cut(string(content), "\n## What is different when it runs\n")
	Expect(found).To(BeTrue(), "the page has the chapter")
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	var rows []string
	for line := range strings.Lines(chapter) {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| | ") {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	Expect(strings.Join(rows, "\n")).To(Equal(strings.Join(documented(), "\n")), "the tables have these rows, in this order")
})

// documented are the rows of the four tables: of each difference, what is first seen of it. What only one of the two sets has
// tables of its own, without a column for the other.
func documented() []string {
	GinkgoHelper()
	var both, theirs, ours, behaviour []string
	row := func(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |" }
	for _, d := range differences {
		for _, s := range d.seen {
			Expect(s.in).NotTo(BeEmpty(), "%s is seen somewhere", d.what)
		}
		switch first := d.seen[0]; {
		case first.theirs == unset:
			ours = append(ours, row(d.title(), first.ours, d.why))
		case first.ours == unset:
			theirs = append(theirs, row(d.title(), first.theirs, d.why))
		default:
			both = append(both, row(d.title(), first.theirs, first.ours, d.why))
		}
	}
	for _, b := range behaviours {
		if b.why != "" {
			behaviour = append(behaviour, row(b.what, b.theirs, b.ours, b.why))
		}
	}
	return slices.Concat(both, theirs, ours, behaviour)
}

// title is the name of a fact as people read it: of a variable, label or field by its name.
func (d difference) title() string {
	kind, name, found := strings.Cut(d.what, " ")
	if !found || strings.Contains(name, " ") {
		return d.what
	}
	return kind + " `" + name + "`"
}
