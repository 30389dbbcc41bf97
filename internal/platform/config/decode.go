package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// decode fills a value from a tree, and collects everything that does not fit. encoding/json would stop at the first wrong
// type, and accept field names in another case. A field without a value (`tiers:`) counts as left out.
func (p *problems) decode(path string, tree any, into reflect.Value) {
	if tree == nil {
		return
	}
	switch into.Kind() { //nolint:exhaustive // a Configuration has fields of these kinds only; TestEveryFieldIsRead holds it to them
	case reflect.Struct:
		p.decodeStruct(path, tree, into)
	case reflect.Map:
		p.decodeMap(path, tree, into)
	case reflect.Slice:
		p.decodeSlice(path, tree, into)
	case reflect.Bool:
		if value, ok := tree.(bool); ok {
			into.SetBool(value)
			return
		}
		p.value(path, tree, "it must be true or false, without quotes")
	case reflect.Int32:
		if number, ok := tree.(json.Number); ok {
			if value, err := strconv.ParseInt(number.String(), 10, 32); err == nil {
				into.SetInt(value)
				return
			}
		}
		p.value(path, tree, "it must be a whole number, without quotes and of at most nine digits")
	case reflect.String:
		if value, ok := tree.(string); ok {
			into.SetString(value)
			return
		}
		p.value(path, tree, "it must be text: put it in quotes")
	}
}

func (p *problems) decodeStruct(path string, tree any, into reflect.Value) {
	object, ok := tree.(map[string]any)
	if !ok {
		p.wantMapping(path, tree)
		return
	}
	fields := FieldNames(into.Type())
	for _, key := range slices.Sorted(maps.Keys(object)) {
		i := slices.Index(fields, key)
		if i < 0 {
			p.add(fieldPath(path, showName(key)), "is not a field: there may be "+strings.Join(slices.Sorted(slices.Values(fields)), ", "))
			continue
		}
		p.decode(fieldPath(path, key), object[key], into.Field(i))
	}
}

func (p *problems) decodeMap(path string, tree any, into reflect.Value) {
	object, ok := tree.(map[string]any)
	if !ok {
		p.wantMapping(path, tree)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		value := reflect.New(into.Type().Elem()).Elem()
		p.decode(entryPath(path, key), object[key], value)
		into.SetMapIndex(reflect.ValueOf(key), value)
	}
}

func (p *problems) decodeSlice(path string, tree any, into reflect.Value) {
	list, ok := tree.([]any)
	if !ok {
		p.value(path, tree, "it must be a list: lines that begin with a dash")
		return
	}
	values := reflect.MakeSlice(into.Type(), len(list), len(list))
	for i, item := range list {
		p.decode(fmt.Sprintf("%s[%d]", path, i), item, values.Index(i))
	}
	into.Set(values)
}

// wantMapping reports a value that stands where fields should.
func (p *problems) wantMapping(path string, tree any) {
	p.value(path, tree, "it must be a mapping: fields on lines of their own, indented below it")
}

// FieldNames are the names of a struct's fields in a file, in the order of the struct.
func FieldNames(of reflect.Type) []string {
	names := make([]string, of.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(of.Field(i).Tag.Get("json"), ",")
	}
	return names
}

// showName is a name from a file, in quotes unless it looks like a field.
func showName(name string) string {
	if len(name) <= longest && fieldLike.MatchString(name) {
		return name
	}
	return quote(name)
}

var fieldLike = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// fieldPath is the path of a field below a path.
func fieldPath(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

// entryPath is the path of a map's entry. Keys of maps have dots and slashes, so they stand in brackets.
func entryPath(path, key string) string { return path + "[" + quote(key) + "]" }
