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
