package modelstore

import (
	"strings"
	"time"
	"unicode"

	"github.com/tideline-io/tideline/internal/merging"
)

// A volume is read by no operator: it would have to run beside it. What is in it is what a report says, a ConfigMap that
// trainings and merge programs write.

// The keys of a report. Each has a line for each increment, or each complete full model: its name, a space, and when it was
// written as RFC 3339 has it. Names of increments rise from line to line.
const (
	ReportIncrements = "increments"
	ReportFull       = "full"
)

// Bounds of a report, besides the 1 MiB that the API server allows it.
const (
	mostReportedIncrements = MostCounted
	mostReportedFull       = 100
)

// reported is a line of a report.
type reported struct {
	name string
	time time.Time
}

// ObserveReport is ObserveStore for a store that a report tells of. It believes the report: a full model that is listed is
// complete, and none is Hollow. The error is an *Error with the Reason Invalid for a location, and ReportInvalid for a report.
func ObserveReport(p Policy, l Location, report map[string]string, q Query) (Observation, error) {
	if err := p.CheckLocation(l); err != nil {
		return Observation{}, err
	}
	full, err := readReport(report, ReportFull, mostReportedFull, false)
	if err != nil {
		return Observation{}, err
	}
	var o Observation
	fulls := make([]merging.Full, len(full))
	for i, f := range full {
		fulls[i] = merging.Full{Name: f.name, Time: f.time}
		o.RunComplete = o.RunComplete || f.name == q.Run
	}
	if len(fulls) > 0 {
		merging.SortFulls(fulls, q.Known, q.Earlier)
		o.LastFull = &fulls[0]
	}
	increments, err := readReport(report, ReportIncrements, mostReportedIncrements, true)
	if err != nil {
		return Observation{RunComplete: o.RunComplete}, err
	}
	t := tally{cut: cutOf(o.LastFull, q), most: q.Most, window: q.Window}
	for _, i := range increments {
		if err := t.add(i.name, i.time); err != nil {
			break // Enough is counted.
		}
	}
	if o.Increments, err = t.sum(); err != nil {
		return Observation{RunComplete: o.RunComplete}, err
	}
	return o, nil
}

// readReport reads one key of a report. Names are paths in a folder of the volume, or single names where paths is false.
func readReport(report map[string]string, key string, most int, paths bool) ([]reported, error) {
	var all []reported
	n := 0
	for line := range strings.Lines(report[key]) {
		n++
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(all) == most {
			return nil, refuse(ReportInvalid, "%s has more than %d lines: keep the newest", key, most)
		}
		if len(words) != 2 { //nolint:mnd // a name and a time
			return nil, refuse(ReportInvalid, "line %d of %s is %s: write a name, a space and a time, and no space in the name", n, key,
				quoteClipped(strings.TrimSpace(line)))
		}
		name := words[0]
		if !plainPath(name, paths) {
			return nil, refuse(ReportInvalid, "line %d of %s has the name %s: use at most 512 bytes without . and .. and without "+
				"control characters", n, key, quoteClipped(name))
		}
		at, err := time.Parse(time.RFC3339, words[1])
		if err != nil {
			return nil, refuse(ReportInvalid, "line %d of %s has the time %s: write it as 2026-11-22T00:10:00Z", n, key,
				quoteClipped(words[1]))
		}
		if paths && len(all) > 0 && name <= all[len(all)-1].name {
			return nil, refuse(ReportInvalid, "line %d of %s has the name %s after %s: names must rise from line to line", n, key,
				quoteClipped(name), quoteClipped(all[len(all)-1].name))
		}
		all = append(all, reported{name, at})
	}
	return all, nil
}

// plainPath tells whether a name leads to nowhere but into its folder.
func plainPath(name string, paths bool) bool {
	if len(name) > 512 || strings.ContainsFunc(name, unicode.IsControl) || (!paths && strings.Contains(name, "/")) {
		return false
	}
	for segment := range strings.SplitSeq(name, "/") {
		if !plainName(segment) {
			return false
		}
	}
	return true
}
