package testutil

import (
	"fmt"

	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// HavePhase matches a job in that phase.
func HavePhase(phase v1beta1.JobPhase) types.GomegaMatcher {
	return jobMatcher{fmt.Sprintf("be in phase %s", phase), func(job *v1beta1.ElasticTrainingJob) bool {
		return job.Status.Phase == phase
	}}
}

// HaveReason matches a job that shows that word under WHY.
func HaveReason(reason string) types.GomegaMatcher {
	return jobMatcher{"say " + reason, func(job *v1beta1.ElasticTrainingJob) bool { return job.Status.Reason == reason }}
}

// Wait matches a job that is Pending, and says why in that word.
func Wait(reason string) types.GomegaMatcher {
	return jobMatcher{"wait and say " + reason, func(job *v1beta1.ElasticTrainingJob) bool {
		return job.Status.Phase == v1beta1.PhasePending && job.Status.Reason == reason
	}}
}

// Train matches a job that is Running with n ready workers.
func Train(n int) types.GomegaMatcher {
	return jobMatcher{fmt.Sprintf("train with %d workers", n), func(job *v1beta1.ElasticTrainingJob) bool {
		return job.Status.Phase == v1beta1.PhaseRunning && job.Status.ReadyReplicas == int32(n) &&
			meta.IsStatusConditionTrue(job.Status.Conditions, v1beta1.ConditionReady)
	}}
}

// HaveRestarts matches a job that counts n restarts.
func HaveRestarts(n int) types.GomegaMatcher {
	return jobMatcher{fmt.Sprintf("count %d restarts", n), func(job *v1beta1.ElasticTrainingJob) bool {
		return job.Status.Restarts == int32(n)
	}}
}

// HaveCondition matches a job with a condition of that status and reason.
func HaveCondition(kind string, status metav1.ConditionStatus, reason string) types.GomegaMatcher {
	return jobMatcher{fmt.Sprintf("have condition %s=%s %s", kind, status, reason), func(job *v1beta1.ElasticTrainingJob) bool {
		c := Condition(job, kind)
		return c.Status == status && c.Reason == reason
	}}
}

// BeStalled matches a job that does not go on by itself, and says why in that word.
func BeStalled(reason string) types.GomegaMatcher {
	return jobMatcher{"be stalled and say " + reason, func(job *v1beta1.ElasticTrainingJob) bool {
		c := Condition(job, v1beta1.ConditionStalled)
		return c.Status == metav1.ConditionTrue && c.Reason == reason && job.Status.Reason == reason
	}}
}

// Condition returns a job's condition of that type, or an empty one.
func Condition(job *v1beta1.ElasticTrainingJob, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(job.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// jobMatcher matches a job and describes it when it does not.
type jobMatcher struct {
	to string
	is func(*v1beta1.ElasticTrainingJob) bool
}

// Match implements gomega's matcher.
func (m jobMatcher) Match(actual any) (bool, error) {
	job, ok := actual.(*v1beta1.ElasticTrainingJob)
	if !ok {
		return false, fmt.Errorf("expected an ElasticTrainingJob, not %T", actual)
	}
	return m.is(job), nil
}

// FailureMessage implements gomega's matcher.
func (m jobMatcher) FailureMessage(actual any) string { return m.message(actual, "to ") }

// NegatedFailureMessage implements gomega's matcher.
func (m jobMatcher) NegatedFailureMessage(actual any) string { return m.message(actual, "not to ") }

func (m jobMatcher) message(actual any, to string) string {
	job, ok := actual.(*v1beta1.ElasticTrainingJob)
	if !ok {
		return fmt.Sprintf("Expected %T %s%s", actual, to, m.to)
	}
	return "Expected " + Summary(job) + to + m.to
}
