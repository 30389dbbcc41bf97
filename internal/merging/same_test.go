package merging

import (
	"reflect"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// fill gives each field a value.
func fill(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[metav1.Time]():
		v.Set(reflect.ValueOf(metav1.NewTime(morning)))
	case v.Type() == reflect.TypeFor[resource.Quantity]():
		v.Set(reflect.ValueOf(resource.MustParse("1")))
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case v.Kind() == reflect.String:
		v.SetString("a")
	case v.CanInt():
		v.SetInt(1)
	}
}

// eachChange changes one field after the other, calls check, and takes the change back.
func eachChange(v reflect.Value, path string, check func(path string)) {
	with := func(other reflect.Value, what string) {
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		v.Set(other.Convert(v.Type()))
		check(path + what)
		v.Set(old)
	}
	switch {
	case v.Type() == reflect.TypeFor[metav1.Time]():
		with(reflect.ValueOf(metav1.NewTime(morning.Add(time.Second))), " later")
	case v.Type() == reflect.TypeFor[resource.Quantity]():
		with(reflect.ValueOf(resource.MustParse("2")), " more")
	case v.Kind() == reflect.Pointer:
		with(reflect.Zero(v.Type()), " absent")
		eachChange(v.Elem(), path, check)
	case v.Kind() == reflect.Slice:
		with(reflect.Zero(v.Type()), " absent")
		eachChange(v.Index(0), path+"[0]", check)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			eachChange(v.Field(i), path+"."+v.Type().Field(i).Name, check)
		}
	case v.Kind() == reflect.String:
		with(reflect.ValueOf("b"), " other")
	case v.Kind() == reflect.Bool:
		with(reflect.ValueOf(true), " true")
	default:
		with(reflect.ValueOf(2), " more")
	}
}

// TestSameStatusIsDeepEquality: what is compared without reflection is equal by reflection, field by field.
func TestSameStatusIsDeepEquality(t *testing.T) {
	g := NewWithT(t)
	for name, wants := range map[string]func(reflect.Value){"all set": fill, "all empty": func(reflect.Value) {}} {
		var a v1beta1.MergeJobStatus
		wants(reflect.ValueOf(&a).Elem())
		b := a.DeepCopy()
		g.Expect(looksSame(&a, b)).To(BeTrue(), "%s: not slow", name)
	}
	var a v1beta1.MergeJobStatus
	fill(reflect.ValueOf(&a).Elem())
	b, changes := a.DeepCopy(), 0
	eachChange(reflect.ValueOf(b).Elem(), "status", func(path string) {
		changes++
		g.Expect(equality.Semantic.DeepEqual(&a, b)).To(BeFalse(), path)
		g.Expect(sameStatus(&a, b)).To(BeFalse(), path)
		g.Expect(sameStatus(b, &a)).To(BeFalse(), path)
	})
	g.Expect(changes).To(BeNumerically(">", 80))
	g.Expect(sameStatus(&a, b)).To(BeTrue(), "all changes are taken back")

	elsewhere := metav1.NewTime(morning.In(time.FixedZone("", 3600)))
	b.LastFull.Time, b.Run.AskTime, b.DueTime = elsewhere, elsewhere, &elsewhere
	g.Expect(looksSame(&a, b)).To(BeTrue(), "times in another zone are the same")
	a.History, b.History = nil, []v1beta1.MergeResult{}
	g.Expect(sameStatus(&a, b)).To(BeTrue())
}
