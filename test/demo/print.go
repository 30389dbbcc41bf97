package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// width is that of a usual terminal; what is longer is folded.
const width = 100

// Escape sequences of the few colours in use.
const (
	bold  = "\x1b[1m"
	cyan  = "\x1b[36m"
	reset = "\x1b[0m"
)

// printer writes the story.
type printer struct {
	out    io.Writer
	colour bool
	steps  int
	// quoting is on while what is printed is also kept in quotes, without colours.
	quoting bool
	quotes  strings.Builder
}

// wantsColour is true on a terminal whose user has not asked for plain text (https://no-color.org).
func wantsColour(out *os.File, getenv func(string) string) bool {
	info, err := out.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// step begins a step of the story with a sentence.
func (p *printer) step(format string, args ...any) {
	p.steps++
	number := fmt.Sprintf("%d. ", p.steps)
	p.lines("", p.painted(bold, wrap(fmt.Sprintf(format, args...), number, strings.Repeat(" ", len(number)), "")))
}

// note says something about what was just shown.
func (p *printer) note(format string, args ...any) {
	p.lines("", wrap(fmt.Sprintf(format, args...), "", "", ""))
}

// command shows what is typed.
func (p *printer) command(text string) {
	p.lines("", p.painted(cyan, wrap(text, "$ ", "    ", " \\")))
}

// output shows what a command printed.
func (p *printer) output(text string) {
	for line := range strings.Lines(text) {
		p.lines(fold(strings.TrimRight(line, " \n")))
	}
}

func (p *printer) lines(lines ...string) {
	text := strings.Join(lines, "\n")
	_, _ = fmt.Fprintln(p.out, text)
	if p.quoting {
		p.quotes.WriteString(strings.NewReplacer(bold, "", cyan, "", reset, "").Replace(text) + "\n")
	}
}

func (p *printer) painted(colour, text string) string {
	if !p.colour {
		return text
	}
	return colour + text + reset
}

// wrap breaks text between words so that no line is wider than a terminal. The first line begins with first, the others
// with rest, and lines that go on end with more.
func wrap(text, first, rest, more string) string {
	var b strings.Builder
	b.WriteString(first)
	column := len(first)
	words := strings.Fields(text)
	for i, word := range words {
		end := len(more)
		if i == len(words)-1 {
			end = 0
		}
		switch {
		case i == 0:
		case column+1+len(word)+end > width:
			b.WriteString(more + "\n" + rest)
			column = len(rest)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}

// fold breaks a line of a table that is wider than a terminal: what does not fit goes on in lines of their own, indented,
// so that columns stay columns.
func fold(line string) string {
	const indent = "    "
	if len(line) <= width {
		return line
	}
	at := strings.LastIndex(line[:width], "  ") // rather before a column than inside of one
	if at < width/2 {
		at = strings.LastIndex(line[:width+1], " ")
	}
	if at <= len(indent) {
		return line
	}
	return strings.TrimRight(line[:at], " ") + "\n" + fold(indent+strings.TrimLeft(line[at:], " "))
}
