// Package text makes what others wrote fit to be shown: in a status, an event, a line of a log or a terminal.
package text

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Line makes a text one line that steers no terminal: white space becomes blanks, and whatever else cannot be printed is written
// as Go does in quotes, as in \x1b. A text that is such a line already stays as it is.
func Line(s string) string {
	s = strings.ToValidUTF8(s, string(unicode.ReplacementChar))
	if !strings.ContainsFunc(s, unprintable) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// Thousandths writes so many thousandths as a decimal number: 0.5, 8, 0.333.
func Thousandths(n int64) string { return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) }

// Clip makes a text one line, as [Line] does, of at most n bytes.
func Clip(s string, n int) string { return shorten(Line(shorten(s, n)), n) }

// shorten cuts a text to n bytes, between two characters.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	cut := n - len("...")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}

// Span writes a length of time without the parts that are nothing: "168h", "1h30m0s".
func Span(d time.Duration) string { return strings.TrimSuffix(d.String(), "0m0s") }
