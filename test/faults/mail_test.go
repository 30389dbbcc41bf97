package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

var _ = Describe("while a report is mailed", func() {
	itEndsTheSame("the operator dies in the middle of a mail", reporting.everyMail)
	itEndsTheSame("the report is deleted", reporting.deletedMeanwhile)
})

// mailPoint is a moment of a mail: when it has a recipient, or when it is kept and not yet answered.
type mailPoint struct {
	to   string
	kept bool
}

// String says where the point is.
func (p mailPoint) String() string {
	if p.kept {
		return "killed before the answer to the mail to " + p.to
	}
	return "killed in the middle of the mail to " + p.to
}

// everyMail kills the operator in each mail: at each of its moments for the full grid, else by turns.
func (st *story) everyMail(ctx context.Context, res *results) (string, error) {
	const what = "killed in the middle of a mail"
	res.plan(what, byChance)
	var points []mailPoint
	for i, to := range recipients {
		for _, kept := range []bool{false, true} {
			if fullGrid || kept == ((int64(i)+GinkgoRandomSeed())%2 == 0) {
				points = append(points, mailPoint{to, kept})
			}
		}
	}
	points = spots(points, 6)
	var runs []func() error
	table := make([]string, len(points))
	for i, p := range points {
		runs = append(runs, func() error {
			return res.record(what, func() (v verdict, err error) {
				if err = try(ctx, p.String(), func(t *storyRun) { st.tryMail(t, p) }); err == nil {
					v = passed
				}
				table[i] = fmt.Sprintf("%s: %s", p, v)
				return v, err
			})
		})
	}
	err := abreast(runs...)
	return strings.Join(table, "\n"), err
}

// tryMail kills the operator in a mail. Of that nobody knows whether it arrived: it is listed, and not sent again before somebody
// wants it. All others arrive.
func (st *story) tryMail(t *storyRun, p mailPoint) {
	env := st.begin(t)
	dies := sync.OnceFunc(env.crash)
	env.interceptMails(func(to string, kept bool) {
		if to == p.to && kept == p.kept {
			dies()
		}
	})
	st.action(env)
	unclear := And(HaveField("Status.Mailed", "3/4"), HaveField("Status.Refused", ConsistOf(p.to+" (unconfirmed)")),
		mailed(v1beta1.ReasonSomeRefused, "3 of 4 mails were accepted; status.refused names 1 recipients whose server refused "+
			"the mail for good, or whose delivery is uncertain."))
	env.Eventually(env.fetchReport).Should(unclear, "the mail is listed")
	env.rests(env.secondThoughts())
	want := oneEach()
	if !p.kept {
		delete(want, p.to)
	}
	env.Expect(env.books.post.Got()).To(Equal(want), "no mail is sent twice")
	env.Expect(env.fetchReport()).To(unclear, "the mail is still listed")
	kept, states := env.delivered(env.reportUID())
	env.Expect(kept).To(Equal(1), "the report is made once")
	env.Expect(states).To(HaveKeyWithValue(p.to, ledger.DeliverySending))

	env.annotateReport(v1beta1.AnnotationMailAgain, time.Now().UTC().Format(time.RFC3339))
	env.Eventually(env.fetchReport).Should(And(HaveField("Status.Mailed", "4/4"), HaveField("Status.Refused", BeEmpty()),
		mailed(v1beta1.ReasonAllMailed, "")), "somebody wants it sent again")
	env.rests(longerThanHeldBack)
	want[p.to]++
	env.Expect(env.books.post.Got()).To(Equal(want), "it is sent again once")
	saysOnce(env)
}

// tellOfMail tells who intercepts mails.
func (env *environment) tellOfMail(to string, kept bool) {
	env.mu.Lock()
	tell := env.books.onMail
	env.mu.Unlock()
	if tell != nil {
		tell(to, kept)
	}
}

// interceptMails has mails be told of from now on.
func (env *environment) interceptMails(tell func(to string, kept bool)) {
	env.mu.Lock()
	defer env.mu.Unlock()
	env.books.onMail = tell
}

func (env *environment) reportUID() string {
	report, err := env.fetchReport()
	env.Expect(err).NotTo(HaveOccurred(), "the report is read")
	return string(report.UID)
}

// delivered is how many revisions of a report are kept, and what became of its mails.
func (env *environment) delivered(uid string) (revisions int, states map[string]ledger.DeliveryState) {
	states = map[string]ledger.DeliveryState{}
	env.Expect(env.inLedger(func(l *ledger.Ledger) error {
		kept, err := l.QueryReports(env.t.Context(), uid, "")
		if err != nil {
			return err
		}
		mails, err := l.QueryDeliveries(env.t.Context(), uid, env.books.until)
		for i := range mails {
			states[mails[i].Address] = mails[i].State
		}
		revisions = len(kept)
		return err
	})).To(Succeed(), "the ledger is read")
	return revisions, states
}

// deletedMeanwhile deletes the report while its first mail is on its way, with the operator there and with the operator gone.
func (st *story) deletedMeanwhile(ctx context.Context, res *results) (string, error) {
	const what = "a report is deleted while it is mailed"
	res.plan(what, byChance)
	var runs []func() error
	for _, down := range []bool{false, true} {
		runs = append(runs, func() error {
			return res.record(what, func() (verdict, error) {
				err := try(ctx, fmt.Sprintf("%s, the operator being down: %t", what, down), func(t *storyRun) { st.tryDeletion(t, down) })
				if err != nil {
					return failed, err
				}
				return passed, nil
			})
		})
	}
	return "with the operator there, and while it is down", abreast(runs...)
}

// tryDeletion deletes the report in the middle of its first mail. No other is sent.
func (st *story) tryDeletion(t *storyRun, down bool) {
	env := st.begin(t)
	begun, goOn := make(chan struct{}), make(chan struct{})
	begins, release := sync.OnceFunc(func() { close(begun) }), sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(release)
	env.interceptMails(func(string, bool) {
		begins()
		<-goOn
	})
	st.action(env)
	env.Eventually(begun).Should(BeClosed(), "the first mail begins")
	uid := env.reportUID()
	if down {
		env.whileDown(func() { env.Delete(env.report()) })
	} else {
		env.Delete(env.report())
	}
	release()
	env.Eventually(func() bool {
		_, err := env.summary()
		return apierrors.IsNotFound(err)
	}).Should(BeTrue(), "its summary goes with it")
	first, want := recipients[0], map[string]int{recipients[0]: 1}
	if down {
		want = map[string]int{}
	}
	env.Eventually(env.books.post.Got).Should(Equal(want), "the mail that was begun is sent")
	env.rests(env.secondThoughts())
	env.Expect(env.books.post.Got()).To(Equal(want), "no other is")
	kept, states := env.delivered(uid)
	env.Expect(kept).To(Equal(1), "what was made stays in the ledger")
	if down {
		env.Expect(states).To(Equal(map[string]ledger.DeliveryState{first: ledger.DeliverySending}), "nobody knows of the first")
		return
	}
	env.Expect(states).To(HaveKeyWithValue(first, ledger.DeliverySent))
	delete(states, first)
	for to, state := range states {
		env.Expect(slices.Contains(recipients, to) && state == ledger.DeliveryDeferred).To(BeTrue(), "%s is %s", to, state)
	}
}
