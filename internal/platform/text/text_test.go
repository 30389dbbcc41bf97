package text

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestLine(t *testing.T) {
	for s, want := range map[string]string{
		"":                             "",
		"plain, and même 日本 \"q\" \\n": "plain, and même 日本 \"q\" \\n",
		"a\nb\r\nc\td":                 "a b  c d",
		"a\u2028b\u0085c\u00a0d":       "a b c d",
		"\x1b[2J\x1b]0;title\a":        `\x1b[2J\x1b]0;title\a`,
		"\u009b2J":                     `\u009b2J`,
		"abc\u202edef":                 `abc\u202edef`,
		"\x00\b\x7f":                   `\x00\b\x7f`,
		"\xff\xfe":                     "\uFFFD",
	} {
		if have := SingleLine(s); have != want {
			t.Errorf("Line(%q) = %q, want %q", s, have, want)
		}
	}
}

func TestThousandths(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 1: "0.001", 500: "0.5", 1250: "1.25", 8000: "8", 64_000_000: "64000"} {
		if got := FormatThousandths(n); got != want {
			t.Errorf("Thousandths(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestDurations(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 168 * time.Hour: "168h", 90 * time.Minute: "1h30m0s", 10 * time.Minute: "10m0s", 70 * time.Minute: "1h10m0s",
	} {
		if have := FormatDuration(d); have != want {
			t.Errorf("FormatDuration(%s) = %q, want %q", d, have, want)
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add("\x1b[31m\n\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		line := SingleLine(s)
		if !utf8.ValidString(line) || strings.ContainsFunc(line, unprintable) {
			t.Errorf("Line(%q) = %q", s, line)
		}
		if again := SingleLine(line); again != line {
			t.Errorf("Line(%q) = %q, is no line yet", line, again)
		}
	})
}
