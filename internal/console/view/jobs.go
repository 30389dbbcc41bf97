package view

import (
	"net/url"
	"time"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// Jobs is the list of trainings.
type Jobs struct {
	Rows  []JobRow
	Pages Paging
	// Show is which are listed: all, waiting, running or ended.
	Show string
	// Shown is how many there are on all pages; Others is how many there are in namespaces that the reader may not see, whatever
	// they do.
	Shown, Others int
	// Choices are the lists that there are.
	Choices []Choice
}

// Choice is one of several lists.
type Choice struct {
	Label, Path string
	Chosen      bool
}

// shows are the lists of trainings, and which standing each has.
var shows = []struct {
	name string
	has  func(standing) bool
}{
	{"all", func(standing) bool { return true }},
	{"waiting", func(s standing) bool { return s == waiting }},
	{"running", func(s standing) bool { return s == running }},
	{"ended", func(s standing) bool { return s == ended }},
}

// NewJobs makes a page of the list that show names; any other name is all. Pages count from 1; those out of range are the
// nearest.
func NewJobs(m *Model, s *Sight, show string, page int, now time.Time) Jobs {
	chosen := shows[0]
	for _, one := range shows {
		if one.name == show {
			chosen = one
		}
	}
	list := Jobs{Show: chosen.name}
	for _, one := range shows {
		list.Choices = append(list.Choices, Choice{
			Label: one.name, Path: Root + "jobs?show=" + url.QueryEscape(one.name), Chosen: one.name == chosen.name,
		})
	}
	var mine []*v1beta1.ElasticTrainingJob
	for _, j := range m.Jobs {
		switch {
		case !s.SeesJobs(j.Namespace):
			list.Others++
		case chosen.has(standingOf(j)):
			mine = append(mine, j)
		}
	}
	sortJobs(mine)
	list.Shown = len(mine)
	var from, to int
	list.Pages, from, to = pagingOf(page, len(mine), JobsOnPage, Root+"jobs?show="+url.QueryEscape(chosen.name)+"&page=")
	for _, j := range mine[from:to] {
		list.Rows = append(list.Rows, rowOf(j, s, now))
	}
	return list
}
