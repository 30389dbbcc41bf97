package markdown

import (
	"reflect"
	"testing"
	"testing/fstest"
)

const page = "# Page\n\n## First\n\n```sh\nmake a\n```\n\n## Second\n\n1. Then:\n\n" +
	"   ```yaml fragment of spec\n   a:\n     b\n   ```\n```\nplain\n```\n"

func TestBlocks(t *testing.T) {
	want := []Block{
		{Line: 5, Language: "sh", Text: "make a\n"},
		{Line: 13, Language: "yaml", Note: "fragment of spec", Text: "a:\n  b\n"},
		{Line: 17, Text: "plain\n"},
	}
	if found := Blocks(page); !reflect.DeepEqual(found, want) {
		t.Errorf("%+v, want %+v", found, want)
	}
	if found := In("yaml", Blocks(page)); !reflect.DeepEqual(found, want[1:2]) {
		t.Errorf("%+v, want %+v", found, want[1:2])
	}
}

func TestChapter(t *testing.T) {
	for heading, want := range map[string]string{"First": "\n```sh\nmake a\n```\n", "Third": ""} {
		if found := Chapter(page, heading); found != want {
			t.Errorf("%s: %q, want %q", heading, found, want)
		}
	}
}

func TestPages(t *testing.T) {
	pages, err := Pages(fstest.MapFS{"a.md": {}, "a.go": {}, "docs/b.md": {}, "docs/c/d.md": {}, "docs/e.yaml": {}, "test/f.md": {}})
	if want := []string{"a.md", "docs/b.md", "docs/c/d.md"}; err != nil || !reflect.DeepEqual(pages, want) {
		t.Errorf("%v %v, want %v", pages, err, want)
	}
}

func TestReplaceMarked(t *testing.T) {
	begin, end := "<!-- begin: make a -->", "<!-- end: make a -->"
	page := "before\n" + begin + "\nold\n" + end + "\nafter\n"
	got, err := ReplaceMarked(page, "make a", "new\n")
	if want := "before\n" + begin + "\n\nnew\n\n" + end + "\nafter\n"; got != want || err != nil {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if again, err := ReplaceMarked(got, "make a", "new\n"); again != got || err != nil {
		t.Errorf("the same text again gives %q, %v", again, err)
	}
	if text, ok := Marked(got, "make a"); text != "\n\nnew\n\n" || !ok {
		t.Errorf("between the marks is %q, %t", text, ok)
	}
	for _, without := range []string{"no marks", begin, end, "<!-- begin: make b -->" + end} {
		if _, err := ReplaceMarked(without, "make a", "new"); err == nil {
			t.Errorf("page %q was accepted, which has not both marks", without)
		}
	}
}
