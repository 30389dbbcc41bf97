package integration

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/ledger/decisionlog"
	"github.com/tideline-io/tideline/test/testutil"
)

// rejectOn has a kubelet reject the worker of a job that may run on its node alone. The job is created by create, and deleted.
func rejectOn(s *testutil.Scenario, pool, node, job string, create func(client.Object) error) {
	GinkgoHelper()
	o := s.Job(job).Pool(pool).Range(1, 1).Manual().Template(func(t *corev1.PodTemplateSpec) {
		t.Spec.NodeSelector[corev1.LabelHostname] = node
	}).Obj()
	Expect(create(o)).To(Succeed(), "%s is created", job)
	Eventually(s.Workers(job, testutil.Bound)).Should(HaveLen(1), "%s of %s is placed", job, s.Namespace)
	reject(s, job, 0, "UnexpectedAdmissionError", "Allocate failed due to no healthy devices present")
	Eventually(s.Fetch(job)).Should(HaveField("Status.AvoidedNodes", HaveLen(1)), "the job avoids the node")
	s.DeleteJob(job)
}

// suspicions are what the administrator was told of a node.
func suspicions(s *testutil.Scenario, node string) func() ([]string, error) {
	return func() ([]string, error) {
		list := &eventsv1.EventList{}
		err := s.Client.List(s.Context(), list, client.InNamespace(corev1.NamespaceDefault))
		var notes []string
		for _, e := range list.Items {
			if e.Regarding.Kind == "Node" && e.Regarding.Name == node && e.Reason == v1beta1.EventNodeSuspected {
				notes = append(notes, e.Note)
			}
		}
		return notes, err
	}
}

// keepSuspicions shows that what jobs of two users have shown of a node outlives the operator. file is its ledger.
func keepSuspicions(ctx context.Context, in *testutil.Installation, s *testutil.Scenario, file, metrics string) {
	GinkgoHelper()
	bad := s.Node(0)
	for user, name := range map[string]string{alice: "a", bob: "b"} {
		theirs := as(s, user, "edit")
		for n := range 2 {
			rejectOn(s, s.Namespace, bad, fmt.Sprint(name, n), func(o client.Object) error { return theirs.Create(ctx, o) })
		}
	}
	once := ConsistOf(ContainSubstring("Workers of 2 owners and 4 tasks"))
	Eventually(suspicions(s, bad)).Should(once, "the administrator is told")
	Eventually(func() (reasons []string, err error) {
		l, err := ledger.OpenToRead(ctx, ledger.Options{File: file})
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }()
		err = l.EachDecision(ctx, ledger.DecisionQuery{Name: bad, Kinds: []string{decisionlog.NodeSuspected}},
			func(d *ledger.Decision) { reasons = append(reasons, d.Reason+" "+d.Figures[decisionlog.Told]) })
		return reasons, err
	}).Should(ContainElement("accused true"), "it is in the ledger")

	in.Operator.Kill()
	Expect(in.Operator.Start(ctx)).To(Succeed(), "another operator begins")
	Expect(in.AwaitWebhooks(ctx)).To(Succeed(), "the webhooks answer")
	Eventually(func() float64 { return scrape(ctx, metrics)[`tideline_suspect_nodes{level="accused"}`] }).Should(
		BeEquivalentTo(1), "it knows the node")
	s.Submit(s.Job("c").Range(1, 1))
	Eventually(s.Fetch("c")).Should(testutil.Train(1), "a job trains")
	Expect(s.Worker("c", 0).Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution).To(ContainElement(
		HaveField("Preference.MatchFields", ContainElement(HaveField("Values", ConsistOf(bad))))), "it prefers other nodes")
	Expect(s.Worker("c", 0).Spec.NodeName).To(Equal(s.Node(1)), "and has one")
	Expect(suspicions(s, bad)()).To(once, "the administrator is not told again")
}
