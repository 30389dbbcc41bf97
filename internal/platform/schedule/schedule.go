// Package schedule reads schedules, as cron has them, in time zones.
package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Schedule is a cron line in a time zone.
type Schedule struct {
	line cron.Schedule
	zone *time.Location
}

// Parse reads a cron line of five fields, or @daily and the like, in a time zone of the IANA database; an empty name is UTC.
// The error says what to write instead: the line or the zone cannot be read, or the line never comes true, as on 30 February.
func Parse(line, timeZone string) (Schedule, error) {
	const form = "write minute, hour, day of the month, month and day of the week, as in 30 2 * * 1-5, or @daily and the like"
	// To the library "Local" is the zone of the machine, which differs from operator to operator.
	if timeZone == "Local" {
		return Schedule{}, errors.New(`time zone "Local" is not allowed: name one of the IANA database, as in Europe/Berlin`)
	}
	zone, err := time.LoadLocation(timeZone)
	if err != nil {
		return Schedule{}, fmt.Errorf("time zone %q is not known: name one of the IANA database, as in Europe/Berlin", timeZone)
	}
	switch {
	case strings.Contains(line, "TZ="): // the library panics on some of them
		return Schedule{}, fmt.Errorf("cron line %q names a time zone: set timeZone instead", line)
	case strings.HasPrefix(strings.TrimSpace(line), "@every"):
		return Schedule{}, fmt.Errorf("cron line %q is an interval, which merges alone may have: set interval instead", line)
	}
	parsed, err := cron.ParseStandard(line)
	if err != nil {
		return Schedule{}, fmt.Errorf("cron line %q cannot be read (%w): %s", line, err, form)
	}
	s := Schedule{line: parsed, zone: zone}
	// A day that is in any year is among the five that follow: 2000 is a leap year.
	if s.Next(time.Date(1999, time.December, 31, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Schedule{}, fmt.Errorf("cron line %q never comes true, because no month that it names has such a day: %s", line, form)
	}
	return s, nil
}

// Next is the first time of the schedule after another; zero where there is none in the five years that follow, which happens to
// 29 February alone, about a year such as 2100. When clocks go back, a line that names hours comes once in the hour that a day
// has twice; when they go forward, it leaves out a day that lacks its hour.
func (s Schedule) Next(after time.Time) time.Time {
	next := s.line.Next(after.In(s.zone))
	for s.namesHours() && isRepeated(next) {
		next = s.line.Next(next)
	}
	if next.IsZero() {
		return next
	}
	return next.UTC()
}

// everyHour marks the hours of a line that has a star there; see starBit of the library.
const everyHour = 1 << 63

// namesHours is true for a line that does not come each hour.
func (s Schedule) namesHours() bool {
	line, ok := s.line.(*cron.SpecSchedule)
	return ok && line.Hour&everyHour == 0
}

// longestShift is longer than any by which clocks go back.
const longestShift = 3 * time.Hour

// isRepeated is true for a time that the clocks of its zone showed a while ago already, before they went back.
func isRepeated(t time.Time) bool {
	_, now := t.Zone()
	_, before := t.Add(-longestShift).Zone()
	shift := time.Duration(before-now) * time.Second
	_, then := t.Add(-shift).Zone()
	return shift > 0 && then == before
}
