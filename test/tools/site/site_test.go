package main

import (
	"html"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const repository = "../../.."

func built(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := build(os.DirFS(repository))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

var table = regexp.MustCompile(`(?m)^\| ?---`)

func TestEveryPageIsBuilt(t *testing.T) {
	files := built(t)
	pages, err := fs.Glob(os.DirFS(repository), "docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	deeper, err := fs.Glob(os.DirFS(repository), "docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 10 || len(deeper) < 10 {
		t.Fatalf("only %d and %d pages were found", len(pages), len(deeper))
	}
	for _, source := range append(pages, deeper...) {
		built := string(files[target(source)])
		content, err := os.ReadFile(path.Join(repository, source))
		if err != nil {
			t.Fatal(err)
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(string(content), "# "), "\n")
		title = html.EscapeString(strings.ReplaceAll(title, "`", ""))
		if !strings.Contains(built, "</h1>") || !strings.Contains(built, "<title>"+title) {
			t.Errorf("%s is built into %q", source, built[:min(400, len(built))])
		}
		if len(table.FindAll(content, -1)) != strings.Count(built, "<table>") {
			t.Errorf("%s has tables that are not built as such", source)
		}
	}
}

var (
	reference = regexp.MustCompile(`(href|src)="([^"]*)"`)
	anchor    = regexp.MustCompile(` id="([^"]+)"`)
)

// Links are looked up in what was built, and not in what it was built from.
func TestLinksLeadSomewhere(t *testing.T) {
	files := built(t)
	names := map[string][]string{}
	for name, html := range files {
		for _, match := range anchor.FindAllSubmatch(html, -1) {
			names[name] = append(names[name], string(match[1]))
		}
	}
	reached := map[string]bool{"index.html": true}
	for name, html := range files {
		if path.Ext(name) != ".html" {
			continue
		}
		for _, match := range reference.FindAllSubmatch(html, -1) {
			to, heading, _ := strings.Cut(string(match[2]), "#")
			if strings.HasPrefix(to, "https://") {
				continue
			}
			linked := name
			if to != "" {
				linked = path.Join(path.Dir(name), to)
			}
			if linked != name {
				reached[linked] = true
			}
			if _, exists := files[linked]; !exists {
				t.Errorf("%s: %s leads nowhere", name, match[2])
			} else if heading != "" && !slices.Contains(names[linked], heading) {
				t.Errorf("%s: %s has no heading %s", name, linked, heading)
			}
		}
	}
	for name := range files {
		if !reached[name] {
			t.Errorf("nothing leads to %s", name)
		}
	}
}

// A page is read where there is no network, and without a script.
func TestNothingComesFromElsewhere(t *testing.T) {
	loads := regexp.MustCompile(`(?i)<(script|iframe|object|embed|video|audio|style)\b|<link [^>]*href="[a-z]+:|` +
		`<img [^>]*src="[a-z]*:|@import|url\(`)
	for name, content := range built(t) {
		if found := loads.Find(content); found != nil && (path.Ext(name) == ".html" || path.Ext(name) == ".css") {
			t.Errorf("%s has %s", name, found)
		}
	}
}

func TestNavigation(t *testing.T) {
	html := string(built(t)["decisions/0001-project-layout.html"])
	for _, want := range []string{
		`<li><a href="../quickstart.html">Quick start</a></li>`, `<link rel="stylesheet" href="../style.css">`,
		`<header><a href="../index.html">Tideline</a>`, `/blob/main/docs/decisions/0001-project-layout.md">Source of this page`,
	} {
		if !strings.Contains(html, want) {
			t.Errorf("there is no %s in\n%s", want, html)
		}
	}
	if html := string(built(t)["quickstart.html"]); strings.Count(html, `aria-current="page"`) != 1 ||
		!strings.Contains(html, `<a href="quickstart.html" aria-current="page">`) {
		t.Error("the quick start does not show where it is in the navigation")
	}
}

// What cannot be built is said, with its page.
func TestBrokenPages(t *testing.T) {
	begin := "# Docs\n\n## Begin\n\n| page |\n|---|\n| [A](a.md) |\n"
	for want, a := range map[string]string{
		"":                                     "# A\n\n[a](../LICENSE) [b](https://example.com) [c](#a) [d](a.md#a) [e](README.md)\n",
		"docs/a.md: link b.md leads nowhere":   "# A\n\n[b](b.md)\n",
		"docs/a.md: link ../LICENCE leads now": "# A\n\n[b](../LICENCE)\n",
		"docs/a.md: link a.md#b: docs/a.md ha": "# A\n\n[b](a.md#b)\n",
		"docs/a.md: link b.png leads nowhere":  "# A\n\n![b](b.png)\n",
		"docs/a.md: it shows https://example":  "# A\n\n![b](https://example.com/b.png)\n",
	} {
		_, err := build(fstest.MapFS{"docs/README.md": {Data: []byte(begin)}, "docs/a.md": {Data: []byte(a)}, "LICENSE": {}})
		if said := errorText(err); want == "" && err != nil || !strings.HasPrefix(said, want) {
			t.Errorf("%q: %q, want %q", a, said, want)
		}
	}
	if _, err := build(fstest.MapFS{"docs/a.md": {}}); errorText(err) != "there is no docs/README.md" {
		t.Error(err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestWriteReplaces(t *testing.T) {
	folder := path.Join(t.TempDir(), "site")
	for _, name := range []string{"old/a.html", "b.html"} {
		if err := write(folder, map[string][]byte{name: []byte(name)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path.Join(folder, "old")); !os.IsNotExist(err) {
		t.Errorf("what was there before is still there: %v", err)
	}
	if content, err := os.ReadFile(path.Join(folder, "b.html")); string(content) != "b.html" || err != nil {
		t.Errorf("%q %v", content, err)
	}
}
