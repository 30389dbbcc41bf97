package report

import (
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/config/rbac"
	"github.com/tideline-io/tideline/test/testutil/post"
)

var _ = Describe("A report", Ordered, func() {
	var w *world
	BeforeAll(func(ctx SpecContext) { w = begin(ctx, lastWeek) })

	It("says what it waits for, and goes on when it is there", func(ctx SpecContext) {
		r := w.report("waits")
		Expect(w.Client.Create(ctx, r)).To(Succeed())
		Eventually(w.read(ctx, "waits")).Should(say(v1alpha1.ReasonPriceListNotFound,
			"there is no ConfigMap prices in namespace tideline-system: create it, with key prices.yaml."))
		list := configMap("prices", "prices.yaml", strings.Replace(prices, `"10"`, `"-3"`, 1))
		Expect(w.Client.Create(ctx, list)).To(Succeed())
		w.annotate(ctx, r, "example.com/poke", "1")
		Eventually(w.read(ctx, "waits")).Should(say(v1alpha1.ReasonInvalidPriceList, "prices[0].accelerators[0].hourly", "-3"))
		list.Data["prices.yaml"] = prices
		Expect(w.Client.Update(ctx, list)).To(Succeed())
		w.annotate(ctx, r, "example.com/poke", "2")
		Eventually(w.read(ctx, "waits")).Should(say(v1alpha1.ReasonReportMade, "EUR 1,400.00"))
		Expect(w.Client.Delete(ctx, r)).To(Succeed())
	})

	DescribeTable("is refused with path, value and rule", func(ctx SpecContext, change func(*v1alpha1.CostReport), says string) {
		Expect(w.Client.Create(ctx, w.report("wrong", change))).To(MatchError(ContainSubstring(says)))
	},
		Entry("an address", func(r *v1alpha1.CostReport) {
			r.Spec.Mail = &v1alpha1.ReportMail{SMTPSecretName: "smtp", From: post.From, To: []string{"Ann <ann@example.com>"}}
		}, `spec.mail.to[0]: Invalid value: "Ann <ann@example.com>"`),
		Entry("nobody", func(r *v1alpha1.CostReport) {
			r.Spec.Mail = &v1alpha1.ReportMail{SMTPSecretName: "smtp", From: post.From}
		}, "mail has no recipients: name some in to, or set personal"),
		Entry("a window", func(r *v1alpha1.CostReport) { r.Spec.Window = &metav1.Duration{Duration: time.Minute} },
			"window must be from 1h to 2208h, which are 92 days"),
		Entry("a ranking", func(r *v1alpha1.CostReport) { r.Spec.Rankings = []v1alpha1.ReportRanking{"Beauty"} }, `"Beauty"`),
	)

	It("behaviour 3: the same totals by user, team and task, and a hostile name harms nobody", func(ctx SpecContext) {
		Expect(w.Client.Create(ctx, w.report("weekly", func(r *v1alpha1.CostReport) {
			r.Spec.Formats = []v1alpha1.ReportFormat{"HTML", "CSV", "JSON", "FOCUS"}
		}))).To(Succeed())
		Eventually(w.read(ctx, "weekly")).Should(say(v1alpha1.ReasonReportMade, "EUR 1,400.00"))
		columns := w.columns(ctx, "weekly")
		Expect(columns).To(And(HaveKey("Last"), HaveKey("Next"), HaveKey("Age"), HaveKey("Mailed"), HaveKey("Frag"),
			HaveKeyWithValue("Total", "EUR 1,400.00"),
			// It is known of 124 hours: alice's 100 are used to the half, and bob's 24 to nine tenths.
			HaveKeyWithValue("Util", "58 %"), HaveKeyWithValue("Waste", "EUR 524.00")))

		csv := w.get(ctx, "weekly/latest/report.csv")
		Expect(csv).To(ContainSubstring("'=HYPERLINK"), "no spreadsheet runs it")
		page := w.get(ctx, "weekly/latest/report.html")
		Expect(page).NotTo(ContainSubstring("<script"))
		Expect(page).To(ContainSubstring("alice"))
		Expect(w.get(ctx, "weekly/latest/focus.csv")).To(HavePrefix("BilledCost"))
		Expect(w.get(ctx, "weekly/"+w.until.Format(time.RFC3339)+"/report.json")).To(ContainSubstring("1400.00"))
		summary := &corev1.ConfigMap{}
		Eventually(func() error {
			return w.Client.Get(ctx, client.ObjectKey{Namespace: rbac.Namespace, Name: "tideline-report-weekly"}, summary)
		}).Should(Succeed())
		Expect(summary.Data).To(HaveKeyWithValue("summary.txt", ContainSubstring("1,400")))
		Expect(summary.OwnerReferences).To(ConsistOf(HaveField("BlockOwnerDeletion", HaveValue(BeFalse()))),
			"it goes with its report, by no right that some clusters ask for")
		Expect(w.status(ctx, Default, "weekly/latest/report.html", "")).To(Equal(http.StatusUnauthorized), "nobody does without a name")
	})

	It("behaviour 4: mails arrive once each, over a restart, and one bad address keeps none from the others", func(ctx SpecContext) {
		people := "alice: {mail: alice@example.com}\nbob: {mail: bob@example.com}\n"
		Expect(w.Client.Create(ctx, configMap("people", "people.yaml", people))).To(Succeed())
		w.post.Refuse(map[string]post.Reply{"gone@example.com": {Code: 550, Message: "no such user"}})
		Expect(w.Client.Create(ctx, w.report("mailed", func(r *v1alpha1.CostReport) {
			r.Spec.DirectoryRef = &v1alpha1.OperatorObject{Name: "people"}
			r.Spec.Mail = &v1alpha1.ReportMail{
				SMTPSecretName: "smtp", From: post.From, To: []string{"gone@example.com", "leads@example.com"}, Personal: true,
			}
		}))).To(Succeed())
		Eventually(w.read(ctx, "mailed")).Should(sayOfMail(v1alpha1.ReasonInvalidMailServer, "There is no Secret smtp"))
		Expect(w.Client.Create(ctx, smtp("smtp", w.post.Secret))).To(Succeed())
		w.Operator.Kill()
		Expect(w.Operator.Start(ctx)).To(Succeed())
		once := map[string]int{"leads@example.com": 1, "alice@example.com": 1, "bob@example.com": 1}
		Eventually(w.post.Got).Should(Equal(once))
		Eventually(w.read(ctx, "mailed")).Should(And(HaveField("Status.Mailed", "3/4"), HaveField("Status.NotInDirectory", int32(1)),
			HaveField("Status.Refused", ConsistOf("gone@example.com (refused)"))))
		w.Operator.Kill()
		Expect(w.Operator.Start(ctx)).To(Succeed())
		Consistently(w.post.Got).WithTimeout(5 * time.Second).Should(Equal(once))

		header, parts, err := post.Parts(w.post.Mails("leads@example.com")[0])
		Expect(err).NotTo(HaveOccurred())
		Expect(header.Get("Subject")).To(ContainSubstring("1,400"))
		Expect(parts).To(And(HaveKeyWithValue("text/html", ContainSubstring("alice")), HaveKey("image/png"), HaveKey("text/plain"),
			HaveKeyWithValue("text/csv", ContainSubstring("1000.00"))))
		_, parts, err = post.Parts(w.post.Mails("bob@example.com")[0])
		Expect(err).NotTo(HaveOccurred())
		Expect(parts["text/html"]).To(And(ContainSubstring("ranker"), Not(ContainSubstring("alice")), Not(ContainSubstring("1,400"))))
	})

	It("says of mails what it said before while a list is wrong", func(ctx SpecContext) {
		mails := And(HaveField("Status.Mailed", "3/4"), HaveField("Status.NotInDirectory", int32(1)),
			HaveField("Status.Refused", ConsistOf("gone@example.com (refused)")))
		list := configMap("prices", "prices.yaml", "none")
		Expect(w.Client.Update(ctx, list)).To(Succeed())
		w.annotate(ctx, w.report("mailed"), "example.com/poke", time.Now())
		Eventually(w.read(ctx, "mailed")).Should(say(v1alpha1.ReasonInvalidPriceList))
		Expect(w.read(ctx, "mailed")()).To(mails)
		list.Data["prices.yaml"] = prices
		Expect(w.Client.Update(ctx, list)).To(Succeed())
		Expect(w.Client.Delete(ctx, configMap("people", "", ""))).To(Succeed())
		w.annotate(ctx, w.report("mailed"), "example.com/poke", time.Now())
		Eventually(w.read(ctx, "mailed")).Should(say(v1alpha1.ReasonInvalidDirectory, "there is no ConfigMap people"))
		Expect(w.read(ctx, "mailed")()).To(mails)
	})
})
