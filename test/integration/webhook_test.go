package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/webhook"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/integration/badinput"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

const (
	alice    = "alice@example.com"
	bob      = "bob@example.com"
	deployer = "system:serviceaccount:ci:deployer"

	// denied is how a refusal begins.
	denied = `admission webhook "validate.elastictrainingjobs.tideline.io" denied the request: ` +
		`ElasticTrainingJob.tideline.io "a" is invalid: `
)

// On a cluster of its own, because its webhooks are broken in turn. The operator runs before they are installed, as it does
// when all is applied at once.
var _ = Describe("Webhooks", Ordered, ContinueOnFailure, func() {
	var in *testutil.Installation
	var address, metrics, books string
	BeforeAll(func(ctx SpecContext) {
		var err error
		address, err = testutil.FreeAddress()
		Expect(err).NotTo(HaveOccurred(), "there is a port for the webhooks")
		probes, err := testutil.FreeAddress()
		Expect(err).NotTo(HaveOccurred(), "there is a port for probes")
		metrics, err = testutil.FreeAddress()
		Expect(err).NotTo(HaveOccurred(), "there is a port for metrics")
		file := filepath.Join(GinkgoT().TempDir(), "configuration.yaml")
		books = filepath.Join(GinkgoT().TempDir(), "ledger.db")
		content := debugging + fmt.Sprintf("ledger: {file: %q}\n", books)
		Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed(), "there is a configuration")
		in = shared.Own(ctx, cluster.Options{GPUNodes: -1},
			"--config="+file, "--metrics-bind-address="+metrics, "--metrics-secure=false", "--webhooks",
			"--webhook-bind-address="+address, "--health-probe-bind-address="+probes)
		Expect(readiness(ctx, probes)).To(Equal(http.StatusInternalServerError), "the operator reconciles, and is not ready")
		Expect(in.InstallWebhooks(ctx, address)).To(Succeed(), "the webhooks answer")
		Expect(readiness(ctx, probes)).To(Equal(http.StatusOK), "the operator is ready")
	})
	scenario := func(name string, gpus ...int64) *testutil.Scenario { return in.NewScenario(GinkgoT(), name, gpus...) }

	It("tell a dry run when the job would start, and at whose expense", func() {
		s := scenario("outlook", 4)
		simulate := func(minimum int32) string {
			file := filepath.Join(GinkgoT().TempDir(), "job.json")
			job := s.Job("b").Range(minimum, max(minimum, 4)).Obj()
			job.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(v1beta1.ElasticTrainingJobKind))
			content, err := json.Marshal(job)
			Expect(err).NotTo(HaveOccurred(), "the job is written")
			Expect(os.WriteFile(file, content, 0o600)).To(Succeed(), "there is a file")
			_, told, err := runKubectl(s, "apply", "--dry-run=server", "-f", file)
			Expect(err).NotTo(HaveOccurred(), "it may be created: %s", told)
			return told
		}
		Eventually(func() string { return simulate(4) }).Should(ContainSubstring("would start now: its 4 core workers fit"))
		s.Submit(s.Job("a").Range(2, 4))
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "another takes all")
		Eventually(func() string { return simulate(2) }).Should(
			ContainSubstring("2 surplus workers of 1 other job would leave for it"))
		Eventually(func() string { return simulate(3) }).Should(And(ContainSubstring("This job would start in "),
			ContainSubstring("9 of 10 simulations"), ContainSubstring("too few jobs have ended")))
		Eventually(func() string { return simulate(5) }).Should(ContainSubstring("would never start"))
		Expect(s.Client.Get(s.Context(), client.ObjectKey{Namespace: s.Namespace, Name: "b"}, &v1beta1.ElasticTrainingJob{})).To(
			MatchError(apierrors.IsNotFound, "IsNotFound"), "nothing was created")
	})

	It("tell a dry run of a profile what it would have changed", func(ctx SpecContext) {
		// Of accelerators that nodes of other scenarios lack: all that ran here is played again, on the nodes of today.
		const accelerator = corev1.ResourceName("amd.com/gpu")
		s := scenario("whatif", 0)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.Node(0)}}
		four := fmt.Appendf(nil, `{"status":{"capacity":{%[1]q:"4"},"allocatable":{%[1]q:"4"}}}`, accelerator)
		Expect(in.Client.Status().Patch(ctx, node, client.RawPatch(types.MergePatchType, four))).To(Succeed(), "there are four")
		s.Join("whatif")
		is := testutil.Profile("whatif").Obj()
		Expect(in.Client.Create(ctx, is)).To(Succeed(), "there is a profile")
		may := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "whatif"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: engineer}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "tideline-profiles"},
		}
		Expect(in.Client.Create(ctx, may)).To(Succeed(), "kubectl's user may write profiles")
		DeferCleanup(func(ctx SpecContext) {
			Expect(errors.Join(in.Client.Delete(ctx, may), in.Client.Delete(ctx, is))).To(Succeed(), "both are removed")
		})
		s.Submit(s.Job("a").Range(2, 2).Template(func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].Resources.Limits = corev1.ResourceList{accelerator: resource.MustParse("1")}
		}))
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "it runs, without a cap")
		Expect(s.Client.Delete(ctx, s.Read("a"))).To(Succeed(), "it ends")
		asked := func(window string) string {
			capped := testutil.Profile("whatif").PerUser(1).Obj()
			capped.Spec.Caps.PerUser[0].Resource = string(accelerator)
			capped.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(v1beta1.ResourceQuotaProfileKind))
			capped.Annotations = map[string]string{v1beta1.AnnotationWhatIf: window}
			content, err := json.Marshal(capped)
			Expect(err).NotTo(HaveOccurred(), "the profile is written")
			file := filepath.Join(GinkgoT().TempDir(), "profile.json")
			Expect(os.WriteFile(file, content, 0o600)).To(Succeed(), "there is a file")
			_, told, err := runKubectl(s, "apply", "--dry-run=server", "-f", file)
			Expect(err).NotTo(HaveOccurred(), "it may be written: %s", told)
			return told
		}
		Eventually(func() string { return asked("1h") }).Should(And(
			MatchRegexp(`Warning: Played again: the last 1h, with [1-9]\d* attempts? of trainings that came`),
			ContainSubstring("whatif, 1 attempt: median wait beyond the end instead of less than a minute"),
			ContainSubstring("not begun at the end: 1 instead of 0")), "with the cap it would never begin")
		Expect(asked("a week")).To(ContainSubstring(`"a week" is not a duration from 1h to 744h: write one like 168h`))
		Expect(in.Client.Get(ctx, client.ObjectKeyFromObject(is), is)).To(Succeed())
		Expect(is.Spec.Caps).To(BeNil(), "nothing was changed")
	})

	It("make whoever creates a job its owner, and workers carry the name", func() {
		s := scenario("owner", 2)
		Expect(as(s, alice, "edit").Create(s.Context(), s.Job("a").Range(1, 2).Obj())).To(Succeed(), "alice creates a job")
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "it trains")
		Expect(s.Read("a").Spec.Owner).To(Equal(alice), "it is hers")
		Expect(s.Read("a")).NotTo(testutil.HaveCondition(v1beta1.ConditionOwnerChecked, "False", v1beta1.ReasonWebhooksOff),
			"nothing is unchecked")
		for _, name := range []string{"a-worker-0", "a-worker-1"} {
			pod := testutil.Get(s, &corev1.Pod{}, name)
			Expect(pod.Annotations).To(HaveKeyWithValue(v1beta1.AnnotationOwner, alice), "the worker's annotation")
			Expect(pod.Labels).To(HaveKeyWithValue(v1beta1.LabelOwnerHash, "ff8d9819fc0e12bf"), "the worker's label")
		}
		Expect(table(kubectl(s, "get", "etj", "-o", "wide"))).To(HaveEach(HaveLen(16)), "wide has the owner")

		Expect(as(s, deployer, "edit").Create(s.Context(), s.Job("b").Obj(), client.DryRunAll)).To(Succeed(), "CI creates one")
		Expect(as(s, deployer, "edit").Create(s.Context(), s.Job("c").Owner(deployer).Obj())).To(Succeed(), "one may name oneself")
		Expect(s.Read("c").Spec.Owner).To(Equal(deployer), "a service account owns its job")
	})

	It("let nobody name somebody else without the right to assign-owner", func() {
		s := scenario("assign")
		named := func() *v1beta1.ElasticTrainingJob { return s.Job("a").Owner(bob).Obj() }
		ci := as(s, deployer, "edit")
		Expect(ci.Create(s.Context(), named())).To(MatchError(fmt.Sprintf(
			denied+`spec.owner: Forbidden: %q is not %q, who creates the job. To name another owner, a user needs the verb assign-owner `+
				`on elastictrainingjobs.tideline.io in namespace %s: leave the owner out, or ask an administrator to bind ClusterRole `+
				`tideline-assign-owner`, bob, deployer, s.Namespace)), "the whole answer")
		_ = as(s, deployer, "tideline-assign-owner")
		Eventually(func() error { return ci.Create(s.Context(), named()) }).Should(Succeed(), "with the right it is accepted")
		Expect(s.Read("a").Spec.Owner).To(Equal(bob), "the job is bob's")
	})

	It("let nobody run workers as a ServiceAccount as which they could not run a pod", func() {
		s := scenario("account", 1)
		for _, name := range []string{"trainer", "mighty"} {
			s.Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}})
		}
		named := func(account string) *v1beta1.ElasticTrainingJob {
			return s.Job("a").Template(func(t *corev1.PodTemplateSpec) { t.Spec.ServiceAccountName = account }).Obj()
		}
		// Who may create jobs and no pods.
		_ = as(s, alice, "tideline-view")
		hers := as(s, alice, "tideline-edit")
		submit := func(c client.Client, job *v1beta1.ElasticTrainingJob) func() error {
			return func() error { return c.Create(s.Context(), job.DeepCopy(), client.DryRunAll) }
		}
		for _, account := range []string{"", "default"} {
			Eventually(submit(hers, named(account))).Should(Succeed(), "account %q is for everybody", account)
		}
		refusal := func(account, field string) string {
			return fmt.Sprintf(denied+`spec.template.spec.%s: Forbidden: to run workers as ServiceAccount %q, a user needs the right to `+
				`create pods in namespace %s, or to use serviceaccounts %s there. %q has neither: leave %s out, or ask an administrator `+
				`for one of these rights`, field, account, s.Namespace, account, alice, field)
		}
		Expect(submit(hers, named("trainer"))()).To(MatchError(refusal("trainer", "serviceAccountName")), "the whole answer")
		older := s.Job("a").Template(func(t *corev1.PodTemplateSpec) {
			t.Spec.DeprecatedServiceAccount = "trainer"
		}).Obj()
		Expect(submit(hers, older)()).To(MatchError(refusal("trainer", "serviceAccount")), "nor by the older field")

		allowAlice(s, "use", "serviceaccounts", "trainer")
		Eventually(submit(hers, named("trainer"))).Should(Succeed(), "with the right to use it she may")
		Expect(submit(hers, named("mighty"))()).To(MatchError(refusal("mighty", "serviceAccountName")), "that one alone")
		Eventually(submit(as(s, bob, "edit"), named("mighty"))).Should(Succeed(), "who may create pods may run them as anybody")

		Expect(hers.Create(s.Context(), named("trainer"))).To(Succeed(), "she submits it")
		Eventually(s.Fetch("a")).Should(testutil.Train(1), "it trains")
		Expect(s.Worker("a", 0).Spec.ServiceAccountName).To(Equal("trainer"), "as whom she was allowed to")
	})

	It("refuse a tier that the operator does not know", func() {
		s := scenario("tier")
		Expect(s.Client.Create(s.Context(), s.Job("a").Tier("platinum").Obj())).To(MatchError(
			denied+`spec.tier: Invalid value: "platinum": is not a tier of the operator's configuration, which has exploratory, `+
				`small-traffic, main-traffic: use one of these`), "the whole answer")
	})

	It("refuse resources that contradict the tier", func() {
		const (
			at      = `spec.template.spec.containers[0].resources.`
			neither = `Required value: tier main-traffic (Guaranteed) needs cpu and memory requests on every container, and "trainer" ` +
				`has neither: add them, or choose another tier`
		)
		s := scenario("qos")
		job := s.Job("a").Tier("main-traffic")
		Expect(s.Client.Create(s.Context(), job.Obj())).To(MatchError(ContainSubstring(at+`requests: `+neither)),
			"it says what is missing, and where")
		job.Asks("1", "1Gi").Template(func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].Resources.Limits["memory"] = resource.MustParse("2Gi")
		})
		Expect(s.Client.Create(s.Context(), job.Obj())).To(MatchError(denied+at+`limits[memory]: Invalid value: "2Gi": must equal the `+
			`request (1Gi), because tier main-traffic is Guaranteed: remove one of the two, or choose another tier`), "the whole answer")
		Expect(s.Client.Create(s.Context(), s.Job("a").Tier("main-traffic").Asks("1", "1Gi").Obj())).To(Succeed(), "it can be mended")
	})

	admitMerges(scenario)
	recordGroups(scenario)
	judgeChanges(scenario)
	Context("beside an API that", func() { offerVersions(scenario, true) })
	Context("beside an API that", suite.Long, func() { keepAPI(scenario) })
	approveJobs(func() *testutil.Installation { return in }, scenario)
	submitScripts(func() *testutil.Installation { return in }, scenario)
	tryAsUser(func() *testutil.Installation { return in }, scenario)
	submitByPython(scenario)

	It("T17: keep all but their CA from who has stolen the operator's token", func(ctx SpecContext) {
		account := "system:serviceaccount:" + testutil.OperatorNamespace + ":" + testutil.OperatorServiceAccount
		as, err := in.As(account, "system:serviceaccounts", "system:serviceaccounts:"+testutil.OperatorNamespace,
			"system:authenticated")
		Expect(err).NotTo(HaveOccurred(), "the account is connected")
		thief := client.NewDryRunClient(as)
		configurations := []client.Object{&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: webhook.MutatingConfiguration},
		}, &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: webhook.ValidatingConfiguration},
		}}
		for _, o := range configurations {
			try := func(patch string) error {
				is, isObject := o.DeepCopyObject().(client.Object)
				Expect(isObject).To(BeTrue())
				return thief.Patch(ctx, is, client.RawPatch(types.JSONPatchType, []byte("["+patch+"]")))
			}
			for what, patch := range map[string]string{
				"calls for all pods": `{"op":"replace","path":"/webhooks/0/rules","value":[{"apiGroups":[""],"apiVersions":["*"],` +
					`"operations":["*"],"resources":["pods"]}]}`,
				"calls elsewhere": `{"op":"replace","path":"/webhooks/0/clientConfig","value":{"url":"https://thief.example"}}`,
				"calls for what it likes": `{"op":"add","path":"/webhooks/0/matchConditions","value":[` +
					`{"name":"a","expression":"true"}]}`,
				"lets pass what it does not": `{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}`,
				"calls one less":             `{"op":"remove","path":"/webhooks/0"}`,
				"goes with another object": `{"op":"add","path":"/metadata/ownerReferences","value":[{"apiVersion":"v1",` +
					`"kind":"Namespace","name":"none","uid":"none"}]}`,
			} {
				Eventually(func() error { return try(patch) }).WithTimeout(10*time.Second).Should(
					MatchError(ContainSubstring("changes no more of its webhooks than the CA")), what)
			}
			Expect(in.Client.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
			authority, err := json.Marshal(append(slices.Clone(webhook.ClientConfigs(o)[0].CABundle), '\n'))
			Expect(err).NotTo(HaveOccurred())
			Expect(try(fmt.Sprintf(`{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":%s}`, authority))).To(
				Succeed(), "the CA is the operator's to write")
		}
	})

	It("leave what the schema refuses to the words of the schema", func(ctx SpecContext) {
		all := slices.Concat(badinput.Cases(), badinput.MergeCases())
		for _, c := range slices.DeleteFunc(all, func(c badinput.Case) bool { return c.Overwritten }) {
			o, err := c.Object("default")
			Expect(err).NotTo(HaveOccurred(), "the case is well formed")
			Expect(in.Client.Create(ctx, o, client.DryRunAll)).To(MatchError(c.Refusal(o.GetName())), "%s: the whole answer", c.What)
		}
	})

	It("and what else the operator does betray no secret", func() { keepSecrets(in, scenario("secrets", 2), metrics) })

	It("are found by the doctor", func(ctx SpecContext) {
		said, _, err := in.Command(ctx, "doctor")
		Expect(err).NotTo(HaveOccurred(), "the doctor runs")
		Expect(said).To(ContainSubstring("OK    Tideline's webhooks set the owners of jobs, and check owners, "+
			"ServiceAccounts and shares.\n"),
			"it says so")
		Expect(said).To(ContainSubstring("OK    The operator's ServiceAccount has every right of its role"), "and the rights are there")
	})

	It("answer again when the Secret with the certificate is deleted or spoiled, or the CA was removed", func(ctx SpecContext) {
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: testutil.OperatorNamespace, Name: webhook.CertificatesName}
		ca := func() (string, error) {
			err := in.Client.Get(ctx, key, secret)
			return string(secret.Data["ca.crt"]), err
		}
		before, err := ca()
		Expect(err).NotTo(HaveOccurred(), "there is a Secret")
		Expect(in.Client.Delete(ctx, secret)).To(Succeed(), "it is deleted")
		Eventually(ca).Should(And(Not(BeEmpty()), Not(Equal(before))), "the operator makes another")
		Eventually(func() ([]string, error) { return trusted(ctx, in.Client) }).Should(HaveEach(Equal(string(secret.Data["ca.crt"]))),
			"its CA is in the configurations")
		Expect(in.AwaitWebhooks(ctx)).To(Succeed(), "the webhooks answer")

		after, spoiled := string(secret.Data["ca.crt"]), secret.DeepCopy()
		spoiled.Data["tls.crt"] = []byte("spoiled")
		Expect(in.Client.Update(ctx, spoiled)).To(Succeed(), "the certificate is spoiled")
		Eventually(func() (string, error) {
			_, err := ca()
			return string(secret.Data["tls.crt"]), err
		}).Should(HavePrefix("-----BEGIN CERTIFICATE-----"), "the operator makes another")
		Expect(string(secret.Data["ca.crt"])).To(Equal(after), "of the same CA")

		configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
		configuration.Name = webhook.MutatingConfiguration
		remove := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}]`))
		Expect(in.Client.Patch(ctx, configuration, remove)).To(Succeed(), "the CA is removed")
		Eventually(func() ([]string, error) { return trusted(ctx, in.Client) }).Should(HaveEach(Equal(after)), "the operator writes it")
		Expect(in.AwaitWebhooks(ctx)).To(Succeed(), "the webhooks answer")
	})

	It("know whose workers fail on a node, and the next operator knows it too", func(ctx SpecContext) {
		keepSuspicions(ctx, in, scenario("suspects", 2, 2), books, metrics)
	})

	It("that nobody serves hold up new jobs, and nothing else", func(ctx SpecContext) {
		s := scenario("down", 3)
		s.Submit(s.Job("a").Range(1, 3))
		Eventually(s.Fetch("a")).Should(testutil.Train(3), "A trains")
		Expect(callAt(ctx, in.Client, "localhost:1")).To(Succeed(), "the API server calls where nobody is")
		DeferCleanup(func(ctx SpecContext) {
			Expect(callAt(ctx, in.Client, address)).To(Succeed(), "it calls the operator again")
			Expect(in.AwaitWebhooks(ctx)).To(Succeed(), "the webhooks answer")
		})
		Eventually(func() error { return s.Client.Create(s.Context(), s.Job("b").Obj(), client.DryRunAll) }).Should(MatchError(And(
			HavePrefix(`Internal error occurred: failed calling webhook "default.elastictrainingjobs.tideline.io": failed to call `),
			HaveSuffix("connect: connection refused"))), "a new job is refused, in the API server's words")
		s.Create(&corev1.ConfigMap{ObjectMeta: s.Job("other").Obj().ObjectMeta})

		s.Patch(s.Read("a"), `{"metadata":{"annotations":{"example.com/note":"ours"}}}`)
		s.Patch(s.Read("a"), `{"spec":{"restarts":{"max":7}}}`)
		Expect(edit(s, s.Client, s.Read("a"), `{"spec":{"maxReplicas":9}}`)()).To(MatchError(ContainSubstring(
			`failed calling webhook "validate.elastictrainingjobs.tideline.io"`)), "what a webhook judges waits")
		s.DeleteWorker("a", 1)
		Eventually(s.Fetch("a")).Should(And(testutil.HaveRestarts(1), testutil.Train(3)), "A is reconciled")
		kubectl(s, "scale", "etj/a", "--replicas=2")
		Eventually(s.Workers("a")).Should(Equal([]int{0, 1}), "A is scaled")
		s.Patch(s.Read("a"), `{"spec":{"suspend":true}}`)
		Eventually(s.Workers("a")).Should(BeEmpty(), "A is suspended")
		Expect(s.Client.Delete(s.Context(), s.Read("a"), client.PropagationPolicy("Foreground"))).To(Succeed(), "A is deleted")
		Eventually(func() bool {
			_, err := s.Fetch("a")()
			return apierrors.IsNotFound(err)
		}).Should(BeTrue(), "garbage collection is not held up")
	})

	It("answer again when the operator was gone for a while, with the same certificate", func(ctx SpecContext) {
		before, err := trusted(ctx, in.Client)
		Expect(err).NotTo(HaveOccurred(), "the configurations are read")
		audit, err := in.Audit(testutil.OperatorNamespace)
		Expect(err).NotTo(HaveOccurred(), "the audit log is read")
		in.Operator.Kill()
		Expect(in.Client.Create(ctx, testutil.Job("a").Obj(), client.DryRunAll)).To(
			MatchError(ContainSubstring("failed calling webhook")), "no job is created without the operator")
		Expect(in.Operator.Start(ctx)).To(Succeed(), "the operator is back")
		Expect(in.AwaitWebhooks(ctx)).To(Succeed(), "the webhooks answer")
		Expect(trusted(ctx, in.Client)).To(Equal(before), "nothing was made anew")
		Expect(audit.Select(testutil.ByOperator, testutil.Write)).To(BeEmpty(), "and nothing was written")
	})

	It("answer with a certificate that others made, and in a replica that does not lead", func(ctx SpecContext) {
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: testutil.OperatorNamespace, Name: webhook.CertificatesName}
		Expect(in.Client.Get(ctx, key, secret)).To(Succeed(), "there is a Secret")
		dir := GinkgoT().TempDir()
		for _, name := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
			Expect(os.WriteFile(filepath.Join(dir, name), secret.Data[name], 0o600)).To(Succeed(), "it is mounted")
		}
		Expect(in.Operator.Stop()).To(Succeed(), "the operator ends")
		lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("another replica"), LeaseDurationSeconds: ptr.To[int32](3600), RenewTime: ptr.To(metav1.NowMicro()),
		}}
		lease.Namespace, lease.Name = testutil.OperatorNamespace, "tideline.tideline.io"
		Expect(in.Client.Create(ctx, lease)).To(Succeed(), "another replica leads")
		Expect(in.Client.Delete(ctx, secret)).To(Succeed(), "the Secret is gone")
		in.Operator.AddFlags("--webhook-certs=files", "--webhook-cert-dir="+dir,
			"--leader-elect", "--leader-election-namespace="+testutil.OperatorNamespace)
		Expect(in.Operator.Launch(ctx)).To(Succeed(), "the operator is started")
		Expect(in.AwaitWebhooks(ctx)).To(Succeed(), "the webhooks answer")
		Expect(in.Client.Get(ctx, key, secret)).To(MatchError(apierrors.IsNotFound, "NotFound"), "the operator makes no certificate")
	})
})

// readiness is what the operator answers to the kubelet.
func readiness(ctx context.Context, probes string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+probes+"/readyz", http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// as is short for who acts in most of these specs.
var as = testutil.ActAs

// allowAlice gives alice a right to one object of the core group in the scenario's namespace.
func allowAlice(s *testutil.Scenario, verb, resource, name string) {
	GinkgoHelper()
	role := &rbacv1.Role{Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: []string{name}, Verbs: []string{verb}},
	}}
	role.Namespace, role.GenerateName = s.Namespace, "test-"
	s.Create(role)
	testutil.BindUser(s, alice, "Role", role.Name)
}

// trusted are the authorities that the webhook configurations hold.
func trusted(ctx context.Context, c client.Client) ([]string, error) {
	var all []string
	for _, o := range webhook.ConfigurationObjects() {
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return nil, err
		}
		for _, config := range webhook.ClientConfigs(o) {
			all = append(all, string(config.CABundle))
		}
	}
	return all, nil
}

// callAt has the API server call the webhooks at another host.
func callAt(ctx context.Context, c client.Client, host string) error {
	for _, o := range webhook.ConfigurationObjects() {
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		before := o.DeepCopyObject().(client.Object)
		for _, config := range webhook.ClientConfigs(o) {
			address, err := url.Parse(*config.URL)
			if err != nil {
				return err
			}
			address.Host = host
			config.URL = ptr.To(address.String())
		}
		if err := c.Patch(ctx, o, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	return nil
}
