package report

import (
	"fmt"
	"net"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil/post"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

var _ = Describe("Mail of a report", Ordered, func() {
	var f *fixture
	BeforeAll(func(ctx SpecContext) {
		f = begin(ctx, lastWeek)
		Expect(f.Client.Create(ctx, configMap("prices", "prices.yaml", prices))).To(Succeed())
	})

	// mailedTo has a report mailed to people, by the server that a Secret names.
	mailedTo := func(server string, people ...string) func(*v1beta1.CostReport) {
		return func(r *v1beta1.CostReport) {
			r.Spec.Mail = &v1beta1.ReportMail{SMTPSecretRef: v1beta1.ObjectRef{Name: server}, From: post.From, To: people}
		}
	}
	// name has a Secret name a server until the spec ends.
	name := func(ctx SpecContext, name string, data map[string][]byte) {
		GinkgoHelper()
		secret := smtp(name, data)
		Expect(f.Client.Create(ctx, secret)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(f.Client.Delete(ctx, secret))).To(Succeed())
		})
	}
	forget := func(ctx SpecContext, r *v1beta1.CostReport) {
		GinkgoHelper()
		Expect(f.Client.Delete(ctx, r)).To(Succeed())
	}

	It("behaviour 4: a server that is down gets them when it is up", func(ctx SpecContext) {
		down, err := post.Serve(ctx, post.Options{})
		Expect(err).NotTo(HaveOccurred())
		name(ctx, "down", down.Secret)
		down.Close()
		r := f.report("down", mailedTo("down", "ann@example.com", "bob@example.com"))
		r.Annotations[v1beta1.AnnotationReportUntil] = f.until.AddDate(0, 0, -1).Format(time.RFC3339) // another was due since
		Expect(f.Client.Create(ctx, r)).To(Succeed())
		at := net.JoinHostPort(string(down.Secret["host"]), string(down.Secret["port"]))
		Eventually(f.read(ctx, "down")).Should(And(say(v1beta1.ReasonReportMade), HaveField("Status.Mailed", "0/2"),
			sayOfMail(v1beta1.ReasonMailServerUnavailable, "0 of 2 mails were accepted",
				"The mail server cannot be reached: "+at, "refused", "The next try is at ")))
		Expect(f.columns(ctx, "down")).To(HaveKeyWithValue("Mailed", "0/2"))
		up, err := down.Again(ctx)
		Expect(err).NotTo(HaveOccurred(), "it is up")
		DeferCleanup(up.Close)
		Eventually(up.Got).Should(Equal(map[string]int{"ann@example.com": 1, "bob@example.com": 1}))
		Eventually(f.read(ctx, "down")).Should(And(HaveField("Status.Mailed", "2/2"), sayOfMail(v1beta1.ReasonAllMailed)))
		forget(ctx, r)
	})

	It("goes out though the summary beside the operator cannot be written", func(ctx SpecContext) {
		server, err := post.Serve(ctx, post.Options{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(server.Close)
		name(ctx, "frozen", server.Secret)
		r := f.report("frozen", mailedTo("frozen", "ann@example.com"), func(r *v1beta1.CostReport) { r.Spec.Suspend = true })
		Expect(f.Client.Create(ctx, r)).To(Succeed())
		summary := configMap("tideline-report-frozen", "summary.txt", "somebody froze it")
		summary.Immutable = ptr.To(true)
		Expect(controllerutil.SetControllerReference(r, summary, f.Client.Scheme())).To(Succeed())
		Expect(f.Client.Create(ctx, summary)).To(Succeed())
		patch := client.MergeFrom(r.DeepCopy())
		r.Spec.Suspend = false
		Expect(f.Client.Patch(ctx, r, patch)).To(Succeed())
		Eventually(server.Got).Should(Equal(map[string]int{"ann@example.com": 1}))
		Eventually(f.read(ctx, "frozen")).Should(And(HaveField("Status.Mailed", "1/1"), sayOfMail(v1beta1.ReasonAllMailed)))
		forget(ctx, r)
	})

	It("behaviour 4: a server that never answers holds up no other report, nor a job", func(ctx SpecContext) {
		silent, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(silent.Close)
		at := silent.Addr().(*net.TCPAddr)
		name(ctx, "silent", map[string][]byte{"host": []byte(at.IP.String()), "port": fmt.Append(nil, at.Port)})
		name(ctx, "smtp", f.post.Secret)
		r := f.report("silent", mailedTo("silent", "ann@example.com", "bob@example.com"))
		Expect(f.Client.Create(ctx, r)).To(Succeed())
		Eventually(f.read(ctx, "silent")).Should(sayOfMail(v1beta1.ReasonMailing, "2 are being sent"))
		other := f.report("other", mailedTo("smtp", "other@example.com"))
		Expect(f.Client.Create(ctx, other)).To(Succeed())
		s := f.NewScenario(GinkgoT(), "silent", 1)
		s.Submit(s.Job("job").Range(1, 1))
		Eventually(s.Fetch("job")).Should(HaveField("Status.Phase", v1beta1.PhaseRunning))
		Eventually(f.read(ctx, "other")).Should(And(say(v1beta1.ReasonReportMade), HaveField("Status.Mailed", "1/1")))
		Eventually(f.read(ctx, "silent")).Should(And(say(v1beta1.ReasonReportMade), HaveField("Status.Mailed", "0/2"),
			sayOfMail(v1beta1.ReasonMailServerUnavailable, at.String(), "it took too long", "The next try is at ")))
		Expect(f.post.Got()).To(HaveKeyWithValue("other@example.com", 1))
		forget(ctx, r)
		forget(ctx, other)
	})

	It("behaviour 4: an operator that is killed after any of the mails sends each once", suite.Long, func(ctx SpecContext) {
		name(ctx, "smtp", f.post.Secret)
		reports := make([]*v1beta1.CostReport, 4)
		for k := 1; k <= 3; k++ {
			reports[k] = f.report(fmt.Sprintf("killed-%d", k))
			Expect(f.Client.Create(ctx, reports[k])).To(Succeed())
		}
		for k := 1; k <= 3; k++ {
			r := f.read(ctx, reports[k].Name)
			Eventually(r).Should(say(v1beta1.ReasonReportMade))
			people, once := []string{}, map[string]int{}
			for _, who := range []string{"ann", "bob", "zoe"} {
				address := fmt.Sprintf("%s.%d@example.com", who, k)
				people, once[address] = append(people, address), 1
			}
			f.post.Hold(k)
			before := reports[k].DeepCopy()
			mailedTo("smtp", people...)(reports[k])
			Expect(f.Client.Patch(ctx, reports[k], client.MergeFrom(before))).To(Succeed(), "whoever is named later gets it as well")
			arrived := func() map[string]int {
				got := f.post.Got()
				for address := range got {
					if once[address] == 0 {
						delete(got, address)
					}
				}
				return got
			}
			Eventually(arrived).Should(HaveLen(k), "the server has mail %d, and the operator does not know it", k)
			f.Operator.Kill()
			f.post.Answer()
			Expect(arrived()).To(HaveLen(k))
			Expect(f.Operator.Start(ctx)).To(Succeed())
			Eventually(r).Should(And(HaveField("Status.Mailed", "2/3"),
				HaveField("Status.Refused", ConsistOf(people[k-1]+" (unconfirmed)")),
				sayOfMail(v1beta1.ReasonSomeRefused, "whose delivery is uncertain")), "killed after mail %d", k)
			Expect(arrived()).To(Equal(once), "killed after mail %d", k)
		}
	})
})
