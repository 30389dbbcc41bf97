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

	"github.com/tideline-io/tideline/api/v1alpha1"
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
		prelude: func(s *site) {
			s.Create(s.report())
			s.Eventually(s.fetchReport).Should(HaveField("Status.Reason", v1alpha1.ReasonReportScheduled), "it waits for its time")
		},
		strike: func(s *site) { s.askForReport("Z") },
		sequel: func(s *site) { s.reports("EUR 170.00", 1) },
		verify: saysOnce,
	})
	correcting = tell(story{
		name: "a report is made anew", slug: "revise", gpus: 1, clusterWide: true,
		prepare: keepBooks,
		prelude: func(s *site) {
			s.Create(s.report())
			s.askForReport("Z")
			s.reports("EUR 170.00", 1)
			s.books.first = s.firstRevision()
			s.Expect(s.Client.Update(s.t.Context(), s.prices("20"))).To(Succeed(), "the price was wrong")
		},
		strike: func(s *site) { s.askForReport("+00:00") },
		sequel: func(s *site) { s.reports("EUR 340.00", 2) },
		verify: func(s *site) {
			saysOnce(s)
			s.Expect(s.firstRevision()).To(Equal(s.books.first), "what was made stays as it is")
		},
	})
)

// books are what the reports of a site are made of, and who carries them.
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

// keepBooks gives the operators of the site a ledger that knows the past, and what else reports are made of.
func keepBooks(s *site) {
	s.books = &books{file: s.file("ledger.db"), until: time.Now().UTC().Truncate(24 * time.Hour)}
	s.Expect(s.books.record(s)).To(Succeed(), "the ledger knows the past")
	var err error
	s.books.post, err = post.Serve(s.t.Context(), post.Options{
		Addressed: func(to string) { s.tellOfMail(to, false) }, Kept: func(to string) { s.tellOfMail(to, true) },
	})
	s.Expect(err).NotTo(HaveOccurred(), "there is a server for mail")
	s.t.Cleanup(s.books.post.Close)
	var people strings.Builder
	for user := range hours {
		fmt.Fprintf(&people, "%[1]s: {mail: %[1]s@example.com}\n", user)
	}
	s.Create(s.prices("10"),
		&corev1.ConfigMap{ObjectMeta: s.beside("people"), Data: map[string]string{"people.yaml": people.String()}},
		&corev1.Secret{ObjectMeta: s.beside("smtp"), Type: "tideline.io/smtp", Data: s.books.post.Secret})
	file := s.file("configuration.yaml")
	s.Expect(os.WriteFile(file, fmt.Appendf(nil, `
apiVersion: config.tideline.io/v1alpha1
kind: Configuration
ledger: {file: %q}
`, s.books.file), 0o600)).To(Succeed(), "the configuration is written")
	s.flags = append(s.flags, "--config="+file)
}

// record writes the day before yesterday to the ledger, as the operator would have.
func (b *books) record(s *site) error {
	l, err := ledger.Open(s.t.Context(), ledger.Options{File: b.file})
	if err != nil {
		return err
	}
	day, stays := b.until.AddDate(0, 0, -2), []ledger.Stay{}
	for user, n := range hours {
		stays = append(stays, ledger.Stay{
			Pod: ledger.Pod{
				UID: user, Namespace: firstTeam, Name: user, Node: "gpu-0", Profile: firstTeam, User: user,
				Kind: v1alpha1.ElasticTrainingJobKind, Task: user, Run: user, Role: v1alpha1.RoleCore,
				Resources: ledger.Resources{string(testutil.GPUResource): 1000},
			},
			Begin: day, End: day.Add(time.Duration(n) * time.Hour), Final: true, Outcome: ledger.Succeeded,
		})
	}
	return errors.Join(l.Record(s.t.Context(), ledger.Entries{Stays: stays}), l.Close())
}

// beside names an object of the site's in the operator's own namespace.
func (s *site) beside(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: testutil.OperatorNamespace, Name: s.team(name)}
}

func (s *site) prices(hourly string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: s.beside("prices"), Data: map[string]string{"prices.yaml": fmt.Sprintf(`
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
func (s *site) report() *v1alpha1.CostReport {
	notSoon := time.Now().AddDate(0, 6, 0)
	return &v1alpha1.CostReport{
		ObjectMeta: metav1.ObjectMeta{Name: s.team("weekly")},
		Spec: v1alpha1.CostReportSpec{
			Schedule:     fmt.Sprintf("0 0 1 %d *", notSoon.Month()),
			PriceListRef: v1alpha1.OperatorObject{Name: s.team("prices")},
			DirectoryRef: &v1alpha1.OperatorObject{Name: s.team("people")},
			Mail: &v1alpha1.ReportMail{
				SMTPSecretName: s.team("smtp"), From: post.From, To: recipients[:1], Personal: true,
			},
		},
	}
}

// askForReport asks for the report until midnight. The same time with its zone in other words asks once more.
func (s *site) askForReport(zone string) {
	s.annotateReport(v1alpha1.AnnotationReportUntil, s.books.until.Format("2006-01-02T15:04:05")+zone)
}

func (s *site) annotateReport(name, value string) {
	s.Patch(s.report(), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, name, value))
}

func (s *site) fetchReport() (*v1alpha1.CostReport, error) {
	r := &v1alpha1.CostReport{}
	return r, s.Client.Get(s.t.Context(), client.ObjectKey{Name: s.team("weekly")}, r)
}

// reports awaits that the report says so much, and is mailed to all.
func (s *site) reports(total string, revision int) {
	s.Eventually(s.fetchReport).Should(And(HaveField("Status.Reason", v1alpha1.ReasonReportMade),
		HaveField("Status.Last.Total", total), HaveField("Status.Last.Revision", BeEquivalentTo(revision)),
		HaveField("Status.Mailed", "4/4"), mailed(v1alpha1.ReasonAllMailed, "4 of 4 mails were accepted.")), "it is made and mailed")
	s.Eventually(s.summary).Should(ContainSubstring(`"revision":%d,"total":%q`, revision, total), "its summary can be read")
	s.Expect(s.books.post.Got()).To(Equal(oneEach()), "each has one mail")
}

func mailed(reason, says string) types.GomegaMatcher {
	return HaveField("Status.Conditions", ContainElement(And(HaveField("Type", v1alpha1.ConditionMailed),
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
func (s *site) summary() (string, error) {
	m := &corev1.ConfigMap{}
	err := s.Client.Get(s.t.Context(), client.ObjectKey{Namespace: testutil.OperatorNamespace, Name: s.summaryName()}, m)
	return m.Data["summary.json"], err
}

func (s *site) summaryName() string { return "tideline-report-" + s.team("weekly") }

// saysOnce checks that no event was told twice, and that no mail has another's figures.
func saysOnce(s *site) {
	report, err := s.fetchReport()
	s.Expect(err).NotTo(HaveOccurred(), "the report is read")
	list := &eventsv1.EventList{}
	s.Expect(s.Client.List(s.t.Context(), list, client.InNamespace(metav1.NamespaceDefault))).To(Succeed(), "the events are listed")
	told := map[string]int{}
	for i := range list.Items {
		if e := &list.Items[i]; e.Regarding.UID == report.UID {
			told[e.Reason+": "+e.Note]++
			s.Expect(e.Series).To(BeNil(), "%s: it is not told again", e.Reason)
			s.Expect(e.Reason).To(BeElementOf(v1alpha1.ReasonReportScheduled, v1alpha1.ReasonReportMade), "%s: nothing is wrong", e.Note)
		}
	}
	s.Expect(slices.Collect(maps.Values(told))).To(HaveEach(1), "no event comes twice: %v", told)
	for _, to := range recipients {
		header, parts, err := post.Parts(s.books.post.Mails(to)[0])
		s.Expect(err).NotTo(HaveOccurred(), "the mail is one")
		s.Expect(header.Get("To")).To(Equal("<" + to + ">"))
		for user := range hours {
			theirs := ContainSubstring(user)
			if to != recipients[0] && to != user+"@example.com" {
				theirs = Not(theirs)
			}
			s.Expect(parts["text/html"]).To(theirs, "what %s reads of %s", to, user)
		}
	}
}

// inLedger opens the ledger beside the operator.
func (s *site) inLedger(look func(*ledger.Ledger) error) error {
	l, err := ledger.Open(s.t.Context(), ledger.Options{File: s.books.file})
	if err != nil {
		return err
	}
	return errors.Join(look(l), l.Close())
}

// firstRevision is a file of it.
func (s *site) firstRevision() (content string) {
	s.Expect(s.inLedger(func(l *ledger.Ledger) error {
		all, err := l.Reports(s.t.Context(), "", s.team("weekly"))
		if err != nil {
			return err
		}
		content, _, err = l.ReportFile(s.t.Context(), all[len(all)-1], "report.json")
		return err
	})).To(Succeed(), "the first revision is read")
	s.Expect(content).To(ContainSubstring("170.00"), "it is what it was")
	return content
}

// describeReports tells what the report says of itself, what is kept of it, and who got it.
func (s *site) describeReports(b *strings.Builder) error {
	if s.books == nil {
		return nil
	}
	report, err := s.fetchReport()
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
	summary, err := s.summary()
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "CostReport %s:\n%sConfigMap %s: %s\nmails: %v\n", report.Name, lines, s.summaryName(), summary,
		s.books.post.Got())
	err = s.inLedger(func(l *ledger.Ledger) error {
		kept, err := l.Reports(s.t.Context(), string(report.UID), "")
		for i := range kept {
			fmt.Fprintf(&text, "kept: revision %d of %s: %s\n", kept[i].Revision, kept[i].Name, kept[i].Summary)
		}
		mails, errs := l.Deliveries(s.t.Context(), string(report.UID), s.books.until)
		for i := range mails {
			m := &mails[i]
			fmt.Fprintf(&text, "%s for %s to %s: %s after %d tries %s\n", m.Kind, m.User, m.Address, m.State, m.Tries, m.Error)
		}
		return errors.Join(err, errs)
	})
	b.WriteString(writtenTime.ReplaceAllString(text.String(), someTime.UTC().Format(time.RFC3339)))
	return err
}
