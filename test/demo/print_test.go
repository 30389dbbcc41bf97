package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func TestWantsColour(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a character device, as a terminal is
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = device.Close() }()
	for _, test := range []struct {
		out  *os.File
		env  map[string]string
		want bool
	}{
		{device, nil, true},
		{device, map[string]string{"NO_COLOR": "1"}, false},
		{device, map[string]string{"TERM": "dumb"}, false},
		{file, nil, false},
	} {
		if got := wantsColour(test.out, func(name string) string { return test.env[name] }); got != test.want {
			t.Errorf("wantsColour(%s, %v) = %t, want %t", test.out.Name(), test.env, got, test.want)
		}
	}
}

func TestPrinter(t *testing.T) {
	var plain, coloured bytes.Buffer
	for _, p := range []*printer{{out: &plain}, {out: &coloured, colour: true}} {
		p.step("A %s.", "begins")
		p.command("kubectl get etj")
		p.output("NAME  \nctr\n\n")
		p.step("B.")
	}
	const want = "\n1. A begins.\n\n$ kubectl get etj\nNAME\nctr\n\n\n2. B.\n"
	if plain.String() != want {
		t.Errorf("plain: %q, want %q", plain.String(), want)
	}
	stripped := strings.NewReplacer(bold, "", cyan, "", reset, "").Replace(coloured.String())
	if stripped != want || coloured.String() == want {
		t.Errorf("coloured: %q, want %q with colours", coloured.String(), want)
	}
}

func TestWrap(t *testing.T) {
	word := strings.Repeat("x", 30)
	full := strings.Repeat("y", 48) + " " + strings.Repeat("z", 49)
	for _, test := range []struct{ text, first, rest, more, want string }{
		{"", "$ ", "    ", ` \`, "$ "},
		{"a  b\nc", "1. ", "   ", "", "1. a b c"},
		{strings.Repeat(word+" ", 4), "", "", "", strings.Repeat(word+" ", 2) + word + "\n" + word},
		{strings.Repeat(word+" ", 4), "$ ", "    ", ` \`, "$ " + strings.Repeat(word+" ", 2) + word + " \\\n    " + word},
		// Exactly as wide as the terminal; the last word needs no sign that the line goes on.
		{full, "$ ", "", ` \`, "$ " + full},
		{strings.Repeat("w", 120), "", "", "", strings.Repeat("w", 120)},
	} {
		if got := wrap(test.text, test.first, test.rest, test.more); got != test.want {
			t.Errorf("wrap(%q) = %q, want %q", test.text, got, test.want)
		}
	}
}

func TestFold(t *testing.T) {
	sentence := strings.TrimSpace(strings.Repeat("words of a sentence ", 7))
	for _, test := range []struct{ line, want string }{
		{"short", "short"},
		{strings.Repeat("x", 100), strings.Repeat("x", 100)},
		// A table is folded before a column.
		{strings.Repeat("x", 80) + "   7s    All 8 workers ready.", strings.Repeat("x", 80) + "   7s\n    All 8 workers ready."},
		// What follows keeps its columns.
		{strings.Repeat("x", 95) + "   WAIT   MESSAGE", strings.Repeat("x", 95) + "\n    WAIT   MESSAGE"},
		// A sentence is folded between words, as often as needed.
		{"Normal  " + sentence, "Normal  " + sentence[:90] + "\n    " + sentence[91:]},
		{strings.Repeat("x", 120), strings.Repeat("x", 120)},
	} {
		got := fold(test.line)
		if got != test.want {
			t.Errorf("fold(%q) =\n%q, want\n%q", test.line, got, test.want)
		}
	}
}
