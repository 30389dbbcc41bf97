package report

import (
	"slices"
	"strings"
	"unicode"
)

// columns is how wide the text of a mail is.
const columns = 72

// plain is a view as a text of at most 72 columns, for those who read mail as text.
func plain(w view) string {
	var p page
	p.wrap("", w.Title)
	p.wrap("", w.Period+", "+w.Zone)
	if w.Revision != "" {
		p.wrap("", w.Revision)
	}
	p.blank()
	for _, f := range w.Figures {
		p.wrap("  ", f.Label+": "+f.Value+" ("+f.Note+")")
	}
	p.heading("What stands out")
	for _, f := range w.Findings {
		p.wrap("  ", "* "+f.What+" "+f.Do)
	}
	for _, g := range w.Groups {
		for _, t := range g.Tables {
			p.heading(g.Heading + ": " + strings.ToLower(t.Caption))
			p.table(t)
		}
	}
	if w.Outcomes != nil {
		p.heading(w.Outcomes.Caption)
		p.table(*w.Outcomes)
	}
	if len(w.Facts) > 0 {
		p.heading("Waiting, losses, and what comes next")
		for _, f := range w.Facts {
			p.wrap("  ", f.Label+": "+f.Value+". "+f.Note)
		}
	}
	for _, c := range w.Charts {
		p.heading(c.Title + " by day")
		p.wrap("  ", c.Alt)
	}
	p.heading("Notes")
	for _, note := range w.Notes {
		p.wrap("  ", "* "+note)
	}
	return strings.ReplaceAll(strings.Join(p.lines, "\n"), blank, " ") + "\n"
}

// page is a text that grows.
type page struct{ lines []string }

func (p *page) blank() { p.lines = append(p.lines, "") }

func (p *page) heading(s string) {
	p.blank()
	p.wrap("", s)
	p.lines = append(p.lines, strings.Repeat("-", span(p.lines[len(p.lines)-1])))
}

// wrap breaks a paragraph into lines, all but the first of which begin with indent. A word that is too long is broken.
func (p *page) wrap(indent, paragraph string) {
	line := ""
	for _, word := range strings.Fields(strings.ReplaceAll(paragraph, blank, " ")) {
		if line != "" && span(line)+1+span(word) > columns {
			p.lines = append(p.lines, line)
			line = indent
		}
		if strings.TrimSpace(line) != "" {
			line += " "
		}
		for _, r := range word {
			if span(line)+wide(r) > columns {
				p.lines = append(p.lines, line)
				line = indent
			}
			line += string(r)
		}
	}
	p.lines = append(p.lines, line)
}

// table writes a name and two figures in columns, which are as wide as they must be; names take the rest.
func (p *page) table(t table) {
	rows := [][3]string{{t.Of, t.Main, t.Second}}
	for _, l := range t.Lines {
		said := l.Name
		if l.Detail != "" {
			said += ", " + l.Detail
		}
		rows = append(rows, [3]string{said, l.Main, l.Second})
	}
	width := [3]int{}
	for _, row := range rows {
		for i, s := range row {
			width[i] = max(width[i], span(s))
		}
	}
	width[0] = max(8, columns-width[1]-width[2]-4)
	for _, row := range rows {
		p.lines = append(p.lines, left(row[0], width[0])+"  "+right(row[1], width[1])+"  "+right(row[2], width[2]))
	}
}

func left(s string, width int) string {
	if span(s) > width {
		var cut strings.Builder
		for _, r := range s {
			if span(cut.String())+wide(r) > width-3 {
				break
			}
			cut.WriteRune(r)
		}
		s = cut.String() + "..."
	}
	return s + strings.Repeat(" ", max(0, width-span(s)))
}

func right(s string, width int) string { return strings.Repeat(" ", max(0, width-span(s))) + s }

// span is how many columns a text takes.
func span(s string) int {
	n := 0
	for _, r := range s {
		n += wide(r)
	}
	return n
}

// wideScripts are those whose characters take two columns.
var wideScripts = []*unicode.RangeTable{unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana}

// wide is how many columns a character takes.
func wide(r rune) int {
	switch {
	case unicode.Is(unicode.Mn, r):
		return 0
	case slices.ContainsFunc(wideScripts, func(t *unicode.RangeTable) bool { return unicode.Is(t, r) }),
		r >= 0x3000 && r <= 0x303f, r >= 0xff01 && r <= 0xff60, r >= 0x1f300 && r <= 0x1faff:
		return 2
	default:
		return 1
	}
}
