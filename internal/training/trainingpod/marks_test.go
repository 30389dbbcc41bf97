package trainingpod

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// Otherwise each pod would be patched as soon as it is made.
func TestPodsAreMadeWithTheMarksThatTheyShouldHave(t *testing.T) {
	for _, owner := range []string{"", "alice@example.com"} {
		b := blueprint()
		b.Job.Spec.Owner = owner
		for i := range int32(4) {
			have := podstate.MarksOf(b.NewPod(i))
			NewWithT(t).Expect(b.MarksByIndex()(i, have).Differences(have)).To(BeEmpty(), "worker %d of %q", i, owner)
			NewWithT(t).Expect(b.MarksByIndex()(i, podstate.Marks{}).Part).NotTo(BeEmpty())
		}
	}
}

func TestOwnersOfPodsThatExist(t *testing.T) {
	b := blueprint()
	b.Job.Spec.Owner = "bob"
	ofBob := podstate.MarksOf(b.NewPod(0))
	for name, c := range map[string]struct {
		owner, hash string
		changed     []string
	}{
		"as made":                               {"bob", OwnerHash("bob"), nil},
		"made before the job got another owner": {"alice", OwnerHash("alice"), nil},
		"made before the job got an owner":      {"", "", nil},
		"the annotation was changed":            {"eve", OwnerHash("bob"), []string{v1beta1.AnnotationOwner}},
		"the label was changed":                 {"bob", "x", []string{v1beta1.LabelOwnerHash}},
		"the annotation was removed":            {"", OwnerHash("bob"), []string{v1beta1.AnnotationOwner}},
	} {
		t.Run(name, func(t *testing.T) {
			have := ofBob
			have.Owner, have.OwnerHash = c.owner, c.hash
			var keys []string
			for _, m := range b.MarksByIndex()(0, have).Differences(have) {
				keys = append(keys, m.Key)
			}
			NewWithT(t).Expect(keys).To(Equal(c.changed))
		})
	}
}
