// Package space decides which PersistentVolumeClaims are deleted by their own rule, because nothing has used them for long.
package space

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// A claim goes through these steps, one in each run of the command; whoever uses it at any of them has it begin anew:
//
//	used ──> unused: StepMark ──> still: StepRenew, ... ──> rule is over: StepUnlist, if a profile lists it ──> StepDelete
//	  ^         │ used again: StepUnmark
//	  └─────────┘

const (
	// MinRule and MaxRule are bounds of a rule.
	MinRule, MaxRule = time.Hour, 10 * 365 * 24 * time.Hour
	// renewAfter is how old a note may be that the claim is still unused, and longestGap after how long it says nothing any more:
	// whoever used the claim meanwhile may have left no trace.
	renewAfter, longestGap = 8 * time.Hour, 36 * time.Hour
	// mostShown is how many characters of a wrong rule are told.
	mostShown = 40
)

// Claim is a PersistentVolumeClaim as far as its space is concerned.
type Claim struct {
	Namespace, Name string
	// Size is what it has, or asks for before it has anything.
	Size resource.Quantity
	// Created is when it was. Notes of before are of a claim that it was restored from.
	Created time.Time
	// Rule, UnusedSince and UnusedSeen are the values of its annotations; empty without.
	Rule, UnusedSince, UnusedSeen string
	// Leaving is true for one that is being deleted.
	Leaving bool
	// Users are what may need it, as in "ElasticTrainingJob ctr": whatever names it and has not ended, suspended jobs included.
	Users []string
	// LastUse is when the last training or pod ended that had named it; zero if none is known.
	LastUse time.Time
	// Versions are those of data sets of the team's profile that are in it, as in clicks:2026-11.
	Versions []string
	// Missed says which job of the namespace names a version that the profile has not, or not any more; empty for none. It may
	// have been in this claim.
	Missed string
}

// Step is what is done with a claim.
type Step string

// Steps of a claim.
const (
	// StepKeep changes nothing.
	StepKeep Step = "keep"
	// StepMark writes into the claim since when it is unused, which is Decision.Since.
	StepMark Step = "mark"
	// StepRenew notes that it still is.
	StepRenew Step = "renew"
	// StepUnmark takes both off.
	StepUnmark Step = "unmark"
	// StepUnlist takes its versions of data sets out of the profile, so that no job can begin to use it.
	StepUnlist Step = "unlist"
	// StepDelete deletes the claim.
	StepDelete Step = "delete"
)

// Decision is a step and why it is due.
type Decision struct {
	Step Step
	// Why is half a sentence for people, as in "is unused since 2026-11-01 12:00 UTC".
	Why string
	// Since is since when the claim is unused; zero where that is not known or the claim is used.
	Since time.Time
	// Wrong is true for a claim whose rule cannot be read.
	Wrong bool
}

// DecideStep says what is due for a claim.
func (c *Claim) DecideStep(now time.Time) Decision {
	marked := c.UnusedSince != "" || c.UnusedSeen != ""
	switch {
	case c.Leaving:
		return Decision{Step: StepKeep, Why: "is being deleted"}
	case len(c.Users) > 0 && marked:
		return Decision{Step: StepUnmark, Why: "is used"}
	case len(c.Users) > 0:
		return Decision{Step: StepKeep, Why: "is used"}
	case c.Rule == "" && marked:
		return Decision{Step: StepUnmark, Why: "has no rule any more"}
	case c.Rule == "":
		return Decision{Step: StepKeep, Why: "is unused, and has no rule"}
	}
	after, err := ParseRule(c.Rule)
	if err != nil {
		return Decision{Step: StepKeep, Why: "is unused, and its rule is wrong: " + err.Error(), Wrong: true}
	}
	since, seen, known := c.unusedSince(now)
	if !known {
		// Not from LastUse: before the mark others may have used it who left nothing behind.
		return Decision{Step: StepMark, Why: "is unused as of now", Since: now}
	}
	if c.LastUse.After(since) {
		last := c.LastUse
		if last.After(now) { // by another clock
			last = now
		}
		return Decision{Step: StepMark, Why: "was used again, until " + moment(last), Since: last}
	}
	d := Decision{Step: StepKeep, Why: "is unused since " + moment(since), Since: since}
	ends := since.Add(after)
	switch {
	case now.Before(ends):
		d.Why += ", and kept until " + moment(ends)
	case c.Missed != "":
		d.Why += "; it is kept while " + c.Missed
	case len(c.Versions) > 0:
		d.Step = StepUnlist
	default:
		d.Step = StepDelete
	}
	if d.Step == StepKeep && now.Sub(seen) >= renewAfter {
		d.Step = StepRenew
	}
	return d
}

// unusedSince is since when the claim is unused by its notes, and when that was last seen; false for no notes, and for notes that
// say nothing, or a time to come, or of a time before the claim was there, or too long ago.
func (c *Claim) unusedSince(now time.Time) (since, seen time.Time, known bool) {
	since, err := time.Parse(time.RFC3339, c.UnusedSince)
	if err != nil {
		return since, seen, false
	}
	seen, err = time.Parse(time.RFC3339, c.UnusedSeen)
	known = err == nil && !since.Before(c.Created) && !seen.Before(since) && !seen.After(now) && now.Sub(seen) <= longestGap
	return since, seen, known
}

// moment is a time for people.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// ParseRule reads for how long a claim is kept that nothing uses: Go's durations, or whole days as in 30d. The error says the
// value, the range and what to write.
func ParseRule(rule string) (time.Duration, error) {
	after, err := time.ParseDuration(rule)
	if days, is := strings.CutSuffix(rule, "d"); is {
		var n uint64
		if n, err = strconv.ParseUint(days, 10, 12); err == nil {
			after = time.Duration(n) * 24 * time.Hour
		}
	}
	if err != nil || after < MinRule || after > MaxRule {
		return 0, fmt.Errorf("%s is %q: write a duration from 1h to 3650d, as in 720h or 30d", v1beta1.AnnotationPruneAfter,
			text.ClipLine(rule, mostShown))
	}
	return after, nil
}

// DecideAll says what is due for the claims of a team, each at its index. A version of a data set is of all namespaces of a team,
// so a claim that a profile lists waits until all of its name are due, and all namespaces have been read (whole).
func DecideAll(claims []Claim, whole bool, now time.Time) []Decision {
	all := make([]Decision, len(claims))
	early := map[string]string{} // a claim that is not due, by the name of all
	for i := range claims {
		all[i] = claims[i].DecideStep(now)
		if s := all[i].Step; s != StepUnlist && s != StepDelete && !claims[i].Leaving {
			early[claims[i].Name] = claims[i].Namespace
		}
	}
	for i := range all {
		if all[i].Step != StepUnlist {
			continue
		}
		listed := "profile lists it as " + strings.Join(claims[i].Versions, ", ")
		switch other := early[claims[i].Name]; {
		case !whole:
			all[i].Step = StepKeep
			all[i].Why += "; the " + listed + ": name the profile by --profile, because other namespaces have that version too"
		case other != "":
			all[i].Step = StepKeep
			all[i].Why += fmt.Sprintf("; the %s, and the claim of that name in namespace %s is not due", listed, other)
		}
	}
	return all
}

// Sums are claims and their space.
type Sums struct {
	Claims int
	Space  resource.Quantity
}

func (s *Sums) add(c *Claim) {
	s.Claims++
	s.Space.Add(c.Size)
}

// Totals are what a team's claims come to: all of them, those that something uses, and those that nothing uses and that no rule
// will ever delete.
type Totals struct{ All, Used, Kept Sums }

// SumClaims adds up the claims of a team.
func SumClaims(claims []Claim) Totals {
	var t Totals
	for i := range claims {
		c := &claims[i]
		t.All.add(c)
		if len(c.Users) > 0 {
			t.Used.add(c)
		} else if _, err := ParseRule(c.Rule); err != nil {
			t.Kept.add(c)
		}
	}
	return t
}

// UnlistPaths returns paths within a profile's spec. Removed in this order, they take the versions out of its data sets, and with
// them the data sets that have none left.
func UnlistPaths(sets []v1beta1.ProfileDataSet, versions []string) []string {
	var paths []string
	for i := len(sets) - 1; i >= 0; i-- {
		set, gone := &sets[i], 0
		var within []string
		for k := len(set.Versions) - 1; k >= 0; k-- {
			if slices.Contains(versions, NameVersion(set.Name, set.Versions[k].Version)) {
				within = append(within, fmt.Sprintf("/dataSets/%d/versions/%d", i, k))
				gone++
			}
		}
		if gone == len(set.Versions) {
			within = []string{fmt.Sprintf("/dataSets/%d", i)}
		}
		paths = append(paths, within...)
	}
	return paths
}

// NameVersion names a version of a data set as `tideline submit --data` does.
func NameVersion(set, version string) string { return set + ":" + version }
