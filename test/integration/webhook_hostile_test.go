package integration

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

// mallory may do what users of a namespace may.
const mallory = "mallory@example.com"

const year = 365 * 24 * time.Hour

// large has a job carry so many bytes in its environment.
func large(bytes int) func(*v1beta1.ElasticTrainingJob) {
	return func(job *v1beta1.ElasticTrainingJob) {
		for i := range 16 {
			job.Spec.Template.Spec.Containers[0].Env = append(job.Spec.Template.Spec.Containers[0].Env,
				corev1.EnvVar{Name: fmt.Sprint("v", i), Value: strings.Repeat("x", bytes/16)})
		}
	}
}

// tryAsUser has ways in which a review found that one user can hurt others, by its numbers, be tried by a user of one namespace.
func tryAsUser(installation func() *testutil.Installation, scenario func(name string, gpus ...int64) *testutil.Scenario) {
	type change = func(*v1beta1.ElasticTrainingJob)
	DescribeTable("refuse a user of a namespace, and create nothing for", func(hostile change, words string) {
		s := scenario("hostile")
		Expect(as(s, mallory, "edit").Create(s.Context(), s.Job("a").Range(1, 2).With(hostile).Obj())).To(
			MatchError(ContainSubstring(words)), "the answer says what is wrong")
		_, err := s.Fetch("a")()
		Expect(err).To(MatchError(apierrors.IsNotFound, "IsNotFound"), "there is no such job")
	},
		Entry("T1: gates that keep its pods from being placed", func(job *v1beta1.ElasticTrainingJob) {
			job.Spec.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/never"}}
		}, "spec.template.spec.schedulingGates"),
		Entry("T10: a year in which its pods may end", func(job *v1beta1.ElasticTrainingJob) {
			job.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To(int64(year / time.Second))
		}, "spec.template.spec.terminationGracePeriodSeconds"),
		Entry("T10: a year in which it may save", func(job *v1beta1.ElasticTrainingJob) {
			job.Spec.Checkpoint.GraceSeconds = ptr.To(int32(year / time.Second))
		}, "spec.checkpoint.graceSeconds"),
		Entry("T12: a template of which the operator would keep a megabyte", large(1_000_000), "takes so many bytes of memory"),
		Entry("T13: thousands of terms about nodes", func(job *v1beta1.ElasticTrainingJob) {
			var terms []corev1.NodeSelectorRequirement
			for i := range 3000 {
				terms = append(terms, corev1.NodeSelectorRequirement{Key: fmt.Sprint("k", i), Operator: corev1.NodeSelectorOpExists})
			}
			job.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: terms}},
				},
			}}
		}, "matchExpressions"),
		Entry("T14: surplus that stays for an hour while gangs wait", func(job *v1beta1.ElasticTrainingJob) {
			job.Spec.Elasticity.Shrink.MinRunSeconds = ptr.To(int32(time.Hour / time.Second))
		}, "spec.elasticity.shrink.minRunSeconds"),
	)

	It("T7: outlive forty reviews of a megabyte at once, and serve others", suite.Long, func() {
		s, others := scenario("hostile"), scenario("served", 2)
		his := as(s, mallory, "edit")
		process := installation().Operator.Process()
		var all errgroup.Group
		for i := range 40 {
			all.Go(func() error {
				err := his.Create(s.Context(), s.Job(fmt.Sprint("a", i)).Range(1, 2).With(large(1_000_000)).Obj())
				if err == nil {
					return fmt.Errorf("job a%d was let in", i)
				}
				return nil
			})
		}
		Expect(as(others, alice, "edit").Create(others.Context(), others.Job("b").Range(1, 2).Obj())).To(Succeed(), "meanwhile")
		Expect(all.Wait()).To(Succeed(), "all are refused")
		Eventually(others.Fetch("b")).Should(testutil.Train(2), "hers trains")
		Expect(installation().Operator.Process()).To(Equal(process), "the operator is the same process")
		Expect(installation().Operator.Ended()).NotTo(HaveOccurred(), "and it runs")
	})
}
