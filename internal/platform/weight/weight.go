// Package weight estimates what an object takes of memory, and says how much of what users write is kept of it.
package weight

import "reflect"

const (
	// MostOfTemplate is the largest weight of a pod template that is run, in bytes: an eighth of what etcd stores of an object.
	MostOfTemplate = 128 << 10
	// MostOfPod is the largest weight of what caches keep of a pod, in bytes: far more than rules, volumes and requests need.
	MostOfPod = 32 << 10
	// MostOfMetadata is the largest weight of the labels, of the owners and of the finalizers that caches keep of an object, each.
	MostOfMetadata = 16 << 10
)

// Oversized is the name of a volume by which a pod in a cache says that its rules and volumes were dropped.
const Oversized = "tideline.io/oversized"

// OversizedAnnotation has, on a job or merge in a cache whose template was dropped, what that weighs.
const OversizedAnnotation = "tideline.io/oversized"

// Of is about how many bytes v takes: itself and all that it refers to. Of a map it counts keys and values, and not its table.
func Of(v any) int {
	value := reflect.ValueOf(v)
	if !value.IsValid() {
		return 0
	}
	return int(value.Type().Size()) + referred(value)
}

// referred is what a value refers to, without the value itself.
func referred(v reflect.Value) int {
	n := 0
	switch v.Kind() { //nolint:exhaustive // the others refer to nothing
	case reflect.String:
		n = v.Len()
	case reflect.Slice:
		n = v.Len() * int(v.Type().Elem().Size())
		if refers(v.Type().Elem()) {
			for i := range v.Len() {
				n += referred(v.Index(i))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			n += referred(v.Index(i))
		}
	case reflect.Map:
		n = v.Len() * int(v.Type().Key().Size()+v.Type().Elem().Size())
		for each := v.MapRange(); each.Next(); {
			n += referred(each.Key()) + referred(each.Value())
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			n = int(v.Elem().Type().Size()) + referred(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += referred(v.Field(i))
		}
	}
	return n
}

// refers is false for elements that are all there is, such as bytes.
func refers(t reflect.Type) bool {
	switch t.Kind() { //nolint:exhaustive // the others refer to nothing
	case reflect.String, reflect.Slice, reflect.Array, reflect.Map, reflect.Pointer, reflect.Interface, reflect.Struct:
		return true
	}
	return false
}
