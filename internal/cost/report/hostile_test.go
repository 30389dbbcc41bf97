package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	"golang.org/x/net/html"

	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/test/testutil/week"
)

const hostileCurrency = `"><b onload=x>`

// harmless are as many names as there are hostile ones.
func harmless() []string {
	list := make([]string, 0, len(week.Names))
	for i := range week.Names {
		list = append(list, "name"+string(rune('a'+i)))
	}
	return list
}

// unprintables of what is allowed to have some.
func unprintables(content, allowed string) []rune {
	var list []rune
	for _, r := range content {
		if !unicode.IsPrint(r) && !strings.ContainsRune(allowed, r) {
			list = append(list, r)
		}
	}
	return list
}

// A page of hostile names has the elements and attributes of one of harmless names, and no others.
func TestBehaviour3NamesMakeNoElements(t *testing.T) {
	evil, good := week.Named(week.Names, hostileCurrency), week.Named(harmless(), "CNY")
	mails := func(r cost.Report, o Options) ([]byte, error) {
		m, err := ComposeMail(r, o)
		return []byte(m.HTML), err
	}
	for kind, write := range map[string]func(cost.Report, Options) ([]byte, error){"page": RenderPage, "mail": mails} {
		for i, person := range append([]string{""}, week.Names[:5]...) {
			g := NewWithT(t)
			o := Options{Name: week.Names[i], Person: person, Top: len(week.Names)}
			tame := Options{Name: "weekly", Top: len(week.Names)}
			if i > 0 {
				tame.Person = harmless()[i-1]
			}
			content, err := write(evil, o)
			g.Expect(err).NotTo(HaveOccurred())
			pattern, err := write(good, tame)
			g.Expect(err).NotTo(HaveOccurred())
			root := parse(t, string(content))
			g.Expect(difference(skeleton(parse(t, string(pattern))), skeleton(root))).To(BeEmpty(), "%s of %.30q", kind, person)
			g.Expect(unprintables(string(content), "\n"+blank)).To(BeEmpty(), "%s of %.30q", kind, person)
			if person == "" {
				g.Expect(read(root)).To(And(ContainSubstring(`<script>alert(1)</script>`), ContainSubstring(`"><img src=x onerror=1>`),
					ContainSubstring(`abc\u202edef`), ContainSubstring(`nul\x00\x1b[2J`), ContainSubstring(hostileCurrency[:5])))
			}
			for n := range root.Descendants() {
				g.Expect(n.Type == html.TextNode && len(n.Data) > 20_000).To(BeFalse(), "a name is shown at full length")
			}
		}
	}
}

// No cell of a table is a formula, and every record has as many fields as its header.
func TestBehaviour3NamesMakeNoFormulas(t *testing.T) {
	r := week.Named(week.Names, "=1+1")
	for kind, write := range map[string]func(cost.Report, Options) ([]byte, error){"CSV": CSV, "FOCUS": FOCUS} {
		for _, name := range []string{week.Names[0], week.Names[3], week.Names[11]} {
			g := NewWithT(t)
			content, err := write(r, Options{Name: name})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(unprintables(string(content), "\r\n")).To(BeEmpty())
			g.Expect(strings.Count(string(content), "\n")).To(Equal(strings.Count(string(content), "\r\n")))
			records, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(len(records)).To(BeNumerically(">", len(week.Names)))
			for _, record := range records {
				for _, cell := range record {
					g.Expect(strings.IndexAny(strings.TrimLeft(cell, " "), "=+-@＝＋－＠\t\r")).NotTo(BeZero(), "%s has %q", kind, cell)
					g.Expect(kind == "CSV" && len(cell) > 32_767).To(BeFalse(), "spreadsheets take no such cell")
				}
			}
		}
	}
}

// Programs get names as they are, however they look; who looks at the file sees what is in them.
func TestBehaviour3NamesStayTheSameInJSON(t *testing.T) {
	g := NewWithT(t)
	content, err := JSON(week.Named(week.Names, hostileCurrency), Options{Name: week.Names[3]})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(unprintables(string(content), "\n")).To(BeEmpty())
	var d document
	g.Expect(json.Unmarshal(content, &d)).To(Succeed())
	g.Expect(d.Report).To(Equal(week.Names[3]))
	var users []string
	for _, row := range d.Rows {
		users = append(users, row.User)
	}
	for _, name := range week.Names[:10] {
		g.Expect(users).To(ContainElement(strings.ToValidUTF8(name, string(utf8.RuneError))))
	}
}

// A tag keeps the value that a user gave it.
func TestBehaviour3TagsKeepTheirValues(t *testing.T) {
	g := NewWithT(t)
	content, err := FOCUS(week.Named(week.Names, "CNY"), Options{})
	g.Expect(err).NotTo(HaveOccurred())
	records, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
	g.Expect(err).NotTo(HaveOccurred())
	column := slices.Index(records[0], "Tags")
	var users []string
	for _, record := range records[1:] {
		var tags map[string]string
		g.Expect(json.Unmarshal([]byte(record[column]), &tags)).To(Succeed())
		users = append(users, tags["tideline.io/user"])
	}
	g.Expect(users).To(ContainElements(week.Names[0], week.Names[1], week.Names[3], week.Names[4]))
}

// A subject is one line, which no name makes two headers of, and the text of a mail steers no terminal.
func TestBehaviour3NamesMakeNoHeaders(t *testing.T) {
	r := week.Named(week.Names, hostileCurrency)
	for _, name := range week.Names {
		for _, o := range []Options{{Name: name}, {Name: "weekly", Person: name}} {
			g := NewWithT(t)
			subject := MailSubject(r, o)
			g.Expect(unprintables(subject, "")).To(BeEmpty())
			g.Expect(subject).To(And(HavePrefix(strings.Fields("Tideline What")[min(1, len(o.Person))]), Not(BeEmpty())))
			g.Expect(len(subject)).To(BeNumerically("<=", subjectBytes+20))
			if o.Person == "" && name != week.Names[3] {
				continue // pictures take a while, and have no names
			}
			mail, err := ComposeMail(r, o)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(mail.Subject).To(Equal(subject))
			g.Expect(unprintables(mail.Text, "\n")).To(BeEmpty())
			for _, file := range slices.Concat(mail.Pictures, mail.Attachments) {
				g.Expect(file.Name).To(MatchRegexp(`^[a-z]+\.(png|csv)$`))
			}
		}
	}
}
