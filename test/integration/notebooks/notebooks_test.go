package notebooks

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// says is a list of conditions with one of these that says all of the texts.
func says(kind string, status metav1.ConditionStatus, reason string, texts ...string) types.GomegaMatcher {
	all := []types.GomegaMatcher{HaveField("Type", kind), HaveField("Status", status), HaveField("Reason", reason)}
	for _, text := range texts {
		all = append(all, HaveField("Message", ContainSubstring(text)))
	}
	return ContainElement(And(all...))
}

var _ = Describe("An idle notebook", Ordered, func() {
	var f *fixture
	BeforeAll(func(ctx SpecContext) {
		f = begin(ctx)
		notebook(f.ads, "idle", "alice", 2)
		notebook(f.ads, "busy", "bob", 1)
		notebook(f.ads, "unmeasured", "carol", 1)
		forge(f.ads, "forged-busy", "busy")
		forge(f.ads, "forged-unmeasured", "unmeasured")
		notebook(f.web, "idle", "dave", 1)
		makeOld(f.ads)
		makeOld(f.web)
		f.operate(ctx, active(f.ads, "idle-0", 0), active(f.ads, "busy-0", 0.5), active(f.ads, "forged-busy", 0),
			active(f.ads, "forged-unmeasured", 0), active(f.web, "idle-0", 0))
	})

	It("is named, and not stopped by an operator that may not", func() {
		Eventually(conditions(f.ads, "ads")).WithTimeout(soon).Should(And(
			says(v1beta1.ConditionAcceleratorsIdle, metav1.ConditionTrue, v1beta1.ReasonNotInUse,
				"StatefulSet "+f.ads.Namespace+"/idle of alice (2 for "),
			says(v1beta1.ConditionIdleNotebooksStopped, metav1.ConditionFalse, v1beta1.ReasonStoppingForbidden,
				"kubectl apply -f config/components/notebook-culling/role.yaml")))
		Eventually(conditions(f.web, "web")).WithTimeout(soon).Should(
			says(v1beta1.ConditionAcceleratorsIdle, metav1.ConditionTrue, v1beta1.ReasonNotInUse, f.web.Namespace+"/idle of dave"))
		Expect(annotations(f.ads, "idle")()).NotTo(HaveKey(stopped))
	})

	It("is stopped where its profile says so, and no other is", func(ctx SpecContext) {
		waiting := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.ads.Namespace, Name: "waiting"}, Spec: podSpec(f.ads, "a", 2),
		}
		f.ads.Create(waiting)
		Consistently(bound(f.ads, "waiting")).WithTimeout(3*time.Second).Should(BeFalse(), "all six GPUs are held")
		component, err := testutil.Manifests(ctx, "components/notebook-culling/*.yaml")
		Expect(err).NotTo(HaveOccurred(), "the component is read")
		for _, o := range component {
			f.ads.Create(o)
		}

		Eventually(annotations(f.ads, "idle")).WithTimeout(soon).Should(HaveKeyWithValue(stopped,
			WithTransform(func(at string) (time.Time, error) { return time.Parse(time.RFC3339, at) },
				BeTemporally("~", time.Now(), soon))))
		Eventually(bound(f.ads, "waiting")).Should(BeTrue(), "its GPUs are free, and another pod has them")
		Expect(bound(f.ads, "idle-0")()).To(BeFalse())
		again := "kubectl annotate -n " + f.ads.Namespace + " notebooks.kubeflow.org idle " + stopped + "-"
		told := ContainElement(And(HavePrefix(v1beta1.EventIdleNotebookStopped+": Stopped Notebook "+f.ads.Namespace+
			"/idle of alice: its accelerators (2) were not in use for "), ContainSubstring(again)))
		Eventually(func() ([]string, error) { return f.ads.EventsOf(read(f.ads, "idle").GetUID()) }).Should(told, "its user is told")
		Eventually(conditions(f.ads, "ads")).Should(says(v1beta1.ConditionIdleNotebooksStopped, metav1.ConditionTrue,
			v1beta1.ReasonStoppingIdle, f.ads.Namespace+"/idle of alice at ", again))
		p := &v1beta1.ResourceQuotaProfile{}
		Expect(f.Client.Get(ctx, client.ObjectKey{Name: "ads"}, p)).To(Succeed())
		Expect(p.Status.StoppedNotebooks).To(ConsistOf(And(HaveField("Name", "idle"), HaveField("User", "alice"),
			HaveField("Held", "2"), HaveField("IdleHours", BeNumerically(">=", 26)))))

		Consistently(func(g Gomega) {
			g.Expect(annotations(f.ads, "busy")()).NotTo(HaveKey(stopped), "it is in use, whatever a pod says that claims to be of it")
			g.Expect(annotations(f.ads, "unmeasured")()).NotTo(HaveKey(stopped), "the samples are of a pod that claims to be of it")
			g.Expect(annotations(f.web, "idle")()).NotTo(HaveKey(stopped), "its profile does not say so")
		}).WithTimeout(75 * time.Second).WithPolling(time.Second).Should(Succeed()) // longer than a round of questions
		f.ads.Delete(waiting)
	})

	It("is started again by its user, and not stopped at once", func() {
		Eventually(bound(f.ads, "waiting")).Should(BeFalse(), "there is room")
		f.ads.Patch(read(f.ads, "idle"), `{"metadata":{"annotations":{"`+stopped+`":null}}}`)
		Eventually(bound(f.ads, "idle-0")).Should(BeTrue(), "Kubeflow's controller runs it again")
		Consistently(annotations(f.ads, "idle")).WithTimeout(75*time.Second).WithPolling(time.Second).ShouldNot(HaveKey(stopped),
			"time before its pod began does not count")
	})

	It("gets this annotation from the operator, which may change no more of it", func(ctx SpecContext) {
		operator, err := f.As("system:serviceaccount:" + testutil.OperatorNamespace + ":" + testutil.OperatorServiceAccount)
		Expect(err).NotTo(HaveOccurred(), "the operator's account is connected")
		thief := client.NewDryRunClient(operator)
		change := func(name, patch string) error {
			o := blank()
			o.SetNamespace(f.ads.Namespace)
			o.SetName(name)
			return thief.Patch(ctx, o, client.RawPatch(apitypes.MergePatchType, []byte(patch)))
		}
		const adds = `"` + stopped + `":"2026-11-20T10:00:00Z"`
		refused := MatchError(ContainSubstring("changes no more of a Notebook than to add the annotation " + stopped))
		for what, patch := range map[string]string{
			"another annotation":  `{"metadata":{"annotations":{"a":"b"}}}`,
			"another one besides": `{"metadata":{"annotations":{"a":"b",` + adds + `}}}`,
			"a label":             `{"metadata":{"labels":{"a":"b"},"annotations":{` + adds + `}}}`,
			"a finalizer":         `{"metadata":{"finalizers":["example.com/a"],"annotations":{` + adds + `}}}`,
			"an owner": `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"a","uid":"b"}],` +
				`"annotations":{` + adds + `}}}`,
			"what runs as its user": `{"metadata":{"annotations":{` + adds + `}},` +
				`"spec":{"template":{"spec":{"serviceAccountName":"a"}}}}`,
			"nothing but the specification": `{"spec":{"template":{"spec":{"serviceAccountName":"a"}}}}`,
		} {
			Eventually(func() error { return change("busy", patch) }).WithTimeout(10*time.Second).Should(refused, what)
		}
		Expect(change("busy", `{"metadata":{"annotations":{`+adds+`}}}`)).To(Succeed())
		f.ads.Patch(read(f.ads, "busy"), `{"metadata":{"annotations":{`+adds+`}}}`)
		Expect(change("busy", `{"metadata":{"annotations":{"`+stopped+`":null}}}`)).To(refused, "nor is one started")
	})
})
