package conditions

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

var (
	earlier = metav1.NewTime(time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC))
	now     = metav1.NewTime(earlier.Add(time.Hour))
)

func TestConditionsAtRestStayAsTheyAre(t *testing.T) {
	g := NewWithT(t)
	var list []metav1.Condition
	first := Writer{List: &list, Generation: 1, Now: earlier}
	first.Set(v1beta1.ConditionStalled, metav1.ConditionTrue, "InvalidSpec", "No.")
	first.Set(v1beta1.ConditionReady, metav1.ConditionFalse, "InvalidSpec", "No.")
	first.RestoreTransitionTimes(nil)
	g.Expect(list).To(HaveExactElements(HaveField("Type", "Ready"), HaveField("Type", "Stalled")), "in the order of reading")

	before := append([]metav1.Condition{}, list...)
	second := Writer{List: &list, Generation: 1, Now: now}
	second.Remove(v1beta1.ConditionReady, v1beta1.ConditionStalled, v1beta1.ConditionSuspended)
	second.Set(v1beta1.ConditionStalled, metav1.ConditionTrue, "InvalidSpec", "No.")
	second.Set(v1beta1.ConditionReady, metav1.ConditionFalse, "InvalidSpec", "No.")
	second.RestoreTransitionTimes(before)
	g.Expect(list).To(Equal(before), "written anew with the same words, they are the same")

	second.Set(v1beta1.ConditionReady, metav1.ConditionTrue, "Merged", strings.Repeat("x", 5000))
	second.RestoreTransitionTimes(before)
	g.Expect(list[0].LastTransitionTime).To(Equal(now), "another status is a transition")
	g.Expect(len(list[0].Message)).To(BeNumerically("<=", 4096))
	g.Expect(list[1].LastTransitionTime).To(Equal(earlier))
}

// Who adds a condition to the API says where it is read.
func TestEveryConditionHasAPlace(t *testing.T) {
	g := NewWithT(t)
	files, err := filepath.Glob("../../../api/v1beta1/*_conditions.go")
	g.Expect(err).NotTo(HaveOccurred())
	var all []string
	for _, file := range files {
		code, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		for _, found := range constant.FindAllSubmatch(code, -1) {
			all = append(all, string(found[1]))
		}
	}
	g.Expect(order).To(ConsistOf(all))
}

var constant = regexp.MustCompile(`(?m)^\tCondition\w+ += "(\w+)"$`)
