package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// variant is a text as it is where a value is true; empty if it is not there at all.
type variant struct{ value, text string }

// edit replaces lines of a text from one up to another, if a value is true.
type edit struct {
	value    string
	from, to int
	lines    []string
}

// errConflict is for two components that change the same lines.
var errConflict = errors.New("two components change the same lines")

// merge makes one template of a text and its variants. A document that is there always begins with its separator.
func merge(base string, variants []variant) (string, error) {
	lines := split(base)
	var edits []edit
	for _, v := range variants {
		edits = append(edits, editsOf(v.value, lines, split(v.text))...)
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	var out strings.Builder
	at := 0
	put := func(lines []string) {
		for _, line := range lines {
			out.WriteString(line + "\n")
		}
	}
	for _, e := range edits {
		if e.from < at {
			return "", fmt.Errorf("%w: %s, at line %d of %q", errConflict, e.value, e.from, lines[e.from])
		}
		put(lines[at:e.from])
		switch {
		case len(e.lines) == 0:
			put([]string{"{{- if not " + e.value + " }}"})
			put(lines[e.from:e.to])
		case e.from == e.to:
			put([]string{"{{- if " + e.value + " }}"})
			put(e.lines)
		default:
			put([]string{"{{- if " + e.value + " }}"})
			put(e.lines)
			put([]string{"{{- else }}"})
			put(lines[e.from:e.to])
		}
		put([]string{"{{- end }}"})
		at = e.to
	}
	put(lines[at:])
	return out.String(), nil
}

// split cuts a manifest into lines, the first of which separates it from others.
func split(text string) []string {
	if text == "" {
		return nil
	}
	return append([]string{"---"}, strings.Split(strings.TrimSuffix(text, "\n"), "\n")...)
}

// editsOf are the fewest lines that make one text of another.
func editsOf(value string, from, to []string) []edit {
	if len(from) == 0 || len(to) == 0 {
		return []edit{{value: value, to: len(from), lines: to}}
	}
	common := inCommon(from, to)
	var edits []edit
	i, j := 0, 0
	for i < len(from) || j < len(to) {
		e := edit{value: value, from: i}
		for !equal(from, to, i, j) && (i < len(from) || j < len(to)) {
			if j == len(to) || i < len(from) && common[i+1][j] >= common[i][j+1] {
				i++
			} else {
				e.lines = append(e.lines, to[j])
				j++
			}
		}
		if e.to = i; e.to > e.from || len(e.lines) > 0 {
			edits = append(edits, e)
		}
		for equal(from, to, i, j) {
			i, j = i+1, j+1
		}
	}
	return edits
}

// equal is true if both texts have the same line there.
func equal(from, to []string, i, j int) bool { return i < len(from) && j < len(to) && from[i] == to[j] }

// inCommon says at i, j how many lines from[i:] and to[j:] have in common, in order.
func inCommon(from, to []string) [][]int {
	common := make([][]int, len(from)+1)
	for i := range common {
		common[i] = make([]int, len(to)+1)
	}
	for i := len(from) - 1; i >= 0; i-- {
		for j := len(to) - 1; j >= 0; j-- {
			if from[i] == to[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	return common
}
