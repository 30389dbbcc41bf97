package convert

import (
	"strings"
	"testing"
)

// A value cannot break the line or steer the terminal, and is cut where it is long.
func TestShow(t *testing.T) {
	for value, want := range map[any]string{
		"plain": "plain", "two words": "two words", "": `""`, "a\nb": `"a\nb"`, "\x1b[31mred": `"\x1b[31mred"`,
		int32(7): "7", true: "true",
		strings.Repeat("é", 81): strings.Repeat("é", 79) + "…", strings.Repeat("é", 80): strings.Repeat("é", 80),
	} {
		if have := show(value); have != want {
			t.Errorf("show(%q) = %s, want %s", value, have, want)
		}
	}
}
