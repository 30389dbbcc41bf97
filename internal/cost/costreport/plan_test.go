package costreport

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// at is a time in November 2026, whose 2nd, 9th, 16th and 23rd are Mondays.
func at(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04", "2026-11-"+text)
	if err != nil {
		panic(err)
	}
	return t
}

// weekly is a report that was created on Wednesday the 4th.
func weekly(change ...func(*v1beta1.CostReport)) *v1beta1.CostReport {
	r := &v1beta1.CostReport{
		ObjectMeta: metav1.ObjectMeta{Name: "weekly", UID: "u", Generation: 3, CreationTimestamp: metav1.NewTime(at("04 12:00"))},
		Spec: v1beta1.CostReportSpec{
			Schedule: "0 9 * * 1", TimeZone: "UTC", Window: &metav1.Duration{Duration: 168 * time.Hour},
			HistoryLimit: ptr.To[int32](2),
		},
	}
	for _, c := range change {
		c(r)
	}
	return r
}

func kept(to string, revision int32) Kept {
	return Kept{From: at(to).AddDate(0, 0, -7), To: at(to), Revision: revision, Summary: v1beta1.ReportSummary{
		From: metav1.NewTime(at(to).AddDate(0, 0, -7)), To: metav1.NewTime(at(to)), Revision: revision, Total: "12.00 EUR",
		Waste: "3.00 EUR", Recoverable: "1.00 EUR",
	}}
}

func askedFor(to string) Kept {
	k := kept(to, 1)
	k.Asked = true
	return k
}

func asks(until string) func(*v1beta1.CostReport) {
	return func(r *v1beta1.CostReport) {
		r.Annotations = map[string]string{v1beta1.AnnotationReportUntil: until}
	}
}

// planned plans as often as it takes to have the status say what is to be done.
func planned(o Observed, now time.Time) Decision {
	d := Plan(o, now)
	if !d.Announces {
		return d
	}
	o.Report = o.Report.DeepCopy()
	o.Report.Status = d.Status
	if d = Plan(o, now); d.Announces {
		panic("what is to be done is announced for ever: " + d.Status.Message)
	}
	return d
}

func TestWhichReportIsDue(t *testing.T) {
	for name, c := range map[string]struct {
		report *v1beta1.CostReport
		kept   []Kept
		now    string
		// to is when the period ends that is to be made; empty for none.
		to       string
		revision int32
		again    string
	}{
		"before the first":      {weekly(), nil, "08 10:00", "", 0, "09 09:00"},
		"the first":             {weekly(), nil, "09 09:00", "09 09:00", 1, "16 09:00"},
		"made":                  {weekly(), []Kept{kept("09 09:00", 1)}, "09 09:01", "", 0, "16 09:00"},
		"one was missed":        {weekly(), []Kept{kept("09 09:00", 1)}, "17 10:00", "16 09:00", 1, "23 09:00"},
		"two were, of two kept": {weekly(), nil, "17 10:00", "09 09:00", 1, "23 09:00"},
		"three were, of two":    {weekly(), nil, "24 10:00", "16 09:00", 1, "30 09:00"},
		"one was missed, and a later one asked for": {weekly(), []Kept{askedFor("11 09:00")}, "12 10:00", "09 09:00", 1, "16 09:00"},
		"suspended":              {weekly(func(r *v1beta1.CostReport) { r.Spec.Suspend = true }), nil, "17 10:00", "", 0, ""},
		"the clock was set back": {weekly(), []Kept{kept("16 09:00", 1)}, "10 10:00", "", 0, "16 09:00"},
		"asked for":              {weekly(asks("2026-11-05T00:00:00Z")), nil, "05 10:00", "05 00:00", 1, "09 09:00"},
		"asked for anew": {
			weekly(asks("2026-11-09T09:00:00Z")), []Kept{kept("09 09:00", 1), kept("09 09:00", 2)}, "09 10:00", "09 09:00", 3, "16 09:00",
		},
		"asked for and made": {weekly(asks("2026-11-05T00:00:00Z"), func(r *v1beta1.CostReport) {
			r.Status.AskedUntil, r.Status.AskedRevision = "2026-11-05T00:00:00Z", 1
		}), []Kept{askedFor("05 00:00")}, "05 10:00", "", 0, "09 09:00"},
		"asked for of what is to come": {weekly(asks("2026-11-06T00:00:00Z")), nil, "05 10:00", "", 0, "06 00:00"},
		"asked for in other words":     {weekly(asks("last week")), nil, "05 10:00", "", 0, "09 09:00"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d := planned(Observed{Report: c.report, Kept: c.kept, Recorded: at(c.now)}, at(c.now))
			if c.to == "" {
				g.Expect(d.Make).To(BeNil())
			} else {
				g.Expect(d.Make).To(And(HaveField("Revision", c.revision), HaveField("Period.To", BeTemporally("==", at(c.to))),
					HaveField("Period.From", BeTemporally("==", at(c.to).AddDate(0, 0, -7)))))
			}
			if c.again == "" {
				g.Expect(d.Again).To(BeZero())
			} else {
				g.Expect(d.Again).To(BeTemporally("==", at(c.again)))
			}
		})
	}
}

// What a report lacks is in no later one: it waits for its last minute to be recorded, but not for ever.
func TestAReportWaitsForItsEndToBeRecorded(t *testing.T) {
	g := NewWithT(t)
	o := Observed{Report: weekly(), Recorded: at("09 08:59")}
	d := planned(o, at("09 09:00"))
	g.Expect(d.Make).To(BeNil())
	g.Expect(d.Again).To(BeTemporally("==", at("09 09:00").Add(2*time.Second)), "it looks again")
	g.Expect(d.Due).To(BeTemporally("==", at("09 09:00")), "it is due")
	g.Expect(d.Status.Message).To(Equal("Tideline is making the report from 2026-11-02T09:00:00Z to 2026-11-09T09:00:00Z."))
	o.Recorded = at("09 09:00")
	g.Expect(planned(o, at("09 09:00")).Make).NotTo(BeNil(), "all of it is recorded")
	o.Recorded = at("09 08:59")
	g.Expect(planned(o, at("09 09:02")).Make).NotTo(BeNil(), "it says what it lacks")
}

// An alert is about when the earliest report is due that is not made.
func TestSinceWhenAReportIsDue(t *testing.T) {
	down := &Obstacle{Reason: v1beta1.ReasonInvalidPriceList}
	lastWas := func(to string) func(*v1beta1.CostReport) {
		return func(r *v1beta1.CostReport) { r.Status.Last = &v1beta1.ReportSummary{To: metav1.NewTime(at(to))} }
	}
	for name, c := range map[string]struct {
		o    Observed
		want string
	}{
		"made":               {Observed{Report: weekly(), Kept: []Kept{kept("09 09:00", 1)}}, "16 09:00"},
		"being made":         {Observed{Report: weekly()}, "09 09:00"},
		"waiting":            {Observed{Report: weekly(), Obstacle: &Obstacle{Stalled: true}}, "09 09:00"},
		"suspended":          {Observed{Report: weekly(func(r *v1beta1.CostReport) { r.Spec.Suspend = true })}, ""},
		"no such schedule":   {Observed{Report: weekly(func(r *v1beta1.CostReport) { r.Spec.Schedule = "daily" })}, ""},
		"no ledger":          {Observed{Report: weekly(), Obstacle: down, Unknown: true}, "09 09:00"},
		"no ledger, made":    {Observed{Report: weekly(lastWas("09 09:00")), Obstacle: down, Unknown: true}, "16 09:00"},
		"no ledger, before":  {Observed{Report: weekly(lastWas("02 09:00")), Obstacle: down, Unknown: true}, "09 09:00"},
		"no ledger, invalid": {Observed{Report: weekly(), Invalid: "spec.top", Unknown: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			due := planned(c.o, at("10 10:00")).Due
			if c.want == "" {
				g.Expect(due).To(BeZero())
			} else {
				g.Expect(due).To(BeTemporally("==", at(c.want)))
			}
		})
	}
}

// Reports that are asked for count among those that are kept. What they push out is not made again and again.
func TestWhatIsKeptNoMoreIsNotMadeAgain(t *testing.T) {
	g := NewWithT(t)
	r := weekly(func(r *v1beta1.CostReport) { r.Spec.HistoryLimit = ptr.To[int32](1) })
	all := []Kept{kept("09 09:00", 1), askedFor("11 12:00")}
	d := planned(Observed{Report: r, Kept: all, Recorded: at("12 00:00")}, at("12 00:00"))
	g.Expect(d.ForgetBefore).To(BeTemporally("==", at("11 12:00")))
	d = planned(Observed{Report: r, Kept: all[1:], Recorded: at("12 00:00")}, at("12 00:00"))
	g.Expect(d.Make).To(BeNil())
	g.Expect(d.Due).To(BeTemporally("==", at("16 09:00")))
}

// Behaviour 5 of the design: a week in which a clock is changed.
func TestBehaviour5WeeksInWhichAClockIsChanged(t *testing.T) {
	g := NewWithT(t)
	r := weekly(func(r *v1beta1.CostReport) {
		r.Spec.TimeZone = "Europe/Berlin"
		r.CreationTimestamp = metav1.NewTime(time.Date(2026, time.October, 20, 0, 0, 0, 0, time.UTC))
		r.Spec.HistoryLimit = ptr.To[int32](12)
	})
	var all []Kept
	now := time.Date(2026, time.November, 3, 0, 0, 0, 0, time.UTC)
	for range 2 {
		m := planned(Observed{Report: r, Kept: all, Recorded: now}, now).Make
		all = append(all, Kept{From: m.Period.From, To: m.Period.To, Revision: 1})
	}
	g.Expect(planned(Observed{Report: r, Kept: all, Recorded: now}, now).Make).To(BeNil())
	g.Expect(all[0].To.Sub(all[0].From)).To(Equal(169*time.Hour), "from summer to winter time on the 25th of October")
	g.Expect(all[1].To.Sub(all[1].From)).To(Equal(168 * time.Hour))
	g.Expect(all[1].From).To(BeTemporally("==", all[0].To), "no hour twice, none left out")
}

// A clock that is set back and forward, by hours or weeks, makes nothing twice, and leaves nothing out that was due by then.
func TestClockThatIsSetMakesNothingTwice(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	c := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		g := NewWithT(t)
		r := weekly(func(r *v1beta1.CostReport) { r.Spec.HistoryLimit = ptr.To[int32](52) })
		now, latest, made := at("04 12:00"), at("04 12:00"), map[int64]int{}
		var all []Kept
		for range 20 {
			now = now.Add(time.Duration(c.Int64N(int64(1000*time.Hour)) - int64(400*time.Hour)))
			latest = later(latest, now)
			plan := func() Decision { return planned(Observed{Report: r, Kept: all, Recorded: now}, now) }
			for d := plan(); d.Make != nil; d = plan() {
				g.Expect(d.Make.Period.To.After(now)).To(BeFalse(), "seed %d: it is not yet", seed)
				made[d.Make.Period.To.Unix()]++
				g.Expect(made).To(HaveEach(1), "seed %d", seed)
				all = append(all, Kept{From: d.Make.Period.From, To: d.Make.Period.To, Revision: d.Make.Revision})
				r.Status = d.Status
			}
			g.Expect(plan().Again.After(now)).To(BeTrue(), "seed %d: it is looked at again", seed)
		}
		for due := at("09 09:00"); !due.After(latest); due = due.AddDate(0, 0, 7) {
			g.Expect(made).To(HaveKeyWithValue(due.Unix(), 1), "seed %d: until %s", seed, due)
			delete(made, due.Unix())
		}
		g.Expect(made).To(BeEmpty(), "seed %d: nothing else", seed)
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Whatever there is and was, each report that was due is made once, and then nothing is to be done until the next one is.
func TestEachDueReportIsMadeOnce(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	c := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		g := NewWithT(t)
		r := weekly(func(r *v1beta1.CostReport) {
			r.Spec.HistoryLimit = ptr.To(1 + c.Int32N(20))
			r.Spec.Schedule = []string{"0 9 * * 1", "@daily", "30 */7 * * *", "0 0 31 * *"}[c.IntN(4)]
			r.Spec.TimeZone = []string{"UTC", "Europe/Berlin", "Asia/Shanghai", "America/New_York"}[c.IntN(4)]
		})
		now, made := at("04 12:00"), map[int64]int{}
		var all []Kept
		for range 8 {
			now = now.Add(time.Duration(c.Int64N(int64(300 * time.Hour))))
			for i := 0; ; i++ {
				d := planned(Observed{Report: r, Kept: all, Recorded: now}, now)
				if d.Make == nil {
					g.Expect(d.Again.After(now)).To(BeTrue(), "seed %d: it is looked at again later", seed)
					break
				}
				g.Expect(i).To(BeNumerically("<", 100), "seed %d: it comes to an end", seed)
				g.Expect(d.Make.Period.To.After(now)).To(BeFalse(), "seed %d", seed)
				made[d.Make.Period.To.Unix()]++
				all = append(all, Kept{From: d.Make.Period.From, To: d.Make.Period.To, Revision: d.Make.Revision})
				r.Status = d.Status
				before := planned(Observed{Report: r, Kept: all, Recorded: now}, now).ForgetBefore
				all = slicesAfter(all, before)
				g.Expect(len(all)).To(BeNumerically("<=", int(*r.Spec.HistoryLimit)), "seed %d", seed)
			}
		}
		for to, n := range made {
			g.Expect(n).To(Equal(1), "seed %d: made until %s", seed, time.Unix(to, 0))
		}
	}
}

func slicesAfter(all []Kept, before time.Time) []Kept {
	var left []Kept
	for _, k := range all {
		if !k.To.Before(before) {
			left = append(left, k)
		}
	}
	return left
}

func TestWhatAReportSaysOfItself(t *testing.T) {
	missing := &Obstacle{Reason: v1beta1.ReasonPriceListNotFound, Message: "There is no ConfigMap prices.", Stalled: true}
	unused := kept("09 09:00", 1)
	unused.Summary.Waste, unused.Summary.Recoverable = "", ""
	for name, c := range map[string]struct {
		o       Observed
		reason  string
		message string
		ready   metav1.ConditionStatus
		with    string
	}{
		"nothing yet": {Observed{Report: weekly()}, "ReportScheduled", "The first report is due at 2026-11-16T09:00:00Z. To get " +
			"one now, set annotation tideline.io/report-until to the time of now or earlier.", "True", ""},
		"made": {Observed{Report: weekly(), Kept: []Kept{kept("09 09:00", 1), kept("09 09:00", 2)}}, "ReportMade",
			"From 2026-11-02T09:00:00Z to 2026-11-09T09:00:00Z it cost 12.00 EUR; 3.00 EUR of it was wasted, and smaller requests " +
				"would have saved 1.00 EUR (revision 2). The next report is due at 2026-11-16T09:00:00Z.", "True", ""},
		"nobody is asked what was used": {Observed{Report: weekly(), Kept: []Kept{unused}, UseUnasked: true}, "ReportMade",
			"From 2026-11-02T09:00:00Z to 2026-11-09T09:00:00Z it cost 12.00 EUR; what of it was used is not known, because the " +
				"operator asks no Prometheus (prometheus.url of its configuration). The next report is due at 2026-11-16T09:00:00Z.",
			"True", ""},
		"asked for in other words": {Observed{Report: weekly(asks("<now>")), Kept: []Kept{kept("09 09:00", 1)}}, "ReportMade",
			"From 2026-11-02T09:00:00Z to 2026-11-09T09:00:00Z it cost 12.00 EUR; 3.00 EUR of it was wasted, and smaller requests " +
				"would have saved 1.00 EUR. The next report is due at 2026-11-16T09:00:00Z. Annotation tideline.io/report-until is " +
				"\"<now>\": write a time in the past, for example 2026-11-16T09:00:00Z.", "True", ""},
		"an obstacle": {Observed{Report: weekly(), Obstacle: missing}, "PriceListNotFound", "There is no ConfigMap prices. The " +
			"report that was due at 2026-11-09T09:00:00Z waits for that.", "False", "Stalled"},
		"a schedule that is none": {Observed{Report: weekly(func(r *v1beta1.CostReport) { r.Spec.TimeZone = "Mars" })},
			"InvalidSchedule", `spec.schedule: time zone "Mars" is not known: name one of the IANA database, as in Europe/Berlin.`,
			"False", "Stalled"},
		"refused by admission": {Observed{Report: weekly(), Invalid: "spec.top"}, "InvalidSpec", "spec.top", "False", "Stalled"},
		"suspended": {Observed{Report: weekly(func(r *v1beta1.CostReport) { r.Spec.Suspend = true }), Obstacle: missing}, "Suspended",
			"Tideline makes no report while spec.suspend is true. Reports that were due meanwhile are made afterwards.", "True",
			"Suspended"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			now := at("10 00:00")
			if strings.HasPrefix(name, "nothing") {
				c.o.Report.CreationTimestamp = metav1.NewTime(now)
			}
			d := planned(c.o, now)
			g.Expect(d.Status.Reason).To(Equal(c.reason))
			g.Expect(d.Status.Message).To(Equal(c.message))
			g.Expect(d.Status.Conditions).To(ContainElement(And(HaveField("Type", "Ready"), HaveField("Status", c.ready))))
			if c.with != "" {
				g.Expect(d.Status.Conditions).To(ContainElement(And(HaveField("Type", c.with), HaveField("Status", metav1.ConditionTrue))))
			}
			// At rest nothing changes.
			c.o.Report.Status = d.Status
			g.Expect(planned(c.o, now.Add(time.Minute)).Status).To(Equal(d.Status))
		})
	}
}

// An operator that starts anew writes nothing of what passes in seconds.
func TestWhatPassesByItselfIsNotSaid(t *testing.T) {
	g := NewWithT(t)
	now, soon := at("10 00:00"), &Obstacle{Reason: "LedgerUnavailable", Message: "Not yet.", Passing: true, Again: 2 * time.Second}
	o := Observed{Report: weekly(), Kept: []Kept{kept("09 09:00", 1)}}
	made := planned(o, now)
	o.Obstacle = soon
	g.Expect(planned(o, now)).To(Equal(made), "nothing waits for it")

	for _, waits := range []*v1beta1.CostReport{weekly(), weekly(asks("2026-11-05T00:00:00Z"))} {
		d, undisturbed := planned(Observed{Report: waits, Obstacle: soon}, now), planned(Observed{Report: waits}, now)
		g.Expect(undisturbed.Make).NotTo(BeNil())
		g.Expect(d.Make).To(BeNil(), "it waits")
		g.Expect(d.Again).To(BeTemporally("==", now.Add(2*time.Second)))
		g.Expect(d.Status).To(Equal(undisturbed.Status))
		g.Expect(d.Status.Reason).To(Equal("ReportDue"))
	}
	soon.Passing = false
	st := planned(Observed{Report: weekly(), Obstacle: soon}, now).Status
	g.Expect(st.Reason).To(Equal("LedgerUnavailable"), "it does not pass")
}

// Nothing is done before the status says so, and then all of it is.
func TestNothingIsDoneBeforeTheStatusSaysSo(t *testing.T) {
	g := NewWithT(t)
	now := at("24 10:00")
	o := Observed{
		Report: weekly(), Kept: []Kept{kept("02 09:00", 1), kept("09 09:00", 1), kept("16 09:00", 1)}, Recorded: now,
		Mails: mailsOf("", ledger.DeliverySent),
	}
	o.Mails.Round.Next = at("30 09:00")
	d := Plan(o, now)
	g.Expect([]any{d.Announces, d.Make, d.ForgetBefore, d.Publish, d.Mails.Begin}).
		To(Equal([]any{true, (*Making)(nil), time.Time{}, false, false}))
	g.Expect(d.Again).To(BeTemporally("==", now.Add(50*time.Millisecond)))
	g.Expect(d.Status.Message).To(HavePrefix("Tideline is making the report from 2026-11-16T09:00:00Z to 2026-11-23T09:00:00Z."))

	o.Report.Status = d.Status
	d = Plan(o, now)
	g.Expect(d.Announces).To(BeFalse())
	g.Expect(d.Make.Period.To).To(BeTemporally("==", at("23 09:00")))
	g.Expect(d.ForgetBefore).To(BeTemporally("==", at("09 09:00")))
	g.Expect([]bool{d.Publish, d.Mails.Begin}).To(Equal([]bool{false, false}), "first it is made, then published and mailed")

	o.Kept = append(o.Kept, kept("23 09:00", 1))
	g.Expect(Plan(o, now).Announces).To(BeTrue(), "the status is to say that it was made")
	d = planned(o, now)
	g.Expect([]any{d.Make, d.Publish, d.Mails.Begin}).To(Equal([]any{(*Making)(nil), true, true}))
	g.Expect(d.Mails.Send).To(HaveLen(1))
}

// An error may be worded otherwise each time that it is met, by the port or the time that stands in it.
func TestWordsThatChangeHoldNothingUp(t *testing.T) {
	g := NewWithT(t)
	now := at("24 10:00")
	o := Observed{
		Report: weekly(), Kept: []Kept{kept("16 09:00", 1), kept("23 09:00", 1)}, Recorded: now,
		Mails: mailsOf("", ledger.DeliverySent), Obstacle: &Obstacle{Reason: v1beta1.ReasonInvalidPriceList},
	}
	o.Mails.Round.Next = at("30 09:00")
	for _, port := range []string{"4001", "4002", "4003"} {
		o.Obstacle.Message = "It does not answer at port " + port + ".\xff"
		d := Plan(o, now)
		o.Report.Status = d.Status
		g.Expect(utf8.ValidString(d.Status.Message)).To(BeTrue(), "the API server keeps it as it is")
		g.Expect(d.Mails.Begin).To(Equal(port != "4001"), "it waits until the reason is told, and not for its words")
	}
}

// What is asked for is made once for each value of the annotation, whenever the operator is killed.
func TestWhatIsAskedForIsMadeOnce(t *testing.T) {
	g := NewWithT(t)
	r, now := weekly(asks("2026-11-05T00:00:00Z")), at("06 10:00")
	var all []Kept
	plan := func() *Making {
		d := planned(Observed{Report: r, Kept: all, Recorded: now}, now)
		r.Status = d.Status
		return d.Make
	}
	first := plan()
	g.Expect(first.Revision).To(BeEquivalentTo(1))
	g.Expect(plan()).To(Equal(first), "killed before it was made")
	all = append(all, askedFor("05 00:00"))
	g.Expect(plan()).To(BeNil(), "it is made")
	r.Annotations = nil
	g.Expect(plan()).To(BeNil())
	asks("2026-11-05T00:00:00Z")(r)
	g.Expect(plan().Revision).To(BeEquivalentTo(2), "asked for once more")
	g.Expect(plan().Revision).To(BeEquivalentTo(2))

	asks("2026-10-05T00:00:00Z")(r)
	all = []Kept{askedFor("05 00:00"), askedFor("06 00:00")}
	g.Expect(plan()).To(BeNil(), "as many later ones are kept as there may be")
}

// A ledger that was begun anew, or an old copy of it, has nothing made or mailed again that was told of.
func TestALedgerThatIsLost(t *testing.T) {
	g := NewWithT(t)
	r := weekly(asks("2026-11-05T00:00:00Z"))
	now := at("17 00:00")
	all := []Kept{kept("05 00:00", 1), kept("09 09:00", 1), kept("16 09:00", 1)}
	all[0].Asked = true
	r.Status.AskedUntil, r.Status.AskedRevision = "2026-11-05T00:00:00Z", 1
	mails := mailsOf(ledger.DeliverySent, ledger.DeliverySent, ledger.DeliverySent)
	r.Status = planned(Observed{Report: r, Kept: all, Mails: mails}, now).Status
	g.Expect(r.Status.Last.To.Time).To(BeTemporally("==", at("16 09:00")))
	for name, has := range map[string][]Kept{"none": nil, "an old copy": all[1:2]} {
		d := planned(Observed{Report: r, Kept: has}, now)
		g.Expect(d.Make).To(BeNil(), name)
		g.Expect(d.Status.Last).To(Equal(r.Status.Last))
		g.Expect(d.Status.Mailed).To(Equal("3/3"))
		g.Expect(d.Status.Message).To(ContainSubstring("The ledger no longer has that report. The next report is due at"))
		said := &v1beta1.CostReport{ObjectMeta: r.ObjectMeta, Spec: r.Spec, Status: d.Status}
		g.Expect(planned(Observed{Report: said, Kept: has}, now)).To(Equal(d), "it stays so")
		next := planned(Observed{Report: r, Kept: has, Recorded: at("23 09:00")}, at("23 09:00"))
		g.Expect(next.Make).NotTo(BeNil())
		g.Expect(next.Make.Period.To).To(BeTemporally("==", at("23 09:00")), "what is due next is made")
	}
	g.Expect(IsOutdated(r, at("09 09:00"))).To(BeTrue())
	g.Expect(IsOutdated(r, at("16 09:00"))).To(BeFalse())
	r.Annotations[v1beta1.AnnotationReportUntil] = "2026-11-06T00:00:00Z"
	g.Expect(planned(Observed{Report: r}, now).Make).NotTo(BeNil(), "what somebody asks for now is made")
	r.Annotations[v1beta1.AnnotationReportUntil] = "2026-11-05T00:00:00Z"
	r.Status.Reason = v1beta1.ReasonReportDue
	r.Status.Message = "Tideline is making the report from 2026-11-16T09:00:00Z to 2026-11-23T09:00:00Z."
	g.Expect(planned(Observed{Report: r, Recorded: at("23 09:00")}, at("23 09:00")).Make.Period.To).
		To(BeTemporally("==", at("23 09:00")), "while another is made, what was made for the one who asked is not")
}

func TestVolatileLedgerIsOnReports(t *testing.T) {
	g := NewWithT(t)
	o := Observed{Report: weekly(), LedgerVolatile: "The ledger is in an emptyDir."}
	d := planned(o, at("10 00:00"))
	g.Expect(d.Status.Conditions).To(ContainElement(And(HaveField("Type", v1beta1.ConditionLedgerVolatile),
		HaveField("Status", metav1.ConditionTrue), HaveField("Message", HavePrefix("The ledger is in an emptyDir. Reports")))))
	o.LedgerVolatile, o.Report.Status = "", d.Status
	g.Expect(planned(o, at("10 00:00")).Status.Conditions).NotTo(ContainElement(HaveField("Type", v1beta1.ConditionLedgerVolatile)))
}
