package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/post"
)

// reportStories are told as stories are, by operators with a ledger that outlives them.
var reportStories = []*story{reporting, correcting}

var (
	reporting = tell(story{
		name: "a report is made, told of and mailed", slug: "report", gpus: 1, clusterWide: true,
		prepare: keepBooks,
		setup: func(env *environment) {
			env.Create(env.report())
			env.Eventually(env.fetchReport).Should(HaveField("Status.Reason", v1beta1.ReasonReportScheduled), "it waits for its time")
		},
		action: func(env *environment) { env.askForReport("Z") },
		sequel: func(env *environment) { env.reports("EUR 170.00", 1) },
		verify: saysOnce,
	})
	correcting = tell(story{
		name: "a report is made anew", slug: "revise", gpus: 1, clusterWide: true,
		prepare: keepBooks,
		setup: func(env *environment) {
			env.Create(env.report())
			env.askForReport("Z")
			env.reports("EUR 170.00", 1)
			env.books.first = env.firstRevision()
			env.Expect(env.Client.Update(env.t.Context(), env.prices("20"))).To(Succeed(), "the price was wrong")
		},
		action: func(env *environment) { env.askForReport("+00:00") },
		sequel: func(env *environment) { env.reports("EUR 340.00", 2) },
		verify: func(env *environment) {
			saysOnce(env)
			env.Expect(env.firstRevision()).To(Equal(env.books.first), "what was made stays as it is")
		},
	})
)

// books are what the reports of an environment are made of, and who carries them.
type books struct {
	// file is the ledger, and until when the window of the report ends.
	file  string
	until time.Time
	post  *post.Server
	// first is a file of the first revision as it was before the story begins.
	first string
	// onMail is told of each mail, once when it has a recipient and once when it is kept and not yet answered.
	onMail func(to string, kept bool)
}

// hours are those for which users held a GPU, which costs 10 an hour.
var hours = map[string]int{"alice": 10, "bob": 5, "carol": 2}

// recipients of a report get a mail each, in this order: its list, and each user.
var recipients = []string{"leads@example.com", "alice@example.com", "bob@example.com", "carol@example.com"}

// keepBooks gives the operators of the environment a ledger that knows the past, and what else reports are made of.
func keepBooks(env *environment) {
	env.books = &books{file: env.file("ledger.db"), until: time.Now().UTC().Truncate(24 * time.Hour)}
	env.Expect(env.books.record(env)).To(Succeed(), "the ledger knows the past")
	var err error
	env.books.post, err = post.Serve(env.t.Context(), post.Options{
		Addressed: func(to string) { env.tellOfMail(to, false) }, Kept: func(to string) { env.tellOfMail(to, true) },
	})
	env.Expect(err).NotTo(HaveOccurred(), "there is a server for mail")
	env.t.Cleanup(env.books.post.Close)
	var people strings.Builder
	for user := range hours {
		fmt.Fprintf(&people, "%[1]s: {mail: %[1]s@example.com}\n", user)
	}
	env.Create(env.prices("10"),
		&corev1.ConfigMap{ObjectMeta: env.beside("people"), Data: map[string]string{"people.yaml": people.String()}},
		&corev1.Secret{ObjectMeta: env.beside("smtp"), Type: "tideline.io/smtp", Data: env.books.post.Secret})
	file := env.file("configuration.yaml")
	env.Expect(os.WriteFile(file, fmt.Appendf(nil, `
apiVersion: config.tideline.io/v1alpha1
kind: Configuration
ledger: {file: %q}
`, env.books.file), 0o600)).To(Succeed(), "the configuration is written")
	env.flags = append(env.flags, "--config="+file)
}

// record writes the day before yesterday to the ledger, as the operator would have.
func (b *books) record(env *environment) error {
	l, err := ledger.Open(env.t.Context(), ledger.Options{File: b.file})
	if err != nil {
		return err
	}
	day, stays := b.until.AddDate(0, 0, -2), []ledger.Stay{}
	for user, n := range hours {
		stays = append(stays, ledger.Stay{
			Pod: ledger.Pod{
				UID: user, Namespace: firstTeam, Name: user, Node: "gpu-0", Profile: firstTeam, User: user,
				Kind: v1beta1.ElasticTrainingJobKind, Task: user, Run: user, Role: v1beta1.PartCore,
				Resources: ledger.Resources{string(testutil.GPUResource): 1000},
			},
			Begin: day, End: day.Add(time.Duration(n) * time.Hour), Final: true, Outcome: ledger.Succeeded,
		})
	}
	return errors.Join(l.RecordEntries(env.t.Context(), ledger.Entries{Stays: stays}), l.Close())
}

// beside names an object of the environment's in the operator's own namespace.
func (env *environment) beside(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: testutil.OperatorNamespace, Name: env.team(name)}
}

func (env *environment) prices(hourly string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: env.beside("prices"), Data: map[string]string{"prices.yaml": fmt.Sprintf(`
currency: EUR
prices:
- validFrom: "2020-01-01"
  cpuCoreHour: "0"
  memoryGiBHour: "0"
  accelerators:
  - {resource: nvidia.com/gpu, hourly: %q}
`, hourly)}}
}

// report is one for which nobody asked, and which is not due for months.
func (env *environment) report() *v1beta1.CostReport {
	notSoon := time.Now().AddDate(0, 6, 0)
	return &v1beta1.CostReport{
		ObjectMeta: metav1.ObjectMeta{Name: env.team("weekly")},
		Spec: v1beta1.CostReportSpec{
			Schedule:     fmt.Sprintf("0 0 1 %d *", notSoon.Month()),
			PriceListRef: v1beta1.ObjectRef{Name: env.team("prices")},
			DirectoryRef: &v1beta1.ObjectRef{Name: env.team("people")},
			Mail: &v1beta1.ReportMail{
				SMTPSecretRef: v1beta1.ObjectRef{Name: env.team("smtp")}, From: post.From, To: recipients[:1], Personal: true,
			},
		},
	}
}

// askForReport asks for the report until midnight. The same time with its zone in other words asks once more.
func (env *environment) askForReport(zone string) {
	env.annotateReport(v1beta1.AnnotationReportUntil, env.books.until.Format("2006-01-02T15:04:05")+zone)
}

func (env *environment) annotateReport(name, value string) {
	env.Patch(env.report(), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, name, value))
}

func (env *environment) fetchReport() (*v1beta1.CostReport, error) {
	r := &v1beta1.CostReport{}
	return r, env.Client.Get(env.t.Context(), client.ObjectKey{Name: env.team("weekly")}, r)
}

// reports awaits that the report says so much, and is mailed to all.
func (env *environment) reports(total string, revision int) {
	env.Eventually(env.fetchReport).Should(And(HaveField("Status.Reason", v1beta1.ReasonReportMade),
		HaveField("Status.Last.Total", total), HaveField("Status.Last.Revision", BeEquivalentTo(revision)),
		HaveField("Status.Mailed", "4/4"), mailed(v1beta1.ReasonAllMailed, "4 of 4 mails were accepted.")), "it is made and mailed")
	env.Eventually(env.summary).Should(ContainSubstring(`"revision":%d,"total":%q`, revision, total), "its summary can be read")
	env.Expect(env.books.post.Got()).To(Equal(oneEach()), "each has one mail")
}

func mailed(reason, says string) types.GomegaMatcher {
	return HaveField("Status.Conditions", ContainElement(And(HaveField("Type", v1beta1.ConditionMailed),
		HaveField("Reason", reason), HaveField("Message", ContainSubstring(says)))))
}

// oneEach is one mail for each recipient.
func oneEach() map[string]int {
	each := map[string]int{}
	for _, to := range recipients {
		each[to] = 1
	}
	return each
}

// summary is that of the last report, in its ConfigMap.
func (env *environment) summary() (string, error) {
	m := &corev1.ConfigMap{}
	err := env.Client.Get(env.t.Context(), client.ObjectKey{Namespace: testutil.OperatorNamespace, Name: env.summaryName()}, m)
	return m.Data["summary.json"], err
}

func (env *environment) summaryName() string { return "tideline-report-" + env.team("weekly") }

// saysOnce checks that no event was told twice, and that no mail has another's figures.
func saysOnce(env *environment) {
	report, err := env.fetchReport()
	env.Expect(err).NotTo(HaveOccurred(), "the report is read")
	list := &eventsv1.EventList{}
	env.Expect(env.Client.List(env.t.Context(), list, client.InNamespace(metav1.NamespaceDefault))).
		To(Succeed(), "the events are listed")
	told := map[string]int{}
	for i := range list.Items {
		if e := &list.Items[i]; e.Regarding.UID == report.UID {
			told[e.Reason+": "+e.Note]++
			env.Expect(e.Series).To(BeNil(), "%s: it is not told again", e.Reason)
			env.Expect(e.Reason).To(BeElementOf(v1beta1.ReasonReportScheduled, v1beta1.ReasonReportMade), "%s: nothing is wrong", e.Note)
		}
	}
	env.Expect(slices.Collect(maps.Values(told))).To(HaveEach(1), "no event comes twice: %v", told)
	for _, to := range recipients {
		header, parts, err := post.Parts(env.books.post.Mails(to)[0])
		env.Expect(err).NotTo(HaveOccurred(), "the mail is one")
		env.Expect(header.Get("To")).To(Equal("<" + to + ">"))
		for user := range hours {
			theirs := ContainSubstring(user)
			if to != recipients[0] && to != user+"@example.com" {
				theirs = Not(theirs)
			}
			env.Expect(parts["text/html"]).To(theirs, "what %s reads of %s", to, user)
		}
	}
}

// inLedger opens the ledger beside the operator.
func (env *environment) inLedger(look func(*ledger.Ledger) error) error {
	l, err := ledger.Open(env.t.Context(), ledger.Options{File: env.books.file})
	if err != nil {
		return err
	}
	return errors.Join(look(l), l.Close())
}

// firstRevision is a file of it.
func (env *environment) firstRevision() (content string) {
	env.Expect(env.inLedger(func(l *ledger.Ledger) error {
		all, err := l.QueryReports(env.t.Context(), "", env.team("weekly"))
		if err != nil {
			return err
		}
		content, _, err = l.ReportFile(env.t.Context(), all[len(all)-1], "report.json")
		return err
	})).To(Succeed(), "the first revision is read")
	env.Expect(content).To(ContainSubstring("170.00"), "it is what it was")
	return content
}

// describeReports tells what the report says of itself, what is kept of it, and who got it.
func (env *environment) describeReports(b *strings.Builder) error {
	if env.books == nil {
		return nil
	}
	report, err := env.fetchReport()
	if err != nil {
		return err
	}
	status, err := json.Marshal(report.Status)
	if err != nil {
		return err
	}
	lines, err := yaml.JSONToYAML(status)
	if err != nil {
		return err
	}
	summary, err := env.summary()
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "CostReport %s:\n%sConfigMap %s: %s\nmails: %v\n", report.Name, lines, env.summaryName(), summary,
		env.books.post.Got())
	err = env.inLedger(func(l *ledger.Ledger) error {
		kept, err := l.QueryReports(env.t.Context(), string(report.UID), "")
		for i := range kept {
			fmt.Fprintf(&text, "kept: revision %d of %s: %s\n", kept[i].Revision, kept[i].Name, kept[i].Summary)
		}
		mails, errs := l.QueryDeliveries(env.t.Context(), string(report.UID), env.books.until)
		for i := range mails {
			m := &mails[i]
			fmt.Fprintf(&text, "%s for %s to %s: %s after %d tries %s\n", m.Kind, m.User, m.Address, m.State, m.Tries, m.Error)
		}
		return errors.Join(err, errs)
	})
	b.WriteString(writtenTime.ReplaceAllString(text.String(), someTime.UTC().Format(time.RFC3339)))
	return err
}
