package report

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tideline-io/tideline/internal/cost"
)

// Leaders is what pages of leaders are made from, beside the report itself.
type Leaders struct {
	// Zone is the name of the report's time zone.
	Zone string `json:"zone"`
	// Options are those of the whole report.
	Options Options `json:"options"`
	// People are the users whom each leader leads, and those whom they lead: those whose figures the leader may see.
	People map[string][]string `json:"people"`
}

// OptionsOf are the options of a leader's page; false for a user who leads no one.
func (l *Leaders) OptionsOf(leader string) (o Options, leads bool) {
	o = l.Options
	o.Person, o.People = leader, l.People[leader]
	return o, leader != "" && len(o.People) > 0
}

// ReadReport reads a report that was kept as JSON, for times in a zone; in that of the offsets in it if the zone is not known.
func ReadReport(content, zone string) (*cost.Report, error) {
	r := &cost.Report{}
	if err := json.Unmarshal([]byte(content), r); err != nil {
		return nil, fmt.Errorf("read a report that was kept: %w", err)
	}
	// JSON has offsets from UTC, and no zones.
	if in, err := time.LoadLocation(zone); err == nil {
		r.Period.From, r.Period.To = r.Period.From.In(in), r.Period.To.In(in)
		for i := range r.Days {
			r.Days[i].From = r.Days[i].From.In(in)
		}
	}
	return r, nil
}
