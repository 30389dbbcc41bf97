package report

import (
	"slices"
	"strings"
	"unicode"
)

// columns is how wide the text of a mail is.
const columns = 72

// plainText is a view as a text of at most 72 columns, for those who read mail as text.
func plainText(w view) string {
	var p page
	p.addWrapped("", w.Title)
	p.addWrapped("", w.Period+", "+w.Zone)
	if w.Revision != "" {
		p.addWrapped("", w.Revision)
	}
	p.addBlank()
	for _, f := range w.Figures {
		p.addWrapped("  ", f.Label+": "+f.Value+" ("+f.Note+")")
	}
	p.addHeading("What stands out")
	for _, f := range w.Findings {
		p.addWrapped("  ", "* "+f.What+" "+f.Do)
	}
	for _, g := range w.Groups {
		for _, t := range g.Tables {
			p.addHeading(g.Heading + ": " + strings.ToLower(t.Caption))
			p.addTable(t)
		}
	}
	if w.Outcomes != nil {
		p.addHeading(w.Outcomes.Caption)
		p.addTable(*w.Outcomes)
	}
	if len(w.Facts) > 0 {
		p.addHeading("Waiting, losses, and what comes next")
		for _, f := range w.Facts {
			p.addWrapped("  ", f.Label+": "+f.Value+". "+f.Note)
		}
	}
	for _, c := range w.Charts {
		p.addHeading(c.Title + " by day")
		p.addWrapped("  ", c.Alt)
	}
	p.addHeading("Notes")
	for _, note := range w.Notes {
		p.addWrapped("  ", "* "+note)
	}
	return strings.ReplaceAll(strings.Join(p.lines, "\n"), blank, " ") + "\n"
}

// page is a text that grows.
type page struct{ lines []string }

func (p *page) addBlank() { p.lines = append(p.lines, "") }

func (p *page) addHeading(s string) {
	p.addBlank()
	p.addWrapped("", s)
	p.lines = append(p.lines, strings.Repeat("-", textColumns(p.lines[len(p.lines)-1])))
}

// addWrapped breaks a paragraph into lines. All lines after the first begin with indent. Words that are too long are broken.
func (p *page) addWrapped(indent, paragraph string) {
	line := ""
	for _, word := range strings.Fields(strings.ReplaceAll(paragraph, blank, " ")) {
		if line != "" && textColumns(line)+1+textColumns(word) > columns {
			p.lines = append(p.lines, line)
			line = indent
		}
		if strings.TrimSpace(line) != "" {
			line += " "
		}
		for _, r := range word {
			if textColumns(line)+runeColumns(r) > columns {
				p.lines = append(p.lines, line)
				line = indent
			}
			line += string(r)
		}
	}
	p.lines = append(p.lines, line)
}

// addTable writes a name and two figures in columns, which are as wide as they must be; names take the rest.
func (p *page) addTable(t table) {
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
			width[i] = max(width[i], textColumns(s))
		}
	}
	width[0] = max(8, columns-width[1]-width[2]-4)
	for _, row := range rows {
		p.lines = append(p.lines, alignLeft(row[0], width[0])+"  "+alignRight(row[1], width[1])+"  "+alignRight(row[2], width[2]))
	}
}

func alignLeft(s string, width int) string {
	if textColumns(s) > width {
		var cut strings.Builder
		for _, r := range s {
			if textColumns(cut.String())+runeColumns(r) > width-3 {
				break
			}
			cut.WriteRune(r)
		}
		s = cut.String() + "..."
	}
	return s + strings.Repeat(" ", max(0, width-textColumns(s)))
}

func alignRight(s string, width int) string {
	return strings.Repeat(" ", max(0, width-textColumns(s))) + s
}

// textColumns is how many columns a text takes.
func textColumns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

// wideScripts are those whose characters take two columns.
var wideScripts = []*unicode.RangeTable{unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana}

// runeColumns is how many columns a character takes.
func runeColumns(r rune) int {
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
