package main

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// page is a page of the documentation, parsed.
type page struct {
	// source is its path in the repository.
	source  string
	content []byte
	tree    ast.Node
	title   string
	// anchors are the names of its headings.
	anchors map[string]bool
}

var markdown = goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))

func parse(source string, content []byte) *page {
	names := &headings{taken: map[string]bool{}}
	tree := markdown.Parser().Parse(text.NewReader(content), parser.WithContext(parser.NewContext(parser.WithIDs(names))))
	p := &page{source: source, content: content, tree: tree, title: path.Base(source), anchors: names.taken}
	for _, heading := range find[*ast.Heading](tree) {
		if heading.Level == 1 {
			p.title = plain(heading, content)
			break
		}
	}
	return p
}

// target is the path on the site of a file of docs.
func target(source string) string {
	name := strings.TrimPrefix(source, docs+"/")
	folder, file := path.Split(name)
	if file == "README.md" {
		return folder + "index.html"
	}
	if page, isPage := strings.CutSuffix(name, ".md"); isPage {
		return page + ".html"
	}
	return name
}

// find returns all nodes of a kind below one, in their order.
func find[T ast.Node](below ast.Node) []T {
	var found []T
	_ = ast.Walk(below, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if node, ok := n.(T); ok && entering {
			found = append(found, node)
		}
		return ast.WalkContinue, nil
	})
	return found
}

// plain is the text of a node without its markup.
func plain(node ast.Node, source []byte) string {
	var b strings.Builder
	for _, t := range find[*ast.Text](node) {
		b.Write(t.Segment.Value(source))
	}
	return b.String()
}

// headings names headings as GitHub does, so that links lead to the same place on both.
type headings struct{ taken map[string]bool }

var unnamed = regexp.MustCompile("[^a-z0-9 _-]")

// Generate implements parser.IDs.
func (h *headings) Generate(value []byte, _ ast.NodeKind) []byte {
	name := strings.ReplaceAll(unnamed.ReplaceAllString(strings.ToLower(string(value)), ""), " ", "-")
	free := name
	for i := 1; h.taken[free]; i++ {
		free = name + "-" + strconv.Itoa(i)
	}
	h.taken[free] = true
	return []byte(free)
}

// Put implements parser.IDs.
func (h *headings) Put(value []byte) { h.taken[string(value)] = true }

// body is the page as HTML, with its links changed.
func (p *page) body(change func(link string) (string, error)) ([]byte, error) {
	for _, link := range find[*ast.Link](p.tree) {
		changed, err := change(string(link.Destination))
		if err != nil {
			return nil, err
		}
		link.Destination = []byte(changed)
	}
	for _, image := range find[*ast.Image](p.tree) {
		if bytes.Contains(image.Destination, []byte("://")) {
			return nil, fmt.Errorf("it shows %s: pages load nothing from elsewhere", image.Destination)
		}
		changed, err := change(string(image.Destination))
		if err != nil {
			return nil, err
		}
		image.Destination = []byte(changed)
	}
	var b bytes.Buffer
	err := markdown.Renderer().Render(&b, p.content, p.tree)
	return b.Bytes(), err
}
