package report

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// parse reads HTML as a browser does.
func parse(t *testing.T, content string) *html.Node {
	t.Helper()
	root, err := html.Parse(strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// all are the elements with a tag, in the order of the page.
func all(root *html.Node, tag string) []*html.Node {
	var list []*html.Node
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.Data == tag {
			list = append(list, n)
		}
	}
	return list
}

// byID is the element with an id.
func byID(t *testing.T, root *html.Node, id string) *html.Node {
	t.Helper()
	for n := range root.Descendants() {
		if attribute(n, "id") == id {
			return n
		}
	}
	t.Fatalf("there is no element %q", id)
	return nil
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// read is what a reader sees of an element: its text, without the page's style.
func read(n *html.Node) string {
	var parts []string
	for d := range n.Descendants() {
		if d.Type == html.TextNode && d.Parent.Data != "style" && d.Parent.Data != "title" {
			parts = append(parts, d.Data)
		}
	}
	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
}

// rows are the texts of a table's cells, without its head.
func rows(table *html.Node) [][]string {
	var list [][]string
	for _, tr := range all(table, "tr")[1:] {
		var cells []string
		for cell := range tr.ChildNodes() {
			if cell.Type == html.ElementNode {
				cells = append(cells, read(cell))
			}
		}
		list = append(list, cells)
	}
	return list
}

// skeleton is all of a page but what is said in it: elements, and their attributes but for texts of pictures.
func skeleton(root *html.Node) []string {
	var list []string
	for n := range root.Descendants() {
		switch n.Type {
		case html.ElementNode:
			said := []string{"<" + n.Data}
			for _, a := range n.Attr {
				if a.Key == "alt" {
					a.Val = ""
				}
				said = append(said, a.Key+"="+a.Val)
			}
			list = append(list, strings.Join(said, " "))
		case html.CommentNode:
			list = append(list, "<!--"+n.Data)
		default:
		}
	}
	return list
}

// difference is where two skeletons differ first.
func difference(a, b []string) string {
	for i := range max(len(a), len(b)) {
		if x, y := at(a, i), at(b, i); x != y {
			return x + " became " + y
		}
	}
	return ""
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "nothing"
}

// readAll are the texts of elements.
func readAll(list []*html.Node) []string {
	said := make([]string, 0, len(list))
	for _, n := range list {
		said = append(said, read(n))
	}
	return slices.Clip(said)
}
