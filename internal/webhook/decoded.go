package webhook

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// maxObject is the largest object in bytes of JSON: etcd stores no larger one (--max-request-bytes).
	maxObject = 3 << 19
	// maxDecoded is the most bytes that a decoded review may take. Go takes 408 bytes for a container written as {}, so a short
	// review may become a large object. A job with as many containers and variables as its schema allows takes half of the
	// limit.
	maxDecoded = 6 << 20
	// maxQuantity is the most characters of a quantity in the schema, and maxExponent the most digits of its exponent. To parse
	// 1E-2000000000 takes minutes and gigabytes.
	maxQuantity, maxExponent = 64, 3
	// escapedKey is the memory to read a key with escapes. No field needs them.
	escapedKey = 512
	// header is the size of a string or an interface in Go, without its content.
	header = 16
)

// scan computes the memory that valid JSON takes once it is decoded, without decoding it.
type scan struct {
	data []byte
	at   int
	// object is the type as which the handler reads objects.
	object reflect.Type
	spent  int

	// wrong is the broken rule. where is the path to it, last step first, and ended is true once the path is complete.
	wrong string
	where []string
	ended bool
}

// decodedSize is the memory of a decoded review whose objects have this type. If it breaks a rule, wrong says which and where.
func decodedSize(review []byte, object reflect.Type) (size int, wrong string) {
	s := &scan{data: review, object: object}
	if s.passValue(reflect.TypeFor[admissionv1.AdmissionReview]()) {
		return s.spent, ""
	}
	slices.Reverse(s.where)
	return s.spent, strings.TrimPrefix(strings.Join(s.where, ""), ".") + ": " + s.wrong
}

func (s *scan) refuse(rule string, values ...any) bool {
	s.wrong = fmt.Sprintf(rule, values...)
	return false
}

// addStep adds a step to the path, on the way back from the broken rule.
func (s *scan) addStep(step string) bool {
	if !s.ended {
		s.where = append(s.where, step)
	}
	return false
}

func (s *scan) spendBudget(n int) bool {
	if s.spent += n; s.spent <= maxDecoded {
		return true
	}
	return s.refuse("up to this field the object takes more than the limit of %d bytes of the operator's memory: "+
		"shorten the list or the map that contains the field", maxDecoded)
}

var (
	anyMap, anyList = reflect.TypeFor[map[string]any](), reflect.TypeFor[[]any]()
	quantityType    = reflect.TypeFor[resource.Quantity]()
	rawType         = reflect.TypeFor[runtime.RawExtension]()
	readsJSON       = reflect.TypeFor[json.Unmarshaler]()
	readsText       = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// passValue skips one value and counts its memory as type t. It returns false if the value breaks a rule.
func (s *scan) passValue(t reflect.Type) bool {
	s.skipSpace()
	first := s.data[s.at]
	if first == 'n' {
		s.skipValue()
		return true
	}
	for ; t.Kind() == reflect.Pointer; t = t.Elem() {
		if !s.spendBudget(int(t.Elem().Size())) {
			return false
		}
	}
	switch reader := reflect.PointerTo(t); {
	case t == rawType:
		return s.passRaw()
	case t == quantityType:
		return s.passQuantity()
	case reader.Implements(readsJSON), reader.Implements(readsText):
		return s.spendBudget(2 * len(s.skipValue()))
	}
	switch kind := t.Kind(); {
	case kind == reflect.Interface && first == '{':
		return s.passMembers(anyMap)
	case kind == reflect.Interface && first == '[':
		return s.passElements(anyList)
	case (kind == reflect.Struct || kind == reflect.Map) && first == '{':
		return s.passMembers(t)
	case (kind == reflect.Slice || kind == reflect.Array) && first == '[':
		return s.passElements(t)
	}
	// A value of another kind is an error to the decoder, which stores nothing of it.
	return s.spendBudget(len(s.skipValue()))
}

// passRaw skips an object that the review stores as bytes, and the handler decodes.
func (s *scan) passRaw() bool {
	start := s.at
	if size := len(s.skipValue()); size > maxObject {
		return s.refuse("it has %d bytes, and the API server stores objects of at most %d: shorten it, and move "+
			"scripts to the image or a ConfigMap", size, maxObject)
	}
	s.at = start
	if s.object == nil {
		s.skipValue()
		return true
	}
	if s.passValue(s.object) {
		return true
	}
	s.ended = true
	return false
}

func (s *scan) passQuantity() bool {
	text := strings.Trim(string(s.skipValue()), `"`)
	if len(text) > maxQuantity {
		return s.refuse("it has %d characters, and a quantity may have %d: write it like 500m or 16Gi", len(text), maxQuantity)
	}
	// An escaped e would hide the exponent.
	e := strings.LastIndexAny(text, `eE`)
	if strings.Contains(text, `\`) || e >= 0 && len(strings.TrimLeft(text[e+1:], "+-")) > maxExponent {
		return s.refuse("it is %q, and the exponent of a quantity may have %d digits: write it like 500m or 16Gi", text, maxExponent)
	}
	return s.spendBudget(maxQuantity)
}

// passMembers skips an object that is decoded as a struct or a map.
func (s *scan) passMembers(t reflect.Type) bool {
	var known fieldTypes
	if t.Kind() == reflect.Struct {
		known = fieldsOf(t)
	}
	s.at++
	for s.hasMore('}') {
		key := s.skipValue()
		s.skipSpace()
		s.at++ // the colon
		var as reflect.Type
		if t.Kind() == reflect.Map {
			as = t.Elem()
			// Maps grow by doubling.
			if !s.spendBudget(2 * (len(key) + header + int(as.Size()))) {
				return s.addStep("[" + showKey(key) + "]")
			}
		} else {
			if bytes.IndexByte(key, '\\') >= 0 && !s.spendBudget(escapedKey) {
				return s.addStep("." + showKey(key))
			}
			as = known.findField(key)
		}
		if as == nil {
			s.skipValue()
		} else if !s.passValue(as) {
			if t.Kind() == reflect.Map {
				return s.addStep("[" + showKey(key) + "]")
			}
			return s.addStep("." + showKey(key))
		}
	}
	return true
}

// passElements skips a list.
func (s *scan) passElements(t reflect.Type) bool {
	s.at++
	for i := 0; s.hasMore(']'); i++ {
		if !s.spendBudget(int(t.Elem().Size())) || !s.passValue(t.Elem()) {
			return s.addStep(fmt.Sprintf("[%d]", i))
		}
	}
	return true
}

// hasMore goes to the next member and returns true, or skips the end and returns false.
func (s *scan) hasMore(end byte) bool {
	s.skipSpace()
	if s.data[s.at] == ',' {
		s.at++
		s.skipSpace()
	}
	if s.data[s.at] == end {
		s.at++
		return false
	}
	return true
}

func (s *scan) skipSpace() {
	for s.data[s.at] <= ' ' {
		s.at++
	}
}

// skipValue skips one value of any depth, and returns its text. It does not recurse: deep JSON must not take the stack.
func (s *scan) skipValue() []byte {
	s.skipSpace()
	start := s.at
	for depth := 0; ; {
		switch s.data[s.at] {
		case '"':
			for s.at++; s.data[s.at] != '"'; s.at++ {
				if s.data[s.at] == '\\' {
					s.at++
				}
			}
			s.at++
		case '{', '[':
			depth++
			s.at++
		case '}', ']':
			depth--
			s.at++
		case ',', ':', ' ', '\t', '\r', '\n':
			s.at++
			continue
		default: // a number, true, false or null
			for s.at < len(s.data) && strings.IndexByte(",]} \t\r\n", s.data[s.at]) < 0 {
				s.at++
			}
		}
		if depth == 0 {
			return s.data[start:s.at]
		}
	}
}

// showKey is a key in a path for messages, without quotes and at most 64 bytes long.
func showKey(key []byte) string {
	const longest = 64
	text := strings.Trim(string(key[:min(len(key), longest)]), `"`)
	return strings.ToValidUTF8(text, "?")
}

// fieldTypes are the types of a struct's fields by their names in lower case: encoding/json ignores case.
type fieldTypes map[string]reflect.Type

var structs sync.Map // of fieldTypes, by the struct's type

func fieldsOf(t reflect.Type) fieldTypes {
	if known, ok := structs.Load(t); ok {
		return known.(fieldTypes) //nolint:forcetypeassert // nothing else is stored
	}
	all := fieldTypes{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			for inner, its := range fieldsOf(f.Type) {
				all[inner] = its
			}
		case name == "-" || !f.IsExported():
		case name == "":
			all[strings.ToLower(f.Name)] = f.Type
		default:
			all[strings.ToLower(name)] = f.Type
		}
	}
	structs.Store(t, all)
	return all
}

// findField returns the type of the field that a quoted key names, nil for none.
func (f fieldTypes) findField(quoted []byte) reflect.Type {
	key := quoted[1 : len(quoted)-1]
	var lower [64]byte
	plain := len(key) <= len(lower)
	for i, c := range key {
		if c >= utf8.RuneSelf || c == '\\' {
			return f.findFolded(quoted)
		}
		if plain {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			lower[i] = c
		}
	}
	if !plain {
		return nil
	}
	return f[string(lower[:len(key)])]
}

// findFolded finds keys with escapes, and keys with letters that Unicode folds to ASCII ones. The decoder matches these too.
func (f fieldTypes) findFolded(quoted []byte) reflect.Type {
	var key string
	if json.Unmarshal(quoted, &key) != nil {
		return nil
	}
	for name, t := range f {
		if strings.EqualFold(name, key) {
			return t
		}
	}
	return nil
}
