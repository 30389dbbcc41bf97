package report

import (
	"fmt"
	"net"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/test/testutil/post"
)

var _ = Describe("Mail of a report", Ordered, func() {
	var w *world
	BeforeAll(func(ctx SpecContext) {
		w = begin(ctx, lastWeek)
		Expect(w.Client.Create(ctx, configMap("prices", "prices.yaml", prices))).To(Succeed())
	})

	// mailedTo has a report mailed to people, by the server that a Secret names.
	mailedTo := func(server string, people ...string) func(*v1alpha1.CostReport) {
		return func(r *v1alpha1.CostReport) {
			r.Spec.Mail = &v1alpha1.ReportMail{SMTPSecretName: server, From: post.From, To: people}
		}
	}
	// name has a Secret name a server until the spec ends.
	name := func(ctx SpecContext, name string, data map[string][]byte) {
		GinkgoHelper()
		secret := smtp(name, data)
		Expect(w.Client.Create(ctx, secret)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(w.Client.Delete(ctx, secret))).To(Succeed())
		})
	}
	forget := func(ctx SpecContext, r *v1alpha1.CostReport) {
		GinkgoHelper()
		Expect(w.Client.Delete(ctx, r)).To(Succeed())
	}

	It("behaviour 4: a server that is down gets them when it is up", func(ctx SpecContext) {
		down, err := post.Serve(ctx, post.Options{})
		Expect(err).NotTo(HaveOccurred())
		name(ctx, "down", down.Secret)
		down.Close()
		r := w.report("down", mailedTo("down", "ann@example.com", "bob@example.com"))
		r.Annotations[v1alpha1.AnnotationReportUntil] = w.until.AddDate(0, 0, -1).Format(time.RFC3339) // another was due since
		Expect(w.Client.Create(ctx, r)).To(Succeed())
		at := net.JoinHostPort(string(down.Secret["host"]), string(down.Secret["port"]))
		Eventually(w.read(ctx, "down")).Should(And(say(v1alpha1.ReasonReportMade), HaveField("Status.Mailed", "0/2"),
			sayOfMail(v1alpha1.ReasonMailServerUnavailable, "0 of 2 mails were accepted",
				"The mail server cannot be reached: "+at, "refused", "The next try is at ")))
		Expect(w.columns(ctx, "down")).To(HaveKeyWithValue("Mailed", "0/2"))
		up, err := down.Again(ctx)
		Expect(err).NotTo(HaveOccurred(), "it is up")
		DeferCleanup(up.Close)
		Eventually(up.Got).Should(Equal(map[string]int{"ann@example.com": 1, "bob@example.com": 1}))
		Eventually(w.read(ctx, "down")).Should(And(HaveField("Status.Mailed", "2/2"), sayOfMail(v1alpha1.ReasonAllMailed)))
		forget(ctx, r)
	})

	It("behaviour 4: a server that never answers holds up no other report, nor a job", func(ctx SpecContext) {
		silent, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(silent.Close)
		at := silent.Addr().(*net.TCPAddr)
		name(ctx, "silent", map[string][]byte{"host": []byte(at.IP.String()), "port": fmt.Append(nil, at.Port)})
		name(ctx, "smtp", w.post.Secret)
		r := w.report("silent", mailedTo("silent", "ann@example.com", "bob@example.com"))
		Expect(w.Client.Create(ctx, r)).To(Succeed())
		Eventually(w.read(ctx, "silent")).Should(sayOfMail(v1alpha1.ReasonMailing, "2 are being sent"))
		other := w.report("other", mailedTo("smtp", "other@example.com"))
		Expect(w.Client.Create(ctx, other)).To(Succeed())
		s := w.NewScenario(GinkgoT(), "silent", 1)
		s.Submit(s.Job("job").Range(1, 1))
		Eventually(s.Fetch("job")).Should(HaveField("Status.Phase", v1alpha1.PhaseRunning))
		Eventually(w.read(ctx, "other")).Should(And(say(v1alpha1.ReasonReportMade), HaveField("Status.Mailed", "1/1")))
		Eventually(w.read(ctx, "silent")).Should(And(say(v1alpha1.ReasonReportMade), HaveField("Status.Mailed", "0/2"),
			sayOfMail(v1alpha1.ReasonMailServerUnavailable, at.String(), "it took too long", "The next try is at ")))
		Expect(w.post.Got()).To(HaveKeyWithValue("other@example.com", 1))
		forget(ctx, r)
		forget(ctx, other)
	})

	It("behaviour 4: an operator that is killed after any of the mails sends each once", func(ctx SpecContext) {
		name(ctx, "smtp", w.post.Secret)
		reports := make([]*v1alpha1.CostReport, 4)
		for k := 1; k <= 3; k++ {
			reports[k] = w.report(fmt.Sprintf("killed-%d", k))
			Expect(w.Client.Create(ctx, reports[k])).To(Succeed())
		}
		for k := 1; k <= 3; k++ {
			r := w.read(ctx, reports[k].Name)
			Eventually(r).Should(say(v1alpha1.ReasonReportMade))
			people, once := []string{}, map[string]int{}
			for _, who := range []string{"ann", "bob", "zoe"} {
				address := fmt.Sprintf("%s.%d@example.com", who, k)
				people, once[address] = append(people, address), 1
			}
			w.post.Hold(k)
			before := reports[k].DeepCopy()
			mailedTo("smtp", people...)(reports[k])
			Expect(w.Client.Patch(ctx, reports[k], client.MergeFrom(before))).To(Succeed(), "whoever is named later gets it as well")
			arrived := func() map[string]int {
				got := w.post.Got()
				for address := range got {
					if once[address] == 0 {
						delete(got, address)
					}
				}
				return got
			}
			Eventually(arrived).Should(HaveLen(k), "the server has mail %d, and the operator does not know it", k)
			w.Operator.Kill()
			w.post.Answer()
			Expect(arrived()).To(HaveLen(k))
			Expect(w.Operator.Start(ctx)).To(Succeed())
			Eventually(r).Should(And(HaveField("Status.Mailed", "2/3"),
				HaveField("Status.Refused", ConsistOf(people[k-1]+" (unconfirmed)")),
				sayOfMail(v1alpha1.ReasonSomeRefused, "of which nobody knows whether they arrived")), "killed after mail %d", k)
			Expect(arrived()).To(Equal(once), "killed after mail %d", k)
		}
	})
})
