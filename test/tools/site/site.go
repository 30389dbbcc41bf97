package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strings"

	"github.com/yuin/goldmark/ast"
)

//go:embed page.html style.css
var assets embed.FS

var frame = template.Must(template.ParseFS(assets, "page.html"))

// site is what pages know of each other.
type site struct {
	repository fs.FS
	pages      map[string]*page
	chapters   []chapter
}

// chapter is a part of the navigation.
type chapter struct {
	Title string
	Links []link
}

// link is a page in the navigation.
type link struct{ Title, source string }

// index is the page that all others are found by.
const index = docs + "/README.md"

// navigation is what the index lists under each heading of the second level, in items of lists or first cells of rows.
func (s *site) navigation() ([]chapter, error) {
	p := s.pages[index]
	if p == nil {
		return nil, fmt.Errorf("there is no %s", index)
	}
	var chapters []chapter
	for node := p.tree.FirstChild(); node != nil; node = node.NextSibling() {
		if heading, isHeading := node.(*ast.Heading); isHeading && heading.Level == 2 {
			chapters = append(chapters, chapter{Title: plain(heading, p.content)})
		}
		if len(chapters) == 0 {
			continue
		}
		for row := node.FirstChild(); row != nil; row = row.NextSibling() {
			if row.FirstChild() == nil {
				continue
			}
			for _, l := range find[*ast.Link](row.FirstChild()) {
				last := &chapters[len(chapters)-1]
				last.Links = append(last.Links, link{plain(l, p.content), path.Join(docs, string(l.Destination))})
			}
		}
	}
	if len(chapters) == 0 {
		return nil, fmt.Errorf("%s has no chapters", index)
	}
	return chapters, nil
}

// render is a page in its frame.
func (s *site) render(p *page) ([]byte, error) {
	body, err := p.body(func(to string) (string, error) { return s.resolve(p, to) })
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = frame.Execute(&b, map[string]any{
		"Title":    p.title,
		"Body":     template.HTML(body), // made from our own pages, in which goldmark leaves out raw HTML
		"Chapters": s.chapters,
		"Index":    index,
		"To":       func(source string) string { return relative(p.source, source) },
		"Here":     func(source string) bool { return source == p.source },
		"Style":    strings.Repeat("../", strings.Count(target(p.source), "/")) + "style.css",
		"Source":   remote + p.source,
	})
	return b.Bytes(), err
}

// Source is the page in the repository.
func (l link) Source() string { return l.source }

// resolve is where a link of a page leads on the site.
func (s *site) resolve(p *page, to string) (string, error) {
	name, anchor, _ := strings.Cut(to, "#")
	if strings.Contains(name, "://") {
		return to, nil
	}
	source := p.source
	if name != "" {
		source = path.Join(path.Dir(p.source), name)
	}
	if _, err := fs.Stat(s.repository, source); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("link %s leads nowhere", to)
	}
	if !strings.HasPrefix(source, docs+"/") || path.Ext(source) == ".go" {
		return strings.TrimSuffix(remote+source+"#"+anchor, "#"), nil
	}
	if linked := s.pages[source]; linked != nil && anchor != "" && !linked.anchors[anchor] {
		return "", fmt.Errorf("link %s: %s has no heading of this name", to, source)
	}
	if name == "" {
		return to, nil
	}
	return strings.TrimSuffix(relative(p.source, source)+"#"+anchor, "#"), nil
}

// relative is the link from one source to another on the site.
func relative(from, to string) string {
	up := strings.Repeat("../", strings.Count(target(from), "/"))
	return up + target(to)
}
