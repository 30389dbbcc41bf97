package integration

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

var _ = Describe("Labels of workers", func() {
	It("are put back when a user changes or removes them, and no worker is lost, doubled or created anew", func() {
		s := newScenario("labels", 4)
		s.Submit(s.Job("a").Range(2, 4))
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "A trains")
		before, was := s.UIDs("a"), map[int]map[string]string{}
		for i := range 4 {
			was[i] = s.Worker("a", i).Labels
		}

		s.Patch(s.Worker("a", 1), fmt.Sprintf(`{"metadata":{"labels":{%q:"gold","team":"ads"}}}`, v1beta1.LabelPart))
		Eventually(func() map[string]string { return s.Worker("a", 1).Labels }).Should(HaveKeyWithValue(v1beta1.LabelPart, "core"),
			"the part is put back")
		Expect(s.Worker("a", 1).Labels).To(HaveKeyWithValue("team", "ads"), "what else the user wrote stays")

		s.Patch(s.Worker("a", 3), fmt.Sprintf(`{"metadata":{"labels":{%q:null,%q:"9-9",%q:"0"}}}`,
			v1beta1.LabelJob, v1beta1.LabelAttempt, v1beta1.LabelWorkerIndex))
		Eventually(func() map[string]string { return s.Worker("a", 3).Labels }).Should(Equal(was[3]), "after a pause, again")
		Consistently(s.Fetch("a")).WithTimeout(severalCycles).Should(And(testutil.Train(4), testutil.HaveRestarts(0)),
			"A trains on, and no loss counts")
		Expect(s.UIDs("a")).To(Equal(before), "with the same pods")
		Expect(s.Audit.Select(testutil.Doing("delete", "pods"), testutil.ByOperator)).To(BeEmpty(), "no pod was deleted")
		Expect(s.Audit.Select(testutil.Doing("patch", "pods"), testutil.ByOperator)).To(HaveLen(2), "each change was answered once")
		Expect(s.Events(s.Read("a"))).To(ContainElement(HavePrefix(
			"LabelsRestored: Worker 1's pod: label tideline.io/part was gold and is core again.")), "A's story tells it")
	})
})
