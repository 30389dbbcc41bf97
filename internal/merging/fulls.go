package merging

import (
	"cmp"
	"slices"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// LastMerged maps the full models of the runs on record, and of the run that goes on, to the last increment that each contains.
func LastMerged(st *v1beta1.MergeJobStatus) map[string]string {
	merged := map[string]string{}
	for _, r := range st.History {
		merged[r.Run] = r.LastIncrement
	}
	if st.Run != nil {
		merged[st.Run.ID] = st.Run.LastIncrement
	}
	return merged
}

// EarlierRuns names the runs on record that ended before the full model on record was complete, if a run on record made that.
func EarlierRuns(st *v1beta1.MergeJobStatus) []string {
	last := slices.IndexFunc(st.History, func(r v1beta1.MergeResult) bool { return r.Run == nameOf(st.LastFull) })
	if last < 0 {
		return nil
	}
	var names []string
	for _, r := range st.History[last+1:] { // the newest comes first
		names = append(names, r.Run)
	}
	return names
}

// SortFulls sorts complete full models, the newest first: the one with the newest marker, by the store's clock, and of two in the
// same moment the later by name. Models of earlier runs are older than known, whatever clocks say: while a marker that a fast
// clock wrote counted as the newest, each run merged the same increments onto that model once more.
func SortFulls(fulls []Full, known string, earlier []string) {
	slices.SortFunc(fulls, func(a, b Full) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.Name, a.Name)) })
	last := slices.IndexFunc(fulls, func(f Full) bool { return f.Name == known })
	older := func(f Full) int {
		if slices.Contains(earlier, f.Name) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(fulls[:last+1], func(a, b Full) int { return cmp.Compare(older(a), older(b)) })
}
