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
	// maxObject is what an object may have in bytes of JSON: etcd stores no larger one (--max-request-bytes).
	maxObject = 3 << 19
	// maxDecoded is what a review may take once it is decoded, in bytes. Go takes 408 for a container that is written as {}, so that
	// few bytes may become many. A job with as many containers and variables as its schema allows takes half of it.
	maxDecoded = 6 << 20
	// maxQuantity and maxExponent are what the schema lets a quantity have in characters, and its exponent in digits. To read
	// 1E-2000000000 takes minutes, and gigabytes.
	maxQuantity, maxExponent = 64, 3
	// escapedKey is what it takes to read a key that is written with escapes, which no field's is.
	escapedKey = 512
	// header is what Go takes for a string or an interface, apart from its content.
	header = 16
)

// scan finds what JSON would take once it is decoded, and decodes nothing. Its JSON is valid.
type scan struct {
	data []byte
	at   int
	// object is the type as which the handler reads objects.
	object reflect.Type
	spent  int

	// wrong is the rule that is broken, and where the path to it, last step first; ended is when it is complete.
	wrong string
	where []string
	ended bool
}

// decodedSize tells what a review would take, whose objects are read as this type. If it breaks a rule, that is said in words.
func decodedSize(review []byte, object reflect.Type) (size int, wrong string) {
	s := &scan{data: review, object: object}
	if s.value(reflect.TypeFor[admissionv1.AdmissionReview]()) {
		return s.spent, ""
	}
	slices.Reverse(s.where)
	return s.spent, strings.TrimPrefix(strings.Join(s.where, ""), ".") + ": " + s.wrong
}

func (s *scan) refuse(rule string, values ...any) bool {
	s.wrong = fmt.Sprintf(rule, values...)
	return false
}

// under notes a step of the path on the way back from what is wrong.
func (s *scan) under(step string) bool {
	if !s.ended {
		s.where = append(s.where, step)
	}
	return false
}

func (s *scan) spend(n int) bool {
	if s.spent += n; s.spent <= maxDecoded {
		return true
	}
	return s.refuse("up to here the object would take more than %d bytes of the operator's memory, which is the most that it may: "+
		"shorten the list or the map that this is in", maxDecoded)
}

var (
	anyMap, anyList = reflect.TypeFor[map[string]any](), reflect.TypeFor[[]any]()
	quantityType    = reflect.TypeFor[resource.Quantity]()
	rawType         = reflect.TypeFor[runtime.RawExtension]()
	readsJSON       = reflect.TypeFor[json.Unmarshaler]()
	readsText       = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// value passes one value, which is to be read as type t. It returns false once something is wrong.
func (s *scan) value(t reflect.Type) bool {
	s.space()
	first := s.data[s.at]
	if first == 'n' {
		s.skip()
		return true
	}
	for ; t.Kind() == reflect.Pointer; t = t.Elem() {
		if !s.spend(int(t.Elem().Size())) {
			return false
		}
	}
	switch reader := reflect.PointerTo(t); {
	case t == rawType:
		return s.raw()
	case t == quantityType:
		return s.quantity()
	case reader.Implements(readsJSON), reader.Implements(readsText):
		return s.spend(2 * len(s.skip()))
	}
	switch kind := t.Kind(); {
	case kind == reflect.Interface && first == '{':
		return s.members(anyMap)
	case kind == reflect.Interface && first == '[':
		return s.elements(anyList)
	case (kind == reflect.Struct || kind == reflect.Map) && first == '{':
		return s.members(t)
	case (kind == reflect.Slice || kind == reflect.Array) && first == '[':
		return s.elements(t)
	}
	// What is not of the type's kind is an error to the decoder, which keeps nothing of it.
	return s.spend(len(s.skip()))
}

// raw passes an object, which is kept as it is and then read by the handler.
func (s *scan) raw() bool {
	start := s.at
	if size := len(s.skip()); size > maxObject {
		return s.refuse("it has %d bytes, and the API server stores no object of more than %d: shorten what is long in it, and have "+
			"scripts in the image or in a ConfigMap", size, maxObject)
	}
	s.at = start
	if s.object == nil {
		s.skip()
		return true
	}
	if s.value(s.object) {
		return true
	}
	s.ended = true
	return false
}

func (s *scan) quantity() bool {
	text := strings.Trim(string(s.skip()), `"`)
	if len(text) > maxQuantity {
		return s.refuse("it has %d characters, and a quantity has %d at most: write it as 500m or 16Gi", len(text), maxQuantity)
	}
	// An escaped e would hide the exponent.
	e := strings.LastIndexAny(text, `eE`)
	if strings.Contains(text, `\`) || e >= 0 && len(strings.TrimLeft(text[e+1:], "+-")) > maxExponent {
		return s.refuse("it is %q, and the exponent of a quantity has %d digits at most: write it as 500m or 16Gi", text, maxExponent)
	}
	return s.spend(maxQuantity)
}

// members passes an object that is to be read as a struct or a map.
func (s *scan) members(t reflect.Type) bool {
	var known fieldTypes
	if t.Kind() == reflect.Struct {
		known = fieldsOf(t)
	}
	s.at++
	for s.more('}') {
		key := s.skip()
		s.space()
		s.at++ // the colon
		var as reflect.Type
		if t.Kind() == reflect.Map {
			as = t.Elem()
			// Maps grow by doubling.
			if !s.spend(2 * (len(key) + header + int(as.Size()))) {
				return s.under("[" + shown(key) + "]")
			}
		} else {
			if bytes.IndexByte(key, '\\') >= 0 && !s.spend(escapedKey) {
				return s.under("." + shown(key))
			}
			as = known.find(key)
		}
		if as == nil {
			s.skip()
		} else if !s.value(as) {
			if t.Kind() == reflect.Map {
				return s.under("[" + shown(key) + "]")
			}
			return s.under("." + shown(key))
		}
	}
	return true
}

// elements passes a list.
func (s *scan) elements(t reflect.Type) bool {
	s.at++
	for i := 0; s.more(']'); i++ {
		if !s.spend(int(t.Elem().Size())) || !s.value(t.Elem()) {
			return s.under(fmt.Sprintf("[%d]", i))
		}
	}
	return true
}

// more tells whether another member follows, and goes to it; at the end it passes the end.
func (s *scan) more(end byte) bool {
	s.space()
	if s.data[s.at] == ',' {
		s.at++
		s.space()
	}
	if s.data[s.at] == end {
		s.at++
		return false
	}
	return true
}

func (s *scan) space() {
	for s.data[s.at] <= ' ' {
		s.at++
	}
}

// skip passes one value, however deep, and returns it.
func (s *scan) skip() []byte {
	s.space()
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

// shown is a key as it is shown in a path, without quotes, and not as long as it may be.
func shown(key []byte) string {
	const longest = 64
	text := strings.Trim(string(key[:min(len(key), longest)]), `"`)
	return strings.ToValidUTF8(text, "?")
}

// fieldTypes are the types of a struct's fields by their names in lower case: encoding/json heeds no case.
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

// find returns the type of the field that a quoted key names, nil for none.
func (f fieldTypes) find(quoted []byte) reflect.Type {
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

// findFolded finds keys with escapes, and those of letters that Unicode folds to ones of ASCII.
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
