package ledger

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestStaysOfTasksOfADay(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		of := func(kind, task string) func(*Stay) { return func(s *Stay) { s.Kind, s.Task = kind, task } }
		surplus := func(s *Stay) { s.Role, s.Resources = "surplus", nil }
		through := stay("through", "13 22:00:00", "17 03:00:00")
		ended := stay("ended", "13 22:00:00", "15 03:00:00", finally(Failed), uncertain, surplus)
		within := stay("within", "15 10:00:00", "15 11:00:00", finally(Succeeded))
		merge := stay("merge", "14 10:00:00", "15 11:00:00", finally(Succeeded), of("MergeJob", "ctr"))
		record(ctx, g, l, through, ended, within, merge,
			stay("before", "14 10:00:00", "15 00:00:00", finally(Succeeded)), stay("after", "16 00:00:00", "16 10:00:00"),
			stay("other", "15 10:00:00", "15 11:00:00", of("Deployment", "ctr")),
			stay("b", "15 10:00:00", "15 11:00:00", of("ElasticTrainingJob", "b")))
		tasks, err := l.TasksOf(ctx, at("15 12:00:00"), "ElasticTrainingJob", "MergeJob")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(tasks).To(HaveExactElements(
			And(HaveField("Kind", "ElasticTrainingJob"), HaveField("Task", "b"), HaveField("Pods", int64(1))),
			And(HaveField("Kind", "ElasticTrainingJob"), HaveField("Task", "ctr"), HaveField("Pods", int64(3))),
			And(HaveField("Kind", "MergeJob"), HaveField("Task", "ctr"), HaveField("Pods", int64(1)), HaveField("Namespace", "ads")),
		))
		ended.Resources = Resources{}
		g.Expect(l.StaysOf(ctx, tasks[1])).To(ConsistOf(through, ended, within), "whole, as they were given")
		g.Expect(l.StaysOf(ctx, tasks...)).To(HaveLen(5))
		g.Expect(l.StaysOf(ctx, tasks[2])).To(Equal([]Stay{merge}))
		g.Expect(l.StaysOf(ctx)).To(BeEmpty())
		g.Expect(l.TasksOf(ctx, at("20 00:00:00"), "ElasticTrainingJob")).To(BeEmpty())
	})
}

// What a pod is may change from one day to the next, and it is found by what it was on that day.
func TestStaysOfADayAreWhatTheyWereOnIt(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		record(ctx, g, l, stay("a", "14 22:00:00", "14 23:00:00"))
		record(ctx, g, l, stay("a", "14 22:00:00", "15 01:00:00", by("bob")))
		for day, user := range map[string]string{"14 00:00:00": "alice", "15 00:00:00": "bob"} {
			tasks, err := l.TasksOf(ctx, at(day), "ElasticTrainingJob")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(tasks).To(HaveLen(1))
			g.Expect(l.StaysOf(ctx, tasks...)).To(Equal([]Stay{stay("a", "14 22:00:00", "15 01:00:00", by(user))}))
		}
	})
}
