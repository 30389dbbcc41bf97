package view

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// Team is a team's page: what it has, what limits it, and its trainings.
type Team struct {
	Row     TeamRow
	Message string
	Figures []Figure
	// Caps are what one user and one training may hold; Budgets are hours, and who has used them up, MoreOver users left out.
	Caps, Budgets []Limit
	MoreOver      int
	// Users and Tiers are who holds how many accelerators; Available is what could be placed now.
	Users, Tiers, Available []Figure
	Reservations            []Limit
	// Data are the versions of the team's data sets, each with how many trainings use it.
	Data  []Figure
	Notes []string
	// Rows are the trainings that the reader may see, of Shown on all pages; Others is how many there are elsewhere.
	Rows          []JobRow
	Pages         Paging
	Shown, Others int
}

// Limit is a limit, of what, and more about it.
type Limit struct{ What, Limit, Note string }

// mostOver is how many users who have used up a budget are listed.
const mostOver = 64

// FindTeam finds a team that the reader may see.
func (m *Model) FindTeam(s *Sight, name string) *v1beta1.ResourceQuotaProfile {
	if !s.Profiles {
		return nil
	}
	for _, p := range m.Profiles {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// NewTeam makes a team's page, with the trainings that the reader may see. Pages of them count from 1.
func NewTeam(p *v1beta1.ResourceQuotaProfile, m *Model, s *Sight, cfg *config.Configuration, page int, now time.Time) Team {
	st := &p.Status
	t := Team{Row: teamRow(p, cfg), Message: s.told(st.Message)}
	t.Figures = []Figure{
		{
			Label: "Used of share", Value: t.Row.Used + " of " + t.Row.Deserved,
			Note: "used/share/limit " + nameText(cmp.Or(st.Accelerators, "-")),
		},
		{
			Label: "Borrowed, lent", Value: t.Row.Borrowed + ", " + t.Row.Lent,
			Note: "accelerators beyond the share, and idle ones of it",
		},
		{Label: "Largest gang now", Value: t.Row.LargestGang, Note: "accelerators, without evictions"},
		{
			Label: "Run, wait", Value: strconv.Itoa(int(st.Running)) + ", " + strconv.Itoa(int(st.Waiting)),
			Note: strconv.Itoa(int(st.AwaitingApproval)) + " await approval",
		},
	}
	t.addLimits(p)
	for i := range st.Users {
		t.Users = append(t.Users, Figure{Label: nameText(cmp.Or(st.Users[i].Name, "no owner")), Value: nameText(st.Users[i].Held)})
	}
	for i := range st.Tiers {
		t.Tiers = append(t.Tiers, Figure{Label: nameText(cmp.Or(st.Tiers[i].Name, "no tier")), Value: nameText(st.Tiers[i].Held)})
	}
	for i := range st.Available {
		a := &st.Available[i]
		t.Available = append(t.Available, Figure{
			Label: nameText(cmp.Or(a.Model, a.Resource)), Value: strconv.Itoa(int(a.Free)),
			Note: fmt.Sprintf("workers of one could be placed, and %d if surplus gave way; the largest gang has %d, or %d then",
				a.FreeWithSurplus, a.LargestGang, a.LargestGangWithSurplus),
		})
	}
	for i := range st.Reservations {
		r := &st.Reservations[i]
		of := Limit{What: nameText(r.Name), Limit: nameText(string(r.Phase)), Note: count(r.Placed, "place") + " held"}
		if r.Message != "" {
			of.Note += ". " + s.told(r.Message)
		}
		t.Reservations = append(t.Reservations, of)
	}
	t.addData(st.DataSets)
	for _, c := range st.Conditions {
		if c.Message != "" && c.Message != st.Message {
			t.Notes = append(t.Notes, s.told(c.Type+" "+string(c.Status)+", "+c.Reason+": "+c.Message))
		}
	}
	t.addJobs(p.Name, m, s, page, now)
	return t
}

// addLimits lists caps and budgets with who has used them up.
func (t *Team) addLimits(p *v1beta1.ResourceQuotaProfile) {
	caps := p.Spec.Caps
	if caps == nil {
		return
	}
	for _, of := range []struct {
		whose string
		caps  []v1beta1.ResourceCap
	}{{"one user", caps.PerUser}, {"one training", caps.PerJob}} {
		for i := range of.caps {
			c := &of.caps[i]
			what := c.Resource
			if c.Model != "" {
				what += " of model " + c.Model
			}
			t.Caps = append(t.Caps, Limit{What: nameText(what), Limit: c.Max.String(), Note: "of " + of.whose})
		}
	}
	for i := range caps.AcceleratorHours {
		b := &caps.AcceleratorHours[i]
		limit := Limit{
			What: "accelerator hours of one user in " + text.FormatDuration(b.Window.Duration), Limit: strconv.Itoa(int(b.PerUser)),
			Note: "then: " + nameText(string(cmp.Or(b.OnExceeded, v1beta1.ExceededQueue))),
		}
		t.Budgets = append(t.Budgets, limit)
	}
	over := p.Status.OverBudget
	t.MoreOver = max(0, len(over)-mostOver)
	for i := range over[:len(over)-t.MoreOver] {
		o := &over[i]
		t.Budgets = append(t.Budgets, Limit{
			What:  nameText(o.User) + " has used up that of " + text.FormatDuration(o.Window.Duration),
			Limit: strconv.FormatInt(o.MaxHours, 10), Note: strconv.FormatInt(o.UsedHours, 10) + " used",
		})
	}
}

// addData lists the versions of the team's data sets.
func (t *Team) addData(sets []v1beta1.DataSetStatus) {
	for i := range sets {
		d := &sets[i]
		of := Figure{Label: nameText(d.Name + " " + d.Version), Value: strconv.Itoa(int(d.Jobs)),
			Note: "trainings use it; in an object store"}
		if d.Space != nil {
			of.Note = "trainings use it; its claims have " + d.Space.String()
		}
		t.Data = append(t.Data, of)
	}
}

// addJobs lists the team's trainings.
func (t *Team) addJobs(team string, m *Model, s *Sight, page int, now time.Time) {
	var mine []*v1beta1.ElasticTrainingJob
	for _, j := range m.Jobs {
		switch {
		case j.Status.Profile != team:
		case s.SeesJobs(j.Namespace):
			mine = append(mine, j)
		default:
			t.Others++
		}
	}
	sortJobs(mine)
	t.Shown = len(mine)
	var from, to int
	t.Pages, from, to = pagingOf(page, len(mine), JobsOnPage, teamPath(team)+"?page=")
	for _, j := range mine[from:to] {
		t.Rows = append(t.Rows, rowOf(j, s, now))
	}
}

// teamPath is the address of a team's page.
func teamPath(name string) string { return Root + "teams/" + url.PathEscape(name) }

// jobPath is the address of a training's page.
func jobPath(namespace, name string) string {
	return Root + "jobs/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
}
