package pytorchjob

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/test/testutil/markdown"
)

var _ = It("pages have every difference that users may rely on, and no other", func() {
	objects, behaviour := documented()
	for _, each := range []struct {
		page, heading string
		rows          []string
	}{
		{"reference/pods.md", "PyTorchJob", objects},
		{"convert.md", "What is different when it runs", behaviour},
	} {
		shown := rowsBelow(each.page, each.heading)
		Expect(strings.Join(shown, "\n")).To(Equal(strings.Join(each.rows, "\n")), "%s has these rows, in this order", each.page)
	}
})

// rowsBelow are the rows of tables below a heading of a page, without their heads.
func rowsBelow(page, heading string) (rows []string) {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", page))
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(markdown.Chapter(string(content), heading)) {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| | ") {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	return rows
}

// documented are the rows of the tables: for each difference that is not a detail, what is first seen of it. What only one of
// the two sets has tables of its own, without the other's column and without reasons.
func documented() (objects, behaviour []string) {
	GinkgoHelper()
	var both, theirs, ours []string
	row := func(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |" }
	for _, d := range differences {
		for _, s := range d.seen {
			Expect(s.in).NotTo(BeEmpty(), "%s is seen somewhere", d.what)
		}
		switch first := d.seen[0]; {
		case d.detail:
		case first.theirs == unset:
			ours = append(ours, row(d.title(), first.ours))
		case first.ours == unset:
			theirs = append(theirs, row(d.title(), first.theirs))
		default:
			both = append(both, row(d.title(), first.theirs, first.ours, d.why))
		}
	}
	for _, b := range behaviours {
		if theirs, ours := outcome(b.theirs), outcome(b.ours); theirs != ours { // The text says what is left of a job.
			behaviour = append(behaviour, row(b.what, theirs, ours, b.why))
		}
	}
	return slices.Concat(both, theirs, ours), behaviour
}

// outcome is what becomes of a job, without the objects that are left, which follow from the text.
func outcome(seen string) string {
	before, _, _ := strings.Cut(seen, "; left: ")
	return before
}

// title is the name of a fact as people read it: of a variable, label or field by its name.
func (d difference) title() string {
	kind, name, found := strings.Cut(d.what, " ")
	if !found || strings.Contains(name, " ") {
		return d.what
	}
	return kind + " `" + name + "`"
}
