package integration

import (
	"encoding/json"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/quota/approval"
	"github.com/tideline-io/tideline/internal/webhook"
	"github.com/tideline-io/tideline/test/testutil"
)

// notApproved is how a refusal of an approval begins.
const notApproved = `admission webhook "approval.tideline.io" denied the request: ElasticTrainingJob.tideline.io "a" is ` +
	`invalid: metadata.annotations[tideline.io/approval]: Forbidden: `

// approveJobs has the specs of webhooks that are about approvals.
func approveJobs(in func() *testutil.Installation, scenario func(name string, gpus ...int64) *testutil.Scenario) {
	It("behaviour 6: hold a job of a tier until somebody who may approves it", func(ctx SpecContext) {
		s := scenario("approval", 2)
		guard(s)
		s.Submit(s.Job("a").Range(2, 2).Tier("main-traffic").Asks("1", "1Gi"))
		Eventually(s.Fetch("a")).Should(testutil.Wait(v1beta1.ReasonAwaitingApproval), "it is held")
		Expect(s.Read("a").Status.Message).To(ContainSubstring("tideline approve %s/a --for 72h", s.Namespace), "and says how to go on")
		Eventually(func() ([]string, error) { return s.Events(s.Read("a")) }).Should(ConsistOf(HavePrefix("AwaitingApproval: ")),
			"an event says so once")
		Eventually(awaiting(s)).Should(BeEquivalentTo(1), "the profile counts it")

		alices, bobs := as(s, alice, "edit"), as(s, bob, "edit")
		Expect(annotate(s, alices, "a", "example.com/note", "please")).To(Succeed(), "alice may edit the job")
		Expect(annotate(s, alices, "a", v1beta1.AnnotationApprove, "72h")).To(MatchError(notApproved+fmt.Sprintf("to approve a job, "+
			"or to remove an approval, a user needs the right to approve resourcequotaprofiles.tideline.io %s, which %q does not have: "+
			"ask a user who has it, or ask an administrator to bind ClusterRole tideline-approve", s.Namespace, alice)),
			"the whole answer")
		letApprove(s, bob)
		Eventually(func() error { return annotate(s, bobs, "a", v1beta1.AnnotationApprove, "soon") }).Should(MatchError(
			`admission webhook "approve.tideline.io" denied the request: ElasticTrainingJob.tideline.io "a" is invalid: `+
				`metadata.annotations[tideline.io/approve]: Invalid value: "soon": is not a duration from 1m to 8760h: write how long `+
				`the approval counts, for example 72h or 30m`), "the whole answer")
		forged := approval.Approval{
			By: alice, UID: s.Read("a").UID, Profile: s.Namespace, Tier: "main-traffic", At: metav1.Now(),
			Until: metav1.NewTime(time.Now().Add(time.Hour)),
		}.String()
		for user, c := range map[string]client.Client{alice: alices, bob: bobs} {
			Expect(annotate(s, c, "a", v1beta1.AnnotationApproval, forged)).To(MatchError(HavePrefix(notApproved)),
				"%s cannot write who approved", user)
		}
		Consistently(s.Fetch("a")).WithTimeout(severalCycles).Should(testutil.Wait(v1beta1.ReasonAwaitingApproval), "it is held still")

		Eventually(func() error { return annotate(s, bobs, "a", v1beta1.AnnotationApprove, "72h") }).Should(Succeed(), "bob approves")
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "it trains")
		recorded, err := approval.Parse(s.Read("a").Annotations[v1beta1.AnnotationApproval])
		Expect(err).NotTo(HaveOccurred(), "the approval is on record")
		Expect(recorded.By).To(Equal(bob), "by bob")
		Expect(recorded.Until.Sub(recorded.At.Time)).To(Equal(72*time.Hour), "for as long as he said")
		Expect(s.Read("a").Annotations).NotTo(HaveKey(v1beta1.AnnotationApprove), "what he asked is taken away")
		Eventually(awaiting(s)).Should(BeZero(), "the profile counts nobody")

		expired := recorded
		expired.At, expired.Until = metav1.NewTime(recorded.At.Add(-2*time.Hour)), metav1.NewTime(recorded.At.Add(-time.Hour))
		checking(ctx, in().Client, "false")
		defer checking(ctx, in().Client, checked)
		Eventually(func() error {
			return annotate(s, s.Client, "a", v1beta1.AnnotationApproval, expired.String())
		}).Should(Succeed(), "it has expired since")
		copied := s.Job("b").Range(2, 2).Tier("main-traffic").Asks("1", "1Gi").With(func(job *v1beta1.ElasticTrainingJob) {
			job.Annotations = map[string]string{v1beta1.AnnotationApproval: recorded.String()}
		})
		s.Submit(copied)
		Expect(s.Read("b").Annotations).NotTo(HaveKey(v1beta1.AnnotationApproval), "what a job is copied with is taken off")
		expired.UID = s.Read("b").UID
		Expect(annotate(s, s.Client, "b", v1beta1.AnnotationApproval, expired.String())).To(Succeed(), "that of b has expired")
		Eventually(s.Fetch("b")).WithTimeout(2*time.Minute).Should(And(testutil.Wait(v1beta1.ReasonAwaitingApproval),
			HaveField("Status.Message", ContainSubstring("does not count: it expired at "))), "and lets nothing begin")
		Expect(s.Read("a")).To(testutil.Train(2), "what runs stays")
	})

	It("record who approves by the command", func(ctx SpecContext) {
		s := scenario("approve", 2)
		guard(s)
		early := s.Job("a").Tier("main-traffic").Asks("1", "1Gi").With(func(job *v1beta1.ElasticTrainingJob) {
			job.Annotations = map[string]string{v1beta1.AnnotationApprove: "72h"}
		})
		Expect(s.Client.Create(s.Context(), early.Obj())).To(MatchError(ContainSubstring("only after it was created")),
			"nothing is approved before it exists")
		s.Submit(s.Job("a").Range(1, 1).Tier("main-traffic").Asks("1", "1Gi"), s.Job("b"))
		Eventually(s.Fetch("a")).Should(testutil.Wait(v1beta1.ReasonAwaitingApproval), "it is held")
		said, code, err := in().Command(ctx, "approve", s.Namespace+"/b")
		Expect(err).NotTo(HaveOccurred())
		Expect(code).To(Equal(1), "what takes no approval is refused")
		Expect(said).To(ContainSubstring("tier exploratory requires no approval in profile " + s.Namespace))
		said, code, err = in().Command(ctx, "approve", s.Namespace+"/a", "--for", "1h")
		Expect(err).NotTo(HaveOccurred())
		Expect(code).To(BeZero(), said)
		Expect(said).To(HavePrefix("ElasticTrainingJob %[1]s/a is approved in tier main-traffic of profile %[1]s by ", s.Namespace))
		Eventually(s.Fetch("a")).Should(testutil.Train(1), "it trains")
	})
}

// guard makes a profile of the scenario's namespace and name, where main-traffic takes approval.
func guard(s *testutil.Scenario) {
	GinkgoHelper()
	s.Join(s.Namespace)
	profile := testutil.Profile(s.Namespace).Tiers("exploratory", "main-traffic").Obj()
	profile.Spec.Tiers[1].RequiresApproval = true
	s.Create(profile)
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(s.Client.Delete(ctx, profile))).To(Succeed(), "the profile is removed")
	})
	Eventually(func() (string, error) {
		err := s.Client.Get(s.Context(), client.ObjectKeyFromObject(profile), profile)
		return profile.Status.Queue, err
	}).Should(Equal(s.Namespace), "it has a Queue")
}

// awaiting reads how many jobs of the scenario's profile await approval.
func awaiting(s *testutil.Scenario) func() (int32, error) {
	return func() (int32, error) {
		profile := &v1beta1.ResourceQuotaProfile{}
		err := s.Client.Get(s.Context(), client.ObjectKey{Name: s.Namespace}, profile)
		return profile.Status.AwaitingApproval, err
	}
}

// annotate writes an annotation of a job, as somebody.
func annotate(s *testutil.Scenario, c client.Client, job, key, value string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	if err != nil {
		return err
	}
	o := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: job}}
	return c.Patch(s.Context(), o, client.RawPatch(types.MergePatchType, patch))
}

// letApprove gives a user the right to approve on all profiles.
func letApprove(s *testutil.Scenario, user string) {
	GinkgoHelper()
	bindAll(s, user, "tideline-approve")
}

// checked is the condition under which records of approvals are checked, as it is installed.
const checked = ""

// checking has the API server check records of approvals under a condition besides those that are installed; none for checked.
func checking(ctx SpecContext, c client.Client, condition string) {
	GinkgoHelper()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	Expect(c.Get(ctx, client.ObjectKey{Name: webhook.ValidatingConfiguration}, configuration)).To(Succeed())
	changed := configuration.DeepCopy()
	for i := range changed.Webhooks {
		if w := &changed.Webhooks[i]; w.Name == "approval.tideline.io" {
			w.MatchConditions = w.MatchConditions[:1]
			if condition != checked {
				w.MatchConditions = append(w.MatchConditions, admissionregistrationv1.MatchCondition{Name: "tested", Expression: condition})
			}
		}
	}
	Expect(c.Patch(ctx, changed, client.MergeFrom(configuration))).To(Succeed(), "what is checked changes")
}
