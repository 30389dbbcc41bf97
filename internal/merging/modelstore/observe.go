package modelstore

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"slices"
	"sort"
	"strings"
	"time"

	"gocloud.dev/blob"
	"golang.org/x/sync/errgroup"

	"github.com/tideline-io/tideline/internal/merging"
)

const (
	// mostFull is how many full models are looked at, besides the ones that a Query names. There may be many old ones, and many
	// that failed runs left without a marker.
	mostFull = 64
	// glancePage is how many names are listed at once where one is looked for.
	glancePage = 10
	// lookers is how many markers are looked for at once.
	lookers = 8
	// MostCounted is how many increments are counted: a backlog is read in pieces, and 100,000 objects cost as many requests as
	// 10,000.
	MostCounted = 10_000
	// MostInWindow is how many increments a store may have whose last ones are listed. S3 lists from the first on only.
	MostInWindow = 100_000
	// mostListBytes leaves room for the rest of a ConfigMap, which etcd bounds with 1 MiB.
	mostListBytes = 900_000
)

// Query says what is known already, so that little is read.
type Query struct {
	// Run is the run whose marker is looked for; empty for none.
	Run string
	// Known is the name of the newest full model on record; empty for none. It is looked for even if many others are newer by name.
	Known string
	// After is the name of the last increment that was merged into Known, relative to the folder of increments. Empty: that is not
	// known, and the increments are told apart by time, as for a full model that is not Known.
	After string
	// Merged has the last increments that were merged into other full models on record, by the names of those: one of them may turn
	// out to be the newest.
	Merged map[string]string
	// Earlier are runs on record that ended before Known was complete: see merging.SortFulls.
	Earlier []string
	// Most is how many increments are listed at most, of those that are counted.
	Most int
	// Window lists the last so many of all increments instead; 0 for none. What is counted stays the same.
	Window int
}

// Increments are those that are not in the last full model.
type Increments struct {
	// Count of all, or MostCounted if there are as many or more.
	Count int
	// First and Last are the names of the first and the last that are listed, relative to the folder of increments.
	First, Last string
	// Listed is how many List has: as many as were asked for and fit.
	Listed int
	// List has a name a line, relative to the folder of increments and in their order, gzipped; nil for none. At most 900 kB, so
	// that it fits a ConfigMap. The same names make the same bytes.
	List []byte
	// NewestTime is when the newest of those that are counted was written, by the store's clock; zero for none.
	NewestTime time.Time
}

// Observation is what a store holds.
type Observation struct {
	// RunComplete says that the full model of Query.Run is there, with its marker.
	RunComplete bool
	// Hollow is the directory with the newest marker if nothing but the marker is in it; empty otherwise. It is no full model: a
	// merge onto it would merge onto nothing.
	Hollow string
	// LastFull is the newest complete full model, as merging.SortFulls has it; nil for none.
	LastFull *merging.Full
	// Increments are, if LastFull is Query.Known, those whose names come after Query.After. If it is another one, which somebody
	// else has made, or whose record is lost, they are those written at or after a cut: when its run started, if its name is a run's
	// id, else when its marker was written. A store tells times in seconds, so those of the cut's own second are counted rather than
	// lost. The start of a run is by the operator's clock: if that is fast, what was written meanwhile is missed until the record
	// of the run is given, as Known and After or in Merged. Without any full model they are all.
	Increments Increments
}

// ObserveStore reads a store. If it can say no more than that the run is complete, it says so beside the error. The error is an
// *Error, except when ctx was cancelled: then it wraps context.Canceled. It has no timeout but that of ctx; a request is tried
// twice. It asks for one page of 1000 names after another, keeps no more than Query.Most of them, and looks for at most 66
// markers, and for a model beside the newest ones and the run's.
func ObserveStore(ctx context.Context, p Policy, l Location, c Credentials, q Query) (Observation, error) {
	if err := p.CheckLocation(l); err != nil {
		return Observation{}, err
	}
	s, err := openStore(ctx, p, l, c)
	if err != nil {
		return Observation{}, explainFailure(ctx, err, l)
	}
	defer s.close()
	o, err := s.observeStore(ctx, l, q)
	if err != nil {
		return Observation{RunComplete: o.RunComplete}, explainFailure(ctx, err, l)
	}
	return o, nil
}

func (s *store) observeStore(ctx context.Context, l Location, q Query) (Observation, error) {
	names, err := s.lastNames(ctx, l.fullFolder())
	if err != nil {
		return Observation{}, err
	}
	for _, name := range []string{q.Known, q.Run} {
		if plainName(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	marked, err := s.markedModels(ctx, l, names, q)
	if err != nil {
		return Observation{}, err
	}
	var o Observation
	// A marker alone is not enough: a merge onto a directory without a model would lose everything that was merged before.
	for i, full := range marked {
		// The newest, and the run's own: each look costs a request, and the others decide nothing.
		if o.LastFull != nil && full.Name != q.Run {
			continue
		}
		there, err := s.hasModel(ctx, l, full.Name)
		switch {
		case err != nil:
			return Observation{}, err
		case there && o.LastFull == nil:
			o.LastFull = &full
		case !there && i == 0:
			o.Hollow = full.Name
		}
		o.RunComplete = o.RunComplete || there && full.Name == q.Run
	}
	o.Increments, err = s.listIncrements(ctx, l, cutOf(o.LastFull, q), q)
	return o, err
}

// lastNames returns the names of the last folders in a folder.
func (s *store) lastNames(ctx context.Context, parent string) ([]string, error) {
	var names []string
	err := s.eachObject(ctx, parent, "/", "", func(o object) error {
		name := strings.TrimSuffix(strings.TrimPrefix(o.key, parent), "/")
		if !o.folder || !plainName(name) {
			return nil
		}
		// Cut only when there are twice as many, so that each name is moved once.
		if names = append(names, name); len(names) > 2*mostFull {
			names = slices.Delete(names, 0, len(names)-mostFull)
		}
		return nil
	})
	return names[max(0, len(names)-mostFull):], err
}

// markedModels returns the full models that have a marker, the newest first.
func (s *store) markedModels(ctx context.Context, l Location, names []string, q Query) ([]merging.Full, error) {
	found := make([]*merging.Full, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(lookers)
	for i, name := range names {
		group.Go(func() error {
			at, ok, err := s.modifiedTime(ctx, l.markerKey(name))
			if ok {
				found[i] = &merging.Full{Name: name, Time: at}
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var marked []merging.Full
	for _, full := range found {
		if full != nil {
			marked = append(marked, *full)
		}
	}
	merging.SortFulls(marked, q.Known, q.Earlier)
	return marked, nil
}

// hasModel tells whether the directory of a full model has an object besides its marker.
func (s *store) hasModel(ctx context.Context, l Location, name string) (bool, error) {
	there := false
	options := &blob.ListOptions{Prefix: l.FullPath(name)}
	err := s.eachPage(ctx, glancePage, options, func(o *blob.ListObject) error {
		// Keys that end with a slash are what consoles make of empty folders.
		if o.Key == l.markerKey(name) || strings.HasSuffix(o.Key, "/") {
			return nil
		}
		there = true
		return errEnough
	})
	if err != nil && !errors.Is(err, errEnough) {
		return false, err
	}
	return there, nil
}

// cut divides the increments that a full model has from those that it has not.
type cut struct {
	after string    // name of the last that it has, if that is known
	since time.Time // else when the first that it has not can have been written
}

func cutOf(last *merging.Full, q Query) cut {
	if last == nil {
		return cut{}
	}
	if last.Name == q.Known && q.After != "" {
		return cut{after: q.After}
	}
	if after := q.Merged[last.Name]; after != "" {
		return cut{after: after}
	}
	if start, ok := merging.RunTime(last.Name); ok {
		return cut{since: start}
	}
	return cut{since: last.Time}
}

func (s *store) listIncrements(ctx context.Context, l Location, c cut, q Query) (Increments, error) {
	t := tally{cut: c, most: q.Most, window: q.Window}
	parent, after := l.IncrementsPath(), ""
	if c.after != "" && q.Window == 0 {
		after = parent + c.after
	}
	err := s.eachObject(ctx, parent, "", after, func(o object) error {
		name := strings.TrimPrefix(o.key, parent)
		// Keys that end with a slash are what consoles make of empty folders.
		if name == "" || strings.HasSuffix(name, "/") {
			return nil
		}
		return t.add(name, o.modified)
	})
	if err != nil && !errors.Is(err, errEnough) {
		return Increments{}, err
	}
	return t.sum()
}

// tally counts increments that come in the order of their names, and keeps the names that a run would merge.
type tally struct {
	cut          cut
	most, window int
	found        Increments
	names        []string
	seen         int
}

// add adds an increment. It returns errEnough when no more need be looked at.
func (t *tally) add(name string, written time.Time) error {
	waits := name > t.cut.after && !written.Before(t.cut.since)
	if !waits && t.window == 0 {
		return nil
	}
	if strings.ContainsAny(name, "\r\n") {
		// The list of increments has one name a line.
		return refuse(Invalid, "the increment %s has a line break in its name: rename it", quoteClipped(name))
	}
	if waits && t.found.Count < MostCounted {
		t.found.Count++
		if written.After(t.found.NewestTime) {
			t.found.NewestTime = written
		}
	}
	if t.window == 0 {
		if len(t.names) < t.most {
			t.names = append(t.names, name)
		}
		if t.found.Count == MostCounted {
			return errEnough
		}
		return nil
	}
	if t.seen++; t.seen > MostInWindow {
		return refuse(Invalid, "there are more than %d increments, and a window over the last %d needs all of them listed: delete "+
			"old ones, for example by a lifecycle rule, or leave spec.window out", MostInWindow, t.window)
	}
	// Cut only when there are twice as many, so that each name is moved once.
	if t.names = append(t.names, name); len(t.names) >= 2*t.window {
		t.names = slices.Delete(t.names, 0, len(t.names)-t.window)
	}
	return nil
}

// sum is what was added.
func (t *tally) sum() (Increments, error) {
	names := t.names
	if t.window > 0 {
		names = names[max(len(names)-t.window, 0):]
	}
	found := t.found
	found.List, found.Listed = firstFitting(names, mostListBytes)
	if t.window > 0 && found.Listed < len(names) {
		return Increments{}, refuse(Invalid, "the names of %d increments take more than %d bytes: lower spec.window or shorten "+
			"them", len(names), mostListBytes)
	}
	if found.Listed > 0 {
		found.First, found.Last = names[0], names[found.Listed-1]
	}
	return found, nil
}

// errEnough ends a listing early.
var errEnough = errors.New("enough")

// firstFitting returns a gzipped list of as many of the first names as fit into most bytes, and their number.
func firstFitting(names []string, most int) ([]byte, int) {
	if len(names) == 0 {
		return nil, 0
	}
	if list := gzipNames(names); len(list) <= most {
		return list, len(names)
	}
	n := sort.Search(len(names), func(i int) bool { return len(gzipNames(names[:i+1])) > most })
	if n == 0 {
		return nil, 0
	}
	return gzipNames(names[:n]), n
}

func gzipNames(names []string) []byte {
	var list bytes.Buffer
	w := gzip.NewWriter(&list)
	for _, name := range names {
		// A buffer takes everything.
		_, _ = io.WriteString(w, name+"\n")
	}
	_ = w.Close()
	return list.Bytes()
}
