package convert

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Note says of one field of a PyTorchJob that it could not be carried over, or that it means something else now.
type Note struct {
	// Path of the field in the PyTorchJob, for example spec.runPolicy.schedulingPolicy.queue.
	Path string
	// Value of the field, shortened to a line; empty when the field is not set.
	Value string
	// Meaning says what becomes of it.
	Meaning string
	// Do says what to do; empty when there is nothing to do.
	Do string
	// Refused is whether the API server will refuse the ElasticTrainingJob until somebody does that.
	Refused bool
}

// newNote speaks of a value, or with nil of a field that is not set.
func newNote(path string, value any, meaning, do string) Note {
	n := Note{Path: path, Meaning: meaning, Do: do}
	if value != nil {
		n.Value = show(value)
	}
	return n
}

// String is the note on one line.
func (n Note) String() string {
	what := n.Path + " is not set"
	if n.Value != "" {
		what = n.Path + " = " + n.Value
	}
	if n.Do == "" {
		return what + ": " + n.Meaning
	}
	return what + ": " + n.Meaning + "; " + n.Do
}

// longestValue bounds how much of a value a note shows, in characters.
const longestValue = 80

// show writes a value on one line: a plain word as it is, anything else as JSON, both shortened.
func show(value any) string {
	if s, ok := value.(string); ok {
		return shorten(plainOrQuoted(s))
	}
	written, err := json.Marshal(value)
	if err != nil {
		return shorten(strconv.Quote(fmt.Sprint(value)))
	}
	return shorten(plainOrQuoted(strings.Trim(string(written), `"`)))
}

// plainOrQuoted quotes what would break a line, or steer a terminal.
func plainOrQuoted(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

func shorten(s string) string {
	if runes := []rune(s); len(runes) > longestValue {
		return string(runes[:longestValue-1]) + "…"
	}
	return s
}
