package view

import (
	"fmt"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// mostAsked is how much of a field is read and shown again, in bytes.
const mostAsked = 253

// Form is what people ask, and the answer.
type Form struct {
	Fields []Field
	// Wrong says what is wrong with the fields; Said is the answer.
	Wrong, Said []string
}

// Field is an input of a form.
type Field struct {
	Name, Label, Value string
	// Options are all values that there are; none for any.
	Options []string
	// Optional is true for one that may stay empty.
	Optional bool
}

// fill has the fields hold what a query says.
func (f *Form) fill(query url.Values) {
	for i := range f.Fields {
		f.Fields[i].Value = text.ClipLine(query.Get(f.Fields[i].Name), mostAsked)
	}
}

// value is what a field holds.
func (f *Form) value(name string) string {
	for i := range f.Fields {
		if f.Fields[i].Name == name {
			return f.Fields[i].Value
		}
	}
	return ""
}

// refuse notes that a field does not hold what it must.
func (f *Form) refuse(name, rule string) {
	for _, of := range f.Fields {
		if of.Name == name {
			f.Wrong = append(f.Wrong, fmt.Sprintf("%s: %q is not %s.", of.Label, of.Value, rule))
		}
	}
}

// number reads a whole number, and refuses others.
func (f *Form) number(name string, least, most int64) int64 {
	n, err := strconv.ParseInt(f.value(name), 10, 64)
	if err != nil || n < least || n > most {
		f.refuse(name, fmt.Sprintf("a whole number from %d to %d", least, most))
	}
	return n
}

// device reads the resource of an accelerator, and refuses others.
func (f *Form) device(name string, cfg *config.Configuration) corev1.ResourceName {
	if _, known := cfg.Accelerators.ModelLabel(f.value(name)); !known {
		f.refuse(name, "one of "+cfg.Accelerators.JoinedNames())
	}
	return corev1.ResourceName(f.value(name))
}
