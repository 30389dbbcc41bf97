// Package text makes text of others safe to show in a status, an event, a log line or a terminal.
package text

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// SingleLine makes a text one line without control characters: white space becomes blanks, and everything else that cannot be
// printed is escaped as Go does, as in \x1b.
func SingleLine(s string) string {
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

// FormatThousandths writes so many thousandths as a decimal number: 0.5, 8, 0.333.
func FormatThousandths(n int64) string { return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) }

// ClipLine makes a text one line, as [SingleLine] does, of at most n bytes.
func ClipLine(s string, n int) string { return shorten(SingleLine(shorten(s, n)), n) }

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

// FormatDuration writes a duration without a zero rest: "168h", "1h30m0s", "10m0s".
func FormatDuration(d time.Duration) string {
	if d%time.Hour != 0 {
		return d.String() // Of "10m0s" the zero of the minutes is no rest.
	}
	return strings.TrimSuffix(d.String(), "0m0s")
}

// FormatRoughly writes a duration with two figures, where more would be said than is known: "less than a minute", "5m", "1h30m",
// "18h".
func FormatRoughly(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "less than a minute"
	case d < 10*time.Minute:
		d = d.Round(time.Minute)
	case d < 2*time.Hour:
		d = d.Round(5 * time.Minute)
	case d < 24*time.Hour:
		d = d.Round(30 * time.Minute)
	default:
		d = d.Round(6 * time.Hour)
	}
	return strings.TrimSuffix(FormatDuration(d), "0s") // Rounded times have no seconds.
}

// FormatCount writes a number of things: "1 worker", "3 workers".
func FormatCount[N int | int32](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
