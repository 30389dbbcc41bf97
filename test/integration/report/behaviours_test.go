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

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/config/rbac"
	"github.com/tideline-io/tideline/test/testutil/post"
)

var _ = Describe("A report", Ordered, func() {
	var f *fixture
	BeforeAll(func(ctx SpecContext) { f = begin(ctx, lastWeek) })

	It("says what it waits for, and goes on when it is there", func(ctx SpecContext) {
		r := f.report("waits")
		Expect(f.Client.Create(ctx, r)).To(Succeed())
		Eventually(f.read(ctx, "waits")).Should(say(v1beta1.ReasonPriceListNotFound,
			"there is no ConfigMap prices in namespace tideline-system: create it, with key prices.yaml."))
		list := configMap("prices", "prices.yaml", strings.Replace(prices, `"10"`, `"-3"`, 1))
		Expect(f.Client.Create(ctx, list)).To(Succeed())
		f.annotate(ctx, r, "example.com/poke", "1")
		Eventually(f.read(ctx, "waits")).Should(say(v1beta1.ReasonInvalidPriceList, "prices[0].accelerators[0].hourly", "-3"))
		list.Data["prices.yaml"] = prices
		Expect(f.Client.Update(ctx, list)).To(Succeed())
		f.annotate(ctx, r, "example.com/poke", "2")
		Eventually(f.read(ctx, "waits")).Should(say(v1beta1.ReasonReportMade, "EUR 1,400.00"))
		Expect(f.Client.Delete(ctx, r)).To(Succeed())
	})

	DescribeTable("is refused with path, value and rule", func(ctx SpecContext, change func(*v1beta1.CostReport), says string) {
		Expect(f.Client.Create(ctx, f.report("wrong", change))).To(MatchError(ContainSubstring(says)))
	},
		Entry("an address", func(r *v1beta1.CostReport) {
			r.Spec.Mail = &v1beta1.ReportMail{SMTPSecretRef: v1beta1.ObjectRef{Name: "smtp"}, From: post.From,
				To: []string{"Ann <ann@example.com>"}}
		}, `spec.mail.to[0]: Invalid value: "Ann <ann@example.com>"`),
		Entry("nobody", func(r *v1beta1.CostReport) {
			r.Spec.Mail = &v1beta1.ReportMail{SMTPSecretRef: v1beta1.ObjectRef{Name: "smtp"}, From: post.From}
		}, "mail has no recipients: name some in to, or set personal"),
		Entry("a window", func(r *v1beta1.CostReport) { r.Spec.Window = &metav1.Duration{Duration: time.Minute} },
			"window must be from 1h to 2208h, which are 92 days"),
		Entry("a ranking", func(r *v1beta1.CostReport) { r.Spec.Rankings = []v1beta1.ReportRanking{"Beauty"} }, `"Beauty"`),
	)

	It("behaviour 3: the same totals by user, team and task, and a hostile name harms nobody", func(ctx SpecContext) {
		Expect(f.Client.Create(ctx, f.report("weekly", func(r *v1beta1.CostReport) {
			r.Spec.Formats = []v1beta1.ReportFormat{"HTML", "CSV", "JSON", "FOCUS"}
		}))).To(Succeed())
		Eventually(f.read(ctx, "weekly")).Should(say(v1beta1.ReasonReportMade, "EUR 1,400.00"))
		columns := f.columns(ctx, "weekly")
		Expect(columns).To(And(HaveKey("Last"), HaveKey("Next"), HaveKey("Age"), HaveKey("Mailed"), HaveKey("Frag"),
			HaveKeyWithValue("Total", "EUR 1,400.00"),
			// It is known of 124 hours: alice's 100 are used to the half, and bob's 24 to nine tenths.
			HaveKeyWithValue("Util", "58 %"), HaveKeyWithValue("Waste", "EUR 524.00")))

		csv := f.get(ctx, "weekly/latest/report.csv")
		Expect(csv).To(ContainSubstring("'=HYPERLINK"), "no spreadsheet runs it")
		page := f.get(ctx, "weekly/latest/report.html")
		Expect(page).NotTo(ContainSubstring("<script"))
		Expect(page).To(ContainSubstring("alice"))
		Expect(f.get(ctx, "weekly/latest/focus.csv")).To(HavePrefix("BilledCost"))
		Expect(f.get(ctx, "weekly/"+f.until.Format(time.RFC3339)+"/report.json")).To(ContainSubstring("1400.00"))
		summary := &corev1.ConfigMap{}
		Eventually(func() error {
			return f.Client.Get(ctx, client.ObjectKey{Namespace: rbac.Namespace, Name: "tideline-report-weekly"}, summary)
		}).Should(Succeed())
		Expect(summary.Data).To(HaveKeyWithValue("summary.txt", ContainSubstring("1,400")))
		Expect(summary.OwnerReferences).To(ConsistOf(HaveField("BlockOwnerDeletion", HaveValue(BeFalse()))),
			"it goes with its report, by no right that some clusters ask for")
		Expect(f.status(ctx, Default, "weekly/latest/report.html", "")).To(Equal(http.StatusUnauthorized), "nobody does without a name")
	})

	It("behaviour 3: a leader reads the page of exactly their people, and nobody else does", func(ctx SpecContext) {
		const people = "alice: {leader: lee}\nbob: {leader: bob}\nlee: {}\n"
		Expect(f.Client.Create(ctx, configMap("leaders", "people.yaml", people))).To(Succeed())
		led := f.report("led", func(r *v1beta1.CostReport) { r.Spec.DirectoryRef = &v1beta1.ObjectRef{Name: "leaders"} })
		Expect(f.Client.Create(ctx, led)).To(Succeed())
		Eventually(f.read(ctx, "led")).Should(say(v1beta1.ReasonReportMade, "EUR 1,400.00"))
		Expect(f.read(ctx, "led")()).To(HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", v1beta1.ConditionDirectoryFaulty),
			HaveField("Message", ContainSubstring(`user "bob": leader "bob" is that user: name another, or leave leader out`)),
		))), "nobody leads themselves")

		const page = "led/people/lee/latest/report.html"
		lee, other := f.tokenOf(ctx, "lee", "/reports/led/people/lee/*"), f.tokenOf(ctx, "other", "/reports/led/people/other/*")
		Expect(f.download(ctx, "reports/"+page, lee)).To(And(ContainSubstring("What the people of lee used"), ContainSubstring("alice"),
			Not(ContainSubstring("bob")), Not(ContainSubstring("ranker")), Not(ContainSubstring("1,400"))))
		for path, tokens := range map[string][]string{
			page: {other}, "led/latest/report.html": {lee, other}, "led/people/bob/latest/report.html": {lee, other},
			"led/people/lee/../bob/latest/report.html": {other},
		} {
			for _, token := range tokens {
				Expect(f.status(ctx, Default, path, token)).To(Equal(http.StatusForbidden), path)
			}
		}
		Eventually(func(g Gomega) int {
			return f.status(ctx, g, "led/people/other/latest/report.html", other)
		}).Should(Equal(http.StatusNotFound), "who may read the page of somebody who leads nobody finds none")
		Expect(f.Client.Delete(ctx, led)).To(Succeed())
		Expect(f.Client.Delete(ctx, configMap("leaders", "", ""))).To(Succeed())
	})

	It("behaviour 4: mails arrive once each, over a restart, and one bad address keeps none from the others", func(ctx SpecContext) {
		people := "alice: {mail: alice@example.com}\nbob: {mail: bob@example.com}\n"
		Expect(f.Client.Create(ctx, configMap("people", "people.yaml", people))).To(Succeed())
		f.post.Refuse(map[string]post.Reply{"gone@example.com": {Code: 550, Message: "no such user"}})
		Expect(f.Client.Create(ctx, f.report("mailed", func(r *v1beta1.CostReport) {
			r.Spec.DirectoryRef = &v1beta1.ObjectRef{Name: "people"}
			r.Spec.Mail = &v1beta1.ReportMail{
				SMTPSecretRef: v1beta1.ObjectRef{Name: "smtp"}, From: post.From, To: []string{"gone@example.com", "leads@example.com"},
				Personal: true,
			}
		}))).To(Succeed())
		Eventually(f.read(ctx, "mailed")).Should(sayOfMail(v1beta1.ReasonInvalidMailServer, "There is no Secret smtp"))
		Expect(f.Client.Create(ctx, smtp("smtp", f.post.Secret))).To(Succeed())
		f.Operator.Kill()
		Expect(f.Operator.Start(ctx)).To(Succeed())
		once := map[string]int{"leads@example.com": 1, "alice@example.com": 1, "bob@example.com": 1}
		Eventually(f.post.Got).Should(Equal(once))
		Eventually(f.read(ctx, "mailed")).Should(And(HaveField("Status.Mailed", "3/4"), HaveField("Status.NotInDirectory", int32(1)),
			HaveField("Status.Refused", ConsistOf("gone@example.com (refused)"))))
		f.Operator.Kill()
		Expect(f.Operator.Start(ctx)).To(Succeed())
		Consistently(f.post.Got).WithTimeout(5 * time.Second).Should(Equal(once))

		header, parts, err := post.Parts(f.post.Mails("leads@example.com")[0])
		Expect(err).NotTo(HaveOccurred())
		Expect(header.Get("Subject")).To(ContainSubstring("1,400"))
		Expect(parts).To(And(HaveKeyWithValue("text/html", ContainSubstring("alice")), HaveKey("image/png"), HaveKey("text/plain"),
			HaveKeyWithValue("text/csv", ContainSubstring("1000.00"))))
		_, parts, err = post.Parts(f.post.Mails("bob@example.com")[0])
		Expect(err).NotTo(HaveOccurred())
		Expect(parts["text/html"]).To(And(ContainSubstring("ranker"), Not(ContainSubstring("alice")), Not(ContainSubstring("1,400"))))
	})

	It("says of mails what it said before while a list is wrong", func(ctx SpecContext) {
		mails := And(HaveField("Status.Mailed", "3/4"), HaveField("Status.NotInDirectory", int32(1)),
			HaveField("Status.Refused", ConsistOf("gone@example.com (refused)")))
		list := configMap("prices", "prices.yaml", "none")
		Expect(f.Client.Update(ctx, list)).To(Succeed())
		f.annotate(ctx, f.report("mailed"), "example.com/poke", time.Now())
		Eventually(f.read(ctx, "mailed")).Should(say(v1beta1.ReasonInvalidPriceList))
		Expect(f.read(ctx, "mailed")()).To(mails)
		list.Data["prices.yaml"] = prices
		Expect(f.Client.Update(ctx, list)).To(Succeed())
		Expect(f.Client.Delete(ctx, configMap("people", "", ""))).To(Succeed())
		f.annotate(ctx, f.report("mailed"), "example.com/poke", time.Now())
		Eventually(f.read(ctx, "mailed")).Should(say(v1beta1.ReasonInvalidDirectory, "there is no ConfigMap people"))
		Expect(f.read(ctx, "mailed")()).To(mails)
	})
})
