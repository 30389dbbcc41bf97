package report

import (
	"bytes"
	"encoding/csv"
	"image/png"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/test/testutil/week"
)

func compose(g *WithT, r cost.Report, o Options) Mail {
	g.THelper()
	m, err := ComposeMail(r, o)
	g.Expect(err).NotTo(HaveOccurred())
	return m
}

// Each picture is in the HTML once, by its name, with its figures in words; nothing else is loaded.
func TestMailHasItsPictures(t *testing.T) {
	g := NewWithT(t)
	m := compose(g, week.Report(), Options{Name: "weekly"})
	g.Expect(m.Subject).To(Equal("Tideline weekly: CNY 555,462, 49 % in use, CNY 148,503 recoverable, 9–16 Nov 2026"))
	root := parse(t, m.HTML)
	var sources []string
	for _, image := range all(root, "img") {
		sources = append(sources, attribute(image, "src"))
		g.Expect(attribute(image, "alt")).To(ContainSubstring("Mon 9 Nov "))
	}
	g.Expect(sources).To(Equal([]string{"cid:utilization.png", "cid:cost.png", "cid:fragmentation.png"}))
	for i, picture := range m.Pictures {
		g.Expect("cid:" + picture.Name).To(Equal(sources[i]))
		g.Expect(picture.Type).To(Equal("image/png"))
		drawn, err := png.Decode(bytes.NewReader(picture.Content))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(drawn.Bounds().Dx()).To(Equal(720))
		colours := map[[3]uint32]bool{}
		for x := 0; x < drawn.Bounds().Dx(); x += 2 {
			for y := 0; y < drawn.Bounds().Dy(); y += 2 {
				r, g, b, _ := drawn.At(x, y).RGBA()
				colours[[3]uint32{r >> 8, g >> 8, b >> 8}] = true
			}
		}
		g.Expect(colours).To(And(HaveKey([3]uint32{0x0b, 0x70, 0x69}), HaveKey([3]uint32{255, 255, 255})), picture.Name)
	}
	g.Expect(compose(g, week.Report(), Options{Name: "weekly"})).To(Equal(m), "the same report makes the same mail")
	for n := range root.Descendants() {
		g.Expect(n.Data).NotTo(BeElementOf("script", "link", "style", "iframe", "form"))
	}
}

// Mail programs cut off long mails: rankings are shortened, what is attached is whole.
func TestMailIsShort(t *testing.T) {
	g := NewWithT(t)
	r := week.Report()
	one := r.By[cost.ByTask][0]
	for range 1000 {
		r.By[cost.ByTask] = append(r.By[cost.ByTask], one)
	}
	m := compose(g, r, Options{Name: "weekly", Top: 500})
	g.Expect(len(m.HTML)).To(And(BeNumerically("<", 100_000), BeNumerically(">", 40_000)))
	g.Expect(m.HTML).To(ContainSubstring("Rankings are shortened"))
	records, err := csv.NewReader(bytes.NewReader(m.Attachments[0].Content)).ReadAll()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(records)).To(BeNumerically(">", 1000))
	o := Options{Name: "weekly"}
	short, err := mailHTML(week.Report(), o, makeView(week.Report(), o), nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(short).NotTo(ContainSubstring("shortened"))
}

// The text reads well at 72 columns, with names of any script, and says what the page says.
func TestMailHasAText(t *testing.T) {
	g := NewWithT(t)
	for _, r := range []cost.Report{week.Report(), week.Named(week.Names, hostileCurrency), week.Named([]string{
		strings.Repeat("训练任务", 40), "日本語のタスク", "한국어", "e\u0301\u0301", "🚀🚀",
	}, "CNY")} {
		for _, line := range strings.Split(plainText(makeView(r, Options{Name: "weekly"})), "\n") {
			g.Expect(textColumns(line)).To(BeNumerically("<=", 72), line)
		}
	}
	text := plainText(makeView(week.Report(), Options{Name: "weekly", Top: 2}))
	g.Expect(text).To(ContainSubstring(`
By user: highest cost
---------------------
User                                          Cost, CNY  Since last time
okafor, vision                                70,384.47        +2,394.49
unattributed                                  59,611.02        +8,669.39
the other 13                                 425,466.49       +49,478.01
all                                          555,461.97       +60,541.90
`))
	g.Expect(text).To(ContainSubstring(
		"\n* yuki can save most: CNY 37,194. CNY 29,827 of it in\n  vision/notebook-yuki."))
	page := read(parse(t, pageOf(g, week.Report(), Options{Name: "weekly"})))
	for _, f := range makeView(week.Report(), Options{Name: "weekly"}).Findings {
		said := strings.Join(strings.Fields(f.Do), " ")
		g.Expect(strings.Join(strings.Fields(text), " ")).To(ContainSubstring(said))
		g.Expect(page).To(ContainSubstring(said))
	}
}

// A personal mail is to one person about what they can do, and an idle notebook is in the mail of its owner.
func TestBehaviour3NotebookIsInAMail(t *testing.T) {
	g := NewWithT(t)
	m := compose(g, week.Report(), Options{Name: "weekly", Person: "yuki", Revision: 3})
	g.Expect(m.Subject).To(Equal("What yuki used (corrected): CNY 53,474, 25 % in use, CNY 37,194 recoverable, 9–16 Nov 2026"))
	g.Expect(readAll(all(all(parse(t, m.HTML), "ol")[0], "li"))[0]).To(Equal("You can save CNY 37,194. CNY 29,827 of it in " +
		"vision/notebook-yuki. Its accelerators are hardly used: end it, or release them until they are needed."))
	g.Expect(slices.Collect(strings.Lines(m.Text))).To(ContainElement("What yuki used\n"))
}
