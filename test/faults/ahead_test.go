package faults

import (
	"context"
	"sync"

	. "github.com/onsi/ginkgo/v2"
)

// Most of a spec of this suite is waiting, and a process of Ginkgo runs one spec at a time. So the first spec that runs begins
// the work of all of them, in one process, and each reports its own when it is done. Two cores serve twelve operators at a
// time, however many processes Ginkgo has.

// work is what a spec does: it counts its runs, and returns a table of what was tried.
type work func(context.Context, *results) (table string, err error)

var (
	// all are the specs' works, each of which is done once.
	all []func() (string, error)
	// atWork are those that go on.
	atWork sync.WaitGroup
	// suiteContext ends when the suite is interrupted or over.
	suiteContext, endSuite = context.WithCancel(context.Background())
	// lanes limit how many runs go on at a time.
	lanes = make(chan struct{}, 8)
)

// itEndsTheSame is a spec whose work may go on beside that of others.
func itEndsTheSame(name string, do work) {
	res, number := newResults(), int64(len(all))
	done := sync.OnceValues(func() (string, error) {
		if spotChecks && (number+GinkgoRandomSeed())%2 != 0 {
			return "left to the next seed", nil
		}
		return res.of(suiteContext, do)
	})
	all = append(all, done)
	itTells(name, done)
}

// itEndsTheSameAlone is a spec whose work begins when that of all others is done, because it disturbs them.
func itEndsTheSameAlone(name string, do work) {
	res := newResults()
	itTells(name, func() (string, error) {
		atWork.Wait()
		return res.of(suiteContext, do)
	})
}

// of does the work and counts it.
func (r *results) of(ctx context.Context, do work) (string, error) {
	table, err := do(ctx, r)
	if err == nil {
		err = r.missed()
	}
	return table, err
}

// itTells is a spec that reports what was tried.
func itTells(name string, done func() (string, error)) {
	It(name, Serial, func(ctx context.Context) {
		defer context.AfterFunc(ctx, endSuite)()
		workAhead()
		table, err := done()
		AddReportEntry("tried", ReportEntryVisibilityAlways, table)
		if err != nil {
			Fail(err.Error())
		}
	})
}

// workAhead begins everything, unless only a part of the suite was asked for.
var workAhead = sync.OnceFunc(func() {
	suite, _ := GinkgoConfiguration()
	if len(suite.FocusStrings)+len(suite.FocusFiles)+len(suite.SkipStrings)+len(suite.SkipFiles) > 0 {
		return
	}
	for _, done := range all {
		atWork.Go(func() { _, _ = done() })
	}
})

// endWork has everything end that still goes on, and waits for it.
func endWork() {
	endSuite()
	atWork.Wait()
}
