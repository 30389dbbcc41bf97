package view

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

// Merges is the line of merges of a pool.
type Merges struct {
	// Pool is which; empty if there are no merges.
	Pool string
	// Pools are the first by name, MorePools how many are left out.
	Pools     []Choice
	MorePools int
	Figures   []Figure
	Rows      []MergeRow
	Pages     Paging
	// Shown is how many there are on all pages, Others how many of the pool are in namespaces that the reader may not see.
	Shown, Others int
}

// MergeRow is a merge's line.
type MergeRow struct {
	Namespace, Name, Model, Owner, Tier string
	// Place in the line from 1; 0 outside it.
	Place int32
	State string
	// Message says why, in a sentence.
	Message string
	// Fresh is how old the full model is, and of what age it is merged again; Late is true if it is older.
	Fresh      string
	Late       bool
	Increments int32
	Full, Due  Moment
}

// NewMerges makes the page of a pool; of the first by name if there is none of this name. Pages count from 1.
func NewMerges(m *Model, s *Sight, pool string, page int, now time.Time) Merges {
	pools := map[string][]*v1beta1.MergeJob{}
	for _, j := range m.Merges {
		name := cmp.Or(j.Status.Pool, j.Spec.Pool, config.DefaultPool)
		pools[name] = append(pools[name], j)
	}
	names := slices.Sorted(maps.Keys(pools))
	if len(names) == 0 {
		return Merges{Pages: Paging{Page: 1, Pages: 1}}
	}
	if pools[pool] == nil {
		pool = names[0]
	}
	list := Merges{Pool: nameText(pool), MorePools: max(0, len(names)-mostPools)}
	for _, name := range names[:len(names)-list.MorePools] {
		list.Pools = append(list.Pools, Choice{
			Label: nameText(name), Path: Root + "merges?pool=" + url.QueryEscape(name), Chosen: name == pool,
		})
	}
	var mine []*v1beta1.MergeJob
	running, waits, late := 0, 0, 0
	for _, j := range pools[pool] {
		running += count1(j.Status.Run != nil && j.Status.Run.RunTime != nil)
		waits += count1(j.Status.Position != nil)
		late += count1(isLate(j, now))
		if s.SeesMerges(j.Namespace) {
			mine = append(mine, j)
		} else {
			list.Others++
		}
	}
	list.Figures = []Figure{
		{Label: "In the line", Value: strconv.Itoa(waits), Note: "merges that are due, of all namespaces"},
		{Label: "Merges that run", Value: strconv.Itoa(running), Note: "of " + strconv.Itoa(len(pools[pool])) + " of the pool"},
		{Label: "Models that are late", Value: strconv.Itoa(late), Note: "older than the age at which they are merged again"},
	}
	slices.SortFunc(mine, compareMerges)
	list.Shown = len(mine)
	var from, to int
	list.Pages, from, to = pagingOf(page, len(mine), JobsOnPage, Root+"merges?pool="+url.QueryEscape(pool)+"&page=")
	for _, j := range mine[from:to] {
		list.Rows = append(list.Rows, mergeRow(j, s, now))
	}
	return list
}

// mostPools is how many pools a page names.
const mostPools = 50

func count1(is bool) int {
	if is {
		return 1
	}
	return 0
}

// compareMerges puts those that run first, then the line by place, then those that are due next.
func compareMerges(a, b *v1beta1.MergeJob) int {
	rank := func(j *v1beta1.MergeJob) int {
		switch {
		case j.Status.Run != nil && j.Status.Run.RunTime != nil:
			return 0
		case j.Status.Position != nil:
			return 1
		case j.Status.DueTime != nil:
			return 2 //nolint:mnd // the third of four
		}
		return 3 //nolint:mnd // the last of four
	}
	order := cmp.Compare(rank(a), rank(b))
	if order == 0 && a.Status.Position != nil && b.Status.Position != nil {
		order = cmp.Compare(*a.Status.Position, *b.Status.Position)
	}
	if order == 0 && a.Status.DueTime != nil && b.Status.DueTime != nil {
		order = a.Status.DueTime.Compare(b.Status.DueTime.Time)
	}
	return cmp.Or(order, cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// ageOf is how old a full model is, and at which age it is merged again; 0 for none.
func ageOf(j *v1beta1.MergeJob, now time.Time) (age, interval time.Duration, known bool) {
	if i := j.Spec.Schedule; i != nil && i.Interval != nil {
		interval = i.Interval.Duration
	}
	if full := j.Status.LastFull; full != nil {
		return max(0, now.Sub(full.Time.Time)), interval, true
	}
	return 0, interval, false
}

// isLate is true for a model that is older than the age at which it is merged again.
func isLate(j *v1beta1.MergeJob, now time.Time) bool {
	age, interval, known := ageOf(j, now)
	return known && interval > 0 && age > interval
}

func mergeRow(j *v1beta1.MergeJob, s *Sight, now time.Time) MergeRow {
	st := &j.Status
	row := MergeRow{
		Namespace: nameText(j.Namespace), Name: nameText(j.Name), Model: nameText(cmp.Or(st.Model, j.Spec.Model, j.Name)),
		Owner: nameText(j.Spec.Owner), Tier: nameText(st.Tier), State: nameText(cmp.Or(st.Summary, string(st.Phase), "new")),
		Message: s.told(st.Message), Increments: st.Increments, Late: isLate(j, now),
	}
	if st.Position != nil {
		row.Place = *st.Position
	}
	if st.DueTime != nil {
		row.Due = momentOf(st.DueTime.Time, now)
	}
	age, interval, known := ageOf(j, now)
	row.Fresh = "no full model yet"
	if known {
		row.Fresh, row.Full = lasting(age)+" old", momentOf(st.LastFull.Time.Time, now)
	}
	if interval > 0 {
		row.Fresh += ", merged again at " + lasting(interval)
	}
	return row
}
