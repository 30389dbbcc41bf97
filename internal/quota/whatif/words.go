package whatif

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tideline-io/tideline/internal/platform/text"
)

// mostTeams is how many teams have a sentence each: the API server hands 4,096 characters of warnings on.
const mostTeams = 10

// answers are how first lines of an answer begin.
var answers = []string{"Played again: ", "What profile ", "No training began to run in the last ", "metadata.annotations["}

// IsAnswer tells a line of an answer from other warnings.
func IsAnswer(line string) bool {
	return slices.ContainsFunc(answers, func(begin string) bool { return strings.HasPrefix(line, begin) })
}

// Report is what a change of a profile would have changed.
type Report struct {
	Past *Past
	// Nodes is how many nodes it was played on.
	Nodes int
	// AsIs is what became of each team with the profiles as they are, and Changed with the change.
	AsIs, Changed map[string]*Outcome
	// Profile that is changed. Others are named if Names is true.
	Profile string
	Names   bool
}

// SayChange says it in sentences: what was played, then for each team, then what is left out. Where others may not be named and
// there is one other, all of it is about the own team.
func (r *Report) SayChange() []string {
	teams, alone := r.teams()
	var asIs []*Outcome
	for _, t := range teams {
		asIs = append(asIs, t.asIs)
	}
	all, window := sumOutcomes(asIs), text.FormatDuration(r.window())
	came := len(all.Waits) + len(all.Unstarted)
	if came == 0 {
		of := ""
		if alone {
			of = " of profile " + r.Profile
		}
		return []string{fmt.Sprintf("No training%s began to run in the last %s, as far as the ledger knows: there is nothing to play "+
			"again.", of, window)}
	}
	said := []string{fmt.Sprintf("Played again: the last %s, with %s of trainings that came and %s that ran already, on %s of "+
		"today. The median wait with the profiles as they are is %s; the true one %s.", window, text.FormatCount(came, "attempt"),
		text.FormatCount(all.Began, "attempt"), text.FormatCount(r.Nodes, "node"), sayWait(all.Waits, len(all.Unstarted), 0.5),
		sayTruth(all.True, came))}
	for _, t := range teams {
		said = append(said, sayTeam(t.name, t.asIs, t.changed))
	}
	left := "Left out: surplus, and what weight and deserved decide by it; Volcano's reclaim; budgets; the order within a team; " +
		"approvals; reservations; trainings that had not begun."
	if r.Past.KnownSince.After(r.Past.From) {
		left += fmt.Sprintf(" The ledger knows nothing before %s.", r.Past.KnownSince.UTC().Format("2006-01-02 15:04"))
	}
	return append(said, left)
}

func (r *Report) window() time.Duration { return r.Past.To.Sub(r.Past.From) }

// sayTruth says how long the attempts that came really waited, as far as that is known.
func sayTruth(waits []time.Duration, came int) string {
	switch len(waits) {
	case 0:
		return "is not known"
	case came:
		return "was " + sayWait(waits, 0, 0.5)
	}
	return fmt.Sprintf("of %d was %s, and of the others it is not known", len(waits), sayWait(waits, 0, 0.5))
}

// team is a team in both plays.
type team struct {
	name          string
	asIs, changed *Outcome
}

// teams lists the teams that have a sentence: first the one whose profile changes, then those whose waits change most, then all
// others as one sum. alone is true where there is one other team, and it must not be told of.
func (r *Report) teams() (all []team, alone bool) {
	var named, others []team
	names := slices.Concat([]string{r.Profile}, slices.Collect(maps.Keys(r.AsIs)), slices.Collect(maps.Keys(r.Changed)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		t := team{cmp.Or(name, "namespaces without a profile"), r.AsIs[name], r.Changed[name]}
		for _, o := range []**Outcome{&t.asIs, &t.changed} {
			if *o == nil {
				*o = &Outcome{}
			}
		}
		if r.Names || name == r.Profile {
			named = append(named, t)
		} else {
			others = append(others, t)
		}
	}
	if !r.Names && len(others) == 1 {
		return named, true // A sum over one would be that team.
	}
	slices.SortStableFunc(named, func(a, b team) int {
		switch {
		case a.name == r.Profile:
			return -1
		case b.name == r.Profile:
			return 1
		}
		return cmp.Compare(b.difference(), a.difference())
	})
	if len(named) > mostTeams {
		others = append(others, named[mostTeams:]...)
		named = named[:mostTeams]
	}
	if len(others) == 0 {
		return named, false
	}
	var asIs, changed []*Outcome
	for _, t := range others {
		asIs, changed = append(asIs, t.asIs), append(changed, t.changed)
	}
	return append(named, team{text.FormatCount(len(others), "other team"), sumOutcomes(asIs), sumOutcomes(changed)}), false
}

// difference is by how much all waits of a team together differ. Who does not begin waits until the end.
func (t team) difference() time.Duration {
	sum := func(o *Outcome) (all time.Duration) {
		for _, w := range slices.Concat(o.Waits, o.Unstarted) {
			all += w
		}
		return all
	}
	return (sum(t.changed) - sum(t.asIs)).Abs()
}

func sumOutcomes(of []*Outcome) *Outcome {
	all := &Outcome{}
	for _, o := range of {
		all.Waits, all.True = append(all.Waits, o.Waits...), append(all.True, o.True...)
		all.Unstarted = append(all.Unstarted, o.Unstarted...)
		all.Stopped, all.DeviceHours = all.Stopped+o.Stopped, all.DeviceHours+o.DeviceHours
		all.Began += o.Began
	}
	slices.Sort(all.Waits)
	slices.Sort(all.True)
	return all
}

// sayTeam says of each figure what it would be, and what it is with the profiles as they are if that differs.
func sayTeam(name string, asIs, changed *Outcome) string {
	var parts []string
	attempts := len(changed.Waits) + len(changed.Unstarted)
	for _, of := range []struct {
		words string
		part  float64
	}{{"median wait ", 0.5}, {"99th percentile ", 0.99}} {
		if attempts == 0 {
			break
		}
		parts = append(parts, of.words+instead(sayWait(changed.Waits, len(changed.Unstarted), of.part),
			sayWait(asIs.Waits, len(asIs.Unstarted), of.part)))
	}
	parts = append(parts, "cores hold "+instead(sayHours(changed), sayHours(asIs))+" hours of accelerators")
	if n, was := len(changed.Unstarted), len(asIs.Unstarted); n+was > 0 {
		parts = append(parts, "not begun at the end: "+instead(strconv.Itoa(n), strconv.Itoa(was)))
	}
	if changed.Stopped+asIs.Stopped > 0 {
		parts = append(parts, "stopped for others: "+instead(strconv.Itoa(changed.Stopped), strconv.Itoa(asIs.Stopped)))
	}
	return fmt.Sprintf("%s, %s: %s.", name, text.FormatCount(attempts, "attempt"), strings.Join(parts, "; "))
}

func instead(is, of string) string {
	if is == of {
		return is
	}
	return is + " instead of " + of
}

func sayHours(o *Outcome) string { return fmt.Sprintf("%.0f", o.DeviceHours) }

// sayWait is how long that part of a team's trainings waits at most, by the waits of those that begin, ascending, and how many do
// not: their waits go beyond the end.
func sayWait(waits []time.Duration, unstarted int, part float64) string {
	if len(waits)+unstarted == 0 {
		return "none"
	}
	at := int(math.Ceil(part*float64(len(waits)+unstarted))) - 1
	if at >= len(waits) {
		return "beyond the end"
	}
	return text.FormatRoughly(waits[at])
}
