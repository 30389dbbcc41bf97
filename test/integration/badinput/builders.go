package badinput

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// casesOf is a list of cases of one kind.
func casesOf(kind string, parts ...[]Case) []Case {
	all := slices.Concat(parts...)
	for i := range all {
		all[i].Kind = kind
	}
	return all
}

// updatesOf is a list of changes of one kind.
func updatesOf(kind string, parts ...[]Update) []Update {
	all := slices.Concat(parts...)
	for i := range all {
		all[i].Kind = kind
	}
	return all
}

// refused is a mistake whose causes are named each as path, kind of mistake and rule.
func refused(what, patch string, says ...string) Case {
	return Case{What: what, Patch: patch, Says: says}
}

// ofPods gives the metadata of a template's pods a value that is refused.
func ofPods(what, name, value, says string) Case {
	return refused(what, `{"spec":{"template":{"metadata":{"`+name+`":`+value+`}}}}`, "spec.template.metadata."+name+says)
}

// blind marks a mistake after which the API server checks no further rules.
func (c Case) blind() Case {
	c.Blind = true
	return c
}

// decoded gives the causes that are left for the operator to see.
func (c Case) decoded(causes ...string) Case {
	c.Decoded = append([]string{}, causes...)
	return c
}

// unreadable marks a mistake with which no program in Go reads the object.
func (c Case) unreadable() Case {
	c.Unreadable = true
	return c
}

// overwritten marks a mistake that the webhooks overwrite.
func (c Case) overwritten() Case {
	c.Overwritten = true
	return c
}

// changed is a change of the job that was made with a patch.
func changed(what, before, patch, says string) Update {
	return Update{What: what, Before: before, Patch: patch, Says: says}
}

// limits are those of a number.
type limits struct {
	path             string
	minimum, maximum int
}

// within has each number once below its range, and once beyond.
func within(fields []limits) []Case {
	var cases []Case
	for _, f := range fields {
		cases = append(cases, tooSmall(f.path, f.minimum-1, f.minimum), tooLarge(f.path, f.maximum+1, f.maximum))
	}
	return cases
}

func tooSmall(path string, value, minimum int) Case {
	return refused(fmt.Sprintf("%s of %d", path, value), setting(path, strconv.Itoa(value)), fmt.Sprintf(
		"%[1]s: Invalid value: %[2]d: %[1]s in body should be greater than or equal to %[3]d", path, value, minimum))
}

func tooLarge(path string, value, maximum int) Case {
	return refused(fmt.Sprintf("%s of %d", path, value), setting(path, strconv.Itoa(value)), fmt.Sprintf(
		"%[1]s: Invalid value: %[2]d: %[1]s in body should be less than or equal to %[3]d", path, value, maximum))
}

// setting is the patch that sets the field at a dotted path to a value in JSON.
func setting(path, value string) string {
	names := strings.Split(path, ".")
	return `{"` + strings.Join(names, `":{"`) + `":` + value + strings.Repeat("}", len(names))
}

// unknown is a word that is none of those that a field may have.
func unknown(path, word string, known ...string) Case {
	return refused("an unknown "+path, setting(path, strconv.Quote(word)), unsupported(path, word, known...)).blind()
}

// unsupported are the words for that.
func unsupported(path, word string, known ...string) string {
	return fmt.Sprintf("%s: Unsupported value: %q: supported values: ", path, word) + `"` + strings.Join(known, `", "`) + `"`
}

// empty is a word that has no letters, where one is the least.
func empty(path string) Case {
	return refused(path+" empty", setting(path, `""`), tooShort(path))
}

// tooShort are the words for that.
func tooShort(path string) string {
	return fmt.Sprintf(`%[1]s: Invalid value: "": %[1]s in body should be at least 1 chars long`, path)
}

// tooLong is a word of one letter too many.
func tooLong(path string, maximum int) Case {
	return refused(fmt.Sprintf("%s of %d letters", path, maximum+1), setting(path, strconv.Quote(strings.Repeat("x", maximum+1))),
		fmt.Sprintf("%s: Too long: may not be more than %d bytes", path, maximum)).blind()
}

// mismatch is a word that does not match the pattern of a field.
func mismatch(path, word, pattern string) Case {
	return refused(fmt.Sprintf("%s of %q", path, word), setting(path, strconv.Quote(word)),
		fmt.Sprintf("%[1]s: Invalid value: %[2]q: %[1]s in body should match '%[3]s'", path, word, pattern))
}

// named is a wrong name; more is added to the patch.
func named(what, name, more, says string) Case {
	return refused("a name "+what, `{"metadata":{"name":"`+name+`"}`+more+`}`,
		"metadata.name: Invalid value: name ("+name+") "+says)
}

// decided is a field of the pod that the user may not set, because Tideline decides it. The words have no value that is a list.
func decided(field, value, rule string) Case {
	path := "spec.template.spec." + field
	if !strings.HasPrefix(value, "[") {
		rule = value + ": " + rule
	}
	return refused(path, inPod(field, value), path+": Invalid value: "+rule)
}

// inPod is the patch that sets a field of the pod template.
func inPod(field, value string) string { return setting("spec.template.spec."+field, value) }

// many is a list of n elements; the format has one number.
func many(n int, format string) string {
	elements := make([]string, n)
	for i := range elements {
		elements[i] = fmt.Sprintf(format, i)
	}
	return "[" + strings.Join(elements, ",") + "]"
}
