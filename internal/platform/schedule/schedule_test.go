package schedule

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, text)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return moment
}

func TestNextTimeOfASchedule(t *testing.T) {
	for name, c := range map[string]struct{ line, zone, after, next string }{
		"five fields":                  {"30 2 * * *", "", "2026-03-01T02:30:00Z", "2026-03-02T02:30:00Z"},
		"a moment before":              {"30 2 * * *", "", "2026-03-01T02:29:59Z", "2026-03-01T02:30:00Z"},
		"a word":                       {"@daily", "", "2026-03-01T10:00:00Z", "2026-03-02T00:00:00Z"},
		"UTC, whoever asks":            {"@daily", "", "2026-03-01T23:00:00-05:00", "2026-03-03T00:00:00Z"},
		"another zone":                 {"0 3 * * *", "Europe/Berlin", "2026-01-10T12:00:00Z", "2026-01-11T02:00:00Z"},
		"another zone in summer":       {"0 3 * * *", "Europe/Berlin", "2026-07-10T12:00:00Z", "2026-07-11T01:00:00Z"},
		"an hour that a day lacks":     {"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z"},
		"an hour that a day has twice": {"30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		"the first of them":            {"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"},
		"the hour after it":            {"0 3 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T02:00:00Z"},
		"each hour, that one as well":  {"30 * * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"},
		"half an hour back":            {"45 1 * * *", "Australia/Lord_Howe", "2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"},
		"weekdays":                     {"0 9 * * mon-fri", "", "2026-03-06T09:00:00Z", "2026-03-09T09:00:00Z"},
		"a leap day":                   {"0 0 29 2 *", "", "2026-03-01T00:00:00Z", "2028-02-29T00:00:00Z"},
		"a leap day that is far off":   {"0 0 29 2 *", "", "2096-03-01T00:00:00Z", "0001-01-01T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s, err := Parse(c.line, c.zone)
			g.Expect(err).NotTo(HaveOccurred())
			next := s.Next(at(t, c.after))
			g.Expect(next.Format(time.RFC3339)).To(Equal(c.next), "and in UTC")
			g.Expect(next.IsZero()).To(Equal(c.next == "0001-01-01T00:00:00Z"))
		})
	}
}

func TestSchedulesThatAreNone(t *testing.T) {
	const form = ": write minute, hour, day of the month, month and day of the week, as in 30 2 * * 1-5, or @daily and the like"
	const zone = ": name one of the IANA database, as in Europe/Berlin"
	for _, c := range []struct{ line, zone, says string }{
		{"61 * * * *", "", `cron line "61 * * * *" cannot be read (end of range (61) above maximum (59): 61)` + form},
		{"* * * *", "", `cron line "* * * *" cannot be read (expected exactly 5 fields, found 4: [* * * *])` + form},
		{"0 30 2 * * *", "", `cron line "0 30 2 * * *" cannot be read (expected exactly 5 fields, found 6: [0 30 2 * * *])` + form},
		{"", "", `cron line "" cannot be read (empty spec string)` + form},
		{"@often", "", `cron line "@often" cannot be read (unrecognized descriptor: @often)` + form},
		{"@every 1s", "", `cron line "@every 1s" is an interval, which merges alone may have: set interval instead`},
		{"0 0 30 2 *", "", `cron line "0 0 30 2 *" never comes true, because no month that it names has such a day` + form},
		{"0 0 31 4,6 *", "", `cron line "0 0 31 4,6 *" never comes true, because no month that it names has such a day` + form},
		{"@daily", "Mars/Base", `time zone "Mars/Base" is not known` + zone},
		{"@daily", "../etc/passwd", `time zone "../etc/passwd" is not known` + zone},
		{"@daily", "Local", `time zone "Local" is not allowed` + zone},
		{"TZ=UTC @daily", "", `cron line "TZ=UTC @daily" names a time zone: set timeZone instead`},
		{"TZ=", "", `cron line "TZ=" names a time zone: set timeZone instead`},
		{"CRON_TZ=UTC", "", `cron line "CRON_TZ=UTC" names a time zone: set timeZone instead`},
	} {
		_, err := Parse(c.line, c.zone)
		NewWithT(t).Expect(err).To(MatchError(c.says), "%q in %q", c.line, c.zone)
	}
}

// FuzzParse: whatever users write, it is refused, or comes true at some time.
func FuzzParse(f *testing.F) {
	for _, line := range []string{"30 2 * * 1-5", "@daily", "TZ=", "*/7 1,2-9/3 ? jan sun", "0 0 29 2 *", "@every 0s"} {
		f.Add(line, "Europe/Berlin")
	}
	f.Fuzz(func(t *testing.T, line, zone string) {
		s, err := Parse(line, zone)
		if err != nil {
			return
		}
		after := time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)
		if next := s.Next(after); !next.After(after) {
			t.Errorf("%q in %q comes true at %s", line, zone, next)
		}
	})
}
