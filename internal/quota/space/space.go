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
)

// A claim goes through these steps, one in each run of the command; whoever uses it at any of them has it begin anew:
//
//	used ──> unused: StepMark ──> rule is over ──> listed by a profile: StepUnlist ──> StepDelete
//	  ^         │ used again: StepUnmark
//	  └─────────┘

// Bounds of a rule.
const (
	MinRule = time.Hour
	MaxRule = 10 * 365 * 24 * time.Hour
)

// Claim is a PersistentVolumeClaim as far as its space is concerned.
type Claim struct {
	Namespace, Name string
	// Size is what it has, or asks for before it has anything.
	Size resource.Quantity
	// Rule and UnusedSince are the values of annotations AnnotationPruneAfter and AnnotationUnusedSince; empty without.
	Rule, UnusedSince string
	// Leaving is true for one that is being deleted.
	Leaving bool
	// Users are what may need it, as in "ElasticTrainingJob ctr": whatever names it and has not ended, suspended jobs included.
	Users []string
	// LastUse is when the last training ended that had named it; zero if none is known.
	LastUse time.Time
	// Versions are those of data sets of the team's profile that are in it, as in clicks:2026-11.
	Versions []string
}

// Step is what is done with a claim.
type Step string

// Steps of a claim.
const (
	// StepKeep changes nothing.
	StepKeep Step = "keep"
	// StepMark writes into the claim since when it is unused, which is Decision.Since.
	StepMark Step = "mark"
	// StepUnmark takes that off.
	StepUnmark Step = "unmark"
	// StepUnlist takes its versions of data sets out of the profile, so that no job can begin to use it.
	StepUnlist Step = "unlist"
	// StepDelete deletes the claim.
	StepDelete Step = "delete"
)

// Decision is a step and why it is due.
type Decision struct {
	Step Step
	// Why is half a sentence for people, as in "unused since 2026-11-01 12:00 UTC, for 720h0m0s".
	Why string
	// Since is since when the claim is unused; zero where that is not known or the claim is used.
	Since time.Time
}

// DecideStep says what is due for a claim.
func (c *Claim) DecideStep(now time.Time) Decision {
	if c.Leaving {
		return Decision{Step: StepKeep, Why: "is being deleted"}
	}
	if len(c.Users) > 0 {
		d := Decision{Step: StepKeep, Why: "is used"}
		if c.UnusedSince != "" && c.Rule != "" {
			d.Step = StepUnmark
		}
		return d
	}
	if c.Rule == "" {
		return Decision{Step: StepKeep, Why: "is unused, and has no rule"}
	}
	after, err := ParseRule(c.Rule)
	if err != nil {
		return Decision{Step: StepKeep, Why: "is unused, and its rule is wrong: " + err.Error()}
	}
	since, known := c.unusedSince(now)
	if !known {
		// Not from LastUse: before the mark others may have used it who left nothing behind.
		return Decision{Step: StepMark, Why: "is unused as of now", Since: now}
	}
	if c.LastUse.After(since) && !c.LastUse.After(now) {
		return Decision{Step: StepMark, Why: "was used again, until " + moment(c.LastUse), Since: c.LastUse}
	}
	d := Decision{Step: StepKeep, Why: "is unused since " + moment(since), Since: since}
	switch ends := since.Add(after); {
	case now.Before(ends):
		d.Why += ", and kept until " + moment(ends)
	case len(c.Versions) > 0:
		d.Step = StepUnlist
	default:
		d.Step = StepDelete
	}
	return d
}

// unusedSince is what the claim's mark says; false for no mark, and for one that says nothing or a time to come.
func (c *Claim) unusedSince(now time.Time) (time.Time, bool) {
	since, err := time.Parse(time.RFC3339, c.UnusedSince)
	return since, err == nil && !since.After(now)
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
		return 0, fmt.Errorf("%s is %q: write a duration from 1h to 3650d, as in 720h or 30d", v1beta1.AnnotationPruneAfter, rule)
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

// UnlistVersions takes versions out of data sets, and data sets that have none left. It changes nothing of its argument.
func UnlistVersions(sets []v1beta1.ProfileDataSet, versions []string) []v1beta1.ProfileDataSet {
	var left []v1beta1.ProfileDataSet
	for _, set := range sets {
		kept := slices.DeleteFunc(slices.Clone(set.Versions), func(v v1beta1.DataVersion) bool {
			return slices.Contains(versions, NameVersion(set.Name, v.Version))
		})
		if len(kept) > 0 {
			left = append(left, v1beta1.ProfileDataSet{Name: set.Name, Versions: kept})
		}
	}
	return left
}

// NameVersion names a version of a data set as `tideline submit --data` does.
func NameVersion(set, version string) string { return set + ":" + version }
