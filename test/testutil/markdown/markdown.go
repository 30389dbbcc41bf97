// Package markdown reads the project's documentation for tests that hold it to what it says.
package markdown

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Block is a text between fences.
type Block struct {
	// Line is that of its first fence, counted from 1.
	Line int
	// Language is the first word after the fence, empty if there is none; Note is what follows it.
	Language, Note string
	// Text is without the fences and without the indentation of the first.
	Text string
}

var fence = regexp.MustCompile("^( *)```(\\S*) *(.*)$")

// Blocks are the texts between fences of a page, in their order.
func Blocks(page string) []Block {
	var blocks []Block
	var open *Block
	indent := ""
	for i, line := range strings.Split(page, "\n") {
		match := fence.FindStringSubmatch(line)
		switch {
		case open == nil && match != nil:
			indent, open = match[1], &Block{Line: i + 1, Language: match[2], Note: match[3]}
		case open != nil && match != nil:
			blocks, open = append(blocks, *open), nil
		case open != nil:
			open.Text += strings.TrimPrefix(line, indent) + "\n"
		}
	}
	return blocks
}

// In returns the blocks of a language.
func In(language string, blocks []Block) []Block {
	return slices.DeleteFunc(slices.Clone(blocks), func(b Block) bool { return b.Language != language })
}

// Chapter is what a page has below a heading of the second level, up to the next; empty if it has no such heading.
func Chapter(page, heading string) string {
	_, text, _ := strings.Cut(page, "\n## "+heading+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// Pages are the paths of all pages of a repository that people read: those at its root, and those below docs.
func Pages(repository fs.FS) ([]string, error) {
	pages, err := fs.Glob(repository, "*.md")
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(repository, "docs", func(name string, _ fs.DirEntry, err error) error {
		if path.Ext(name) == ".md" {
			pages = append(pages, name)
		}
		return err
	})
	return pages, err
}

// Marked is what a page has between the marks of a command, which writes it there; false if it has no such marks.
func Marked(page, command string) (text string, ok bool) {
	_, text, _, ok = cutMarked(page, command)
	return text, ok
}

// ReplaceMarked returns the page with other text between the marks of a command, which are comments:
//
//	<!-- begin: make bench -->
//	<!-- end: make bench -->
func ReplaceMarked(page, command, text string) (string, error) {
	before, _, after, ok := cutMarked(page, command)
	if !ok {
		return "", fmt.Errorf("the page has no %s and %s", mark("begin", command), mark("end", command))
	}
	return before + mark("begin", command) + "\n\n" + text + "\n" + mark("end", command) + after, nil
}

func cutMarked(page, command string) (before, text, after string, ok bool) {
	before, rest, begun := strings.Cut(page, mark("begin", command))
	text, after, ended := strings.Cut(rest, mark("end", command))
	return before, text, after, begun && ended
}

func mark(what, command string) string { return "<!-- " + what + ": " + command + " -->" }
