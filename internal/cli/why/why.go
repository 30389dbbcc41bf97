package why

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/tideline-io/tideline/internal/cli"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/ledger/decisionlog"
)

const (
	// width of what is printed, in characters.
	width = 100
	// mostRows bounds each list.
	mostRows = 30
	// moment is how times are printed.
	moment = "2006-01-02 15:04:05"
)

// dispute is what `tideline why --at` is asked.
type dispute struct {
	namespace, name, config string
	at                      time.Time
	zone                    *time.Location
}

// parseMoment reads the time in question.
func parseMoment(q *dispute, at, zone string, now time.Time) (err error) {
	if q.zone, err = time.LoadLocation(zone); err != nil || zone == "Local" {
		return cli.Usagef("--zone %q: there is no such time zone", zone)
	}
	if q.at, err = q.parseTime(at); err != nil {
		return err
	}
	if q.at.After(now) {
		return cli.Usagef("--at %q: that has not happened yet", at)
	}
	return nil
}

func (q dispute) parseTime(at string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04", moment} {
		if t, err := time.ParseInLocation(layout, at, q.zone); err == nil {
			return t.In(q.zone), nil
		}
	}
	return time.Time{}, cli.Usagef("--at %q: write a time as in \"2026-11-17 14:30\"", at)
}

// answer reads the ledger and prints what it says.
func (q dispute) answer(ctx context.Context, to io.Writer, open cli.OpenLedger) error {
	cfg, err := cli.ReadOperatorConfiguration(q.config)
	if err != nil {
		return err
	}
	l, err := open.OpenKept(ctx, cfg.Ledger)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	all, err := l.QueryDecisions(ctx, ledger.DecisionQuery{Namespace: q.namespace, Name: q.name})
	if err != nil {
		return err
	}
	a := judge(all, q.at)
	if a.state == nil {
		if len(a.next) == 0 {
			return fmt.Errorf("nothing is known of job %s in namespace %s: it was not there, or the ledger is not that old", q.name,
				q.namespace)
		}
		return fmt.Errorf("nothing is known of job %s in namespace %s at that time: the first that is known is of %s", q.name,
			q.namespace, q.say(a.next[0].At))
	}
	cli.Tell(to, text.SingleLine(fmt.Sprintf("Job %s in namespace %s, %s", q.name, q.namespace, q.at.Format(moment+" MST")))+"\n\n")
	q.printState(to, a)
	if err := q.printHolders(ctx, to, l, a.state.Figures); err != nil {
		return err
	}
	if a.waiting() {
		if err := q.printOvertakers(ctx, to, l, a); err != nil {
			return err
		}
	}
	q.printDecisions(to, "What happened next:", a.next)
	return nil
}

// account is what the decisions about a job say about a time.
type account struct {
	// state is the decision that put the job into the state that it was in; nil if none is known.
	state *ledger.Decision
	// since is when that state began: a wait begins with its first reason.
	since time.Time
	// lately are the decisions since then, beside state, and next those after the time in question.
	lately, next []ledger.Decision
}

func (a *account) waiting() bool { return waits[a.state.Kind] }

// waits are the kinds of decisions after which a job waits, and states what each kind makes of it. Other kinds change no state.
var (
	waits = map[string]bool{
		decisionlog.Waited: true, decisionlog.Capped: true, decisionlog.AwaitedApproval: true, decisionlog.WentOn: true,
		decisionlog.Withdrawn: true,
	}
	states = map[string]string{
		decisionlog.Waited: "It waited", decisionlog.Capped: "It waited under a cap",
		decisionlog.AwaitedApproval: "It waited for approval",
		decisionlog.WentOn:          "It waited for its place again", decisionlog.Ran: "It ran",
		decisionlog.Preempted: "It was stopped for another job", decisionlog.Suspended: "It was suspended by its user",
		decisionlog.Withdrawn: "It waited for its place again",
		decisionlog.Ended:     "It had ended",
	}
)

// judge finds what a job was doing at a time. Of several jobs that had the name, it is about the one of then.
func judge(all []ledger.Decision, at time.Time) *account {
	a := &account{}
	slices.SortStableFunc(all, func(x, y ledger.Decision) int { return x.At.Compare(y.At) })
	for i := range all {
		d := &all[i]
		switch _, changes := states[d.Kind]; {
		case d.At.After(at):
			a.next = append(a.next, *d)
		case !changes:
			a.lately = append(a.lately, *d)
		default:
			// A wait goes on when only its reason changes, and began with the first.
			if a.state == nil || !waits[d.Kind] || !waits[a.state.Kind] || d.UID != a.state.UID {
				a.since, a.lately = d.At, nil
			} else {
				a.lately = append(a.lately, *a.state)
			}
			a.state = d
		}
	}
	if a.state != nil {
		others := func(d ledger.Decision) bool { return d.UID != a.state.UID }
		a.lately, a.next = slices.DeleteFunc(a.lately, others), slices.DeleteFunc(a.next, others)
	}
	return a
}

func (q dispute) say(t time.Time) string { return t.In(q.zone).Format(moment) }

// printState says what the job was doing, and why.
func (q dispute) printState(to io.Writer, a *account) {
	d := a.state
	why := states[d.Kind]
	if d.Reason != "" {
		why += " (" + d.Reason + ")"
	}
	paragraph(to, "", fmt.Sprintf("%s since %s, for %s by then.", why, q.say(a.since), q.at.Sub(a.since).Round(time.Second)))
	if d.Message != "" {
		paragraph(to, "  ", d.Message)
	}
	var figures []string
	for _, name := range []string{
		decisionlog.Object, decisionlog.Queue, decisionlog.Profile, "tier", "workers", "place", decisionlog.WaitedSeconds,
		"head", "shortfall",
	} {
		if value := d.Figures[name]; value != "" {
			figures = append(figures, name+" "+value)
		}
	}
	if d.Other != "" {
		figures = append(figures, "other "+d.Other)
	}
	paragraph(to, "  ", strings.Join(figures, ", "))
	q.printDecisions(to, "Until then:", a.lately)
}

// printDecisions lists decisions.
func (q dispute) printDecisions(to io.Writer, title string, decisions []ledger.Decision) {
	if len(decisions) == 0 {
		return
	}
	cli.Tell(to, "\n"+title+"\n")
	for i, d := range decisions {
		if i == mostRows {
			cli.Tell(to, fmt.Sprintf("  and %d more\n", len(decisions)-i))
			return
		}
		said := d.Kind
		if d.Reason != "" && d.Reason != d.Kind {
			said += " (" + d.Reason + ")"
		}
		paragraph(to, "  ", fmt.Sprintf("%s %s: %s", q.say(d.At), said, d.Message))
	}
}

// holder are pods of a task that held something.
type holder struct {
	user, task, run, role string
	pods                  int64
	since                 time.Time
	held                  ledger.Resources
}

// printHolders lists who held what in the queue that the job was in, or its profile.
func (q dispute) printHolders(ctx context.Context, to io.Writer, l *ledger.Ledger, figures map[string]string) error {
	asked, where := ledger.HeldQuery{At: q.at, Queue: figures[decisionlog.Queue]}, "queue "+figures[decisionlog.Queue]
	if asked.Queue == "" {
		asked.Profile, where = figures[decisionlog.Profile], "profile "+figures[decisionlog.Profile]
	}
	if asked.Queue == "" && asked.Profile == "" {
		return nil
	}
	stays, more, err := l.HeldAt(ctx, asked)
	if err != nil {
		return err
	}
	all := holders(stays)
	cli.Tell(to, "\n")
	paragraph(to, "", fmt.Sprintf("In %s %d pods held something at that time:", where, len(stays)))
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	if len(all) > 0 {
		cli.Tell(w, "  USER\tTASK\tROLE\tPODS\tDEVICES\tSINCE\n")
	}
	for _, h := range all[:min(len(all), mostRows)] {
		cli.Tell(w, fmt.Sprintf("  %s\t%s\t%s\t%d\t%s\t%s\n", text.ClipLine(cmp.Or(h.user, "(not known)"), 18),
			text.ClipLine(h.task, 24),
			text.ClipLine(cmp.Or(h.role, "-"), 8), h.pods, text.ClipLine(devices(h.held), 14), q.say(h.since)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if rest := len(all) - mostRows; rest > 0 || more {
		cli.Tell(to, fmt.Sprintf("  and %d more tasks; at most %d pods are counted\n", max(rest, 0), ledger.MostHeld))
	}
	return nil
}

// holders sums stays by who holds them; who came first is first.
func holders(stays []ledger.Stay) []holder {
	type key struct{ user, task, run, role string }
	at := map[key]int{}
	var all []holder
	for i := range stays {
		s := &stays[i]
		k := key{s.User, s.Namespace + "/" + s.Task, s.Run, s.Role}
		j, known := at[k]
		if !known {
			j = len(all)
			at[k] = j
			all = append(all, holder{user: k.user, task: k.task, run: k.run, role: k.role, since: s.Begin, held: ledger.Resources{}})
		}
		all[j].pods++
		for resource, amount := range s.Resources {
			all[j].held[resource] += amount
		}
	}
	return all
}

// devices are the accelerators that are held; processors where there are none.
func devices(held ledger.Resources) string {
	var said []string
	for resource, amount := range held {
		if strings.Contains(resource, "/") {
			said = append(said, text.FormatThousandths(amount)+" "+resource[strings.LastIndexByte(resource, '/')+1:])
		}
	}
	slices.Sort(said)
	if len(said) == 0 {
		return text.FormatThousandths(held["cpu"]) + " cpu"
	}
	return strings.Join(said, ", ")
}

// printOvertakers lists the jobs of the queue that began to run while the job waited.
func (q dispute) printOvertakers(ctx context.Context, to io.Writer, l *ledger.Ledger, a *account) error {
	queue := a.state.Figures[decisionlog.Queue]
	ran, err := l.QueryDecisions(ctx,
		ledger.DecisionQuery{From: a.since, To: q.at.Add(time.Microsecond), Kinds: []string{decisionlog.Ran}})
	if err != nil || queue == "" {
		return err
	}
	ran = slices.DeleteFunc(ran, func(d ledger.Decision) bool { return d.Figures[decisionlog.Queue] != queue })
	for i := range ran {
		ran[i].Message = fmt.Sprintf("%s/%s: %s", ran[i].Namespace, ran[i].Name, ran[i].Message)
	}
	if len(ran) == 0 {
		cli.Tell(to, "\nNo other job of its queue began to run while it waited.\n")
	}
	q.printDecisions(to, "While it waited, these of its queue began to run:", ran)
	return nil
}

// paragraph prints a text in lines of at most the width, each after an indent.
func paragraph(to io.Writer, indent, words string) {
	line := ""
	for _, word := range strings.Fields(text.SingleLine(words)) {
		for utf8.RuneCountInString(word) > width-len(indent) { // a word that fits on no line is cut
			runes := []rune(word)
			if line != "" {
				cli.Tell(to, indent+line+"\n")
				line = ""
			}
			cli.Tell(to, indent+string(runes[:width-len(indent)])+"\n")
			word = string(runes[width-len(indent):])
		}
		switch {
		case line == "":
			line = word
		case len(indent)+utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			cli.Tell(to, indent+line+"\n")
			line = word
		default:
			line += " " + word
		}
	}
	if line != "" {
		cli.Tell(to, indent+line+"\n")
	}
}
