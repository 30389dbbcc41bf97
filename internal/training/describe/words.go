package describe

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
)

// CountWorkers counts workers: "1 worker", "3 workers".
func CountWorkers(n int32) string {
	if n == 1 {
		return "1 worker"
	}
	return fmt.Sprintf("%d workers", n)
}

// WorkersNamed names workers by rising indices: "worker 6", "workers 2 to 5 and 7".
func WorkersNamed(indices []int32) string {
	if len(indices) == 1 {
		return "worker " + List(indices)
	}
	return "workers " + List(indices)
}

// List writes rising indices for people: "6", "6 and 7", "2 to 5 and 7".
func List(indices []int32) string {
	var runs []string
	for len(indices) > 0 {
		n := 1
		for n < len(indices) && indices[n] == indices[0]+int32(n) {
			n++
		}
		first, last := strconv.Itoa(int(indices[0])), strconv.Itoa(int(indices[n-1]))
		switch n {
		case 1:
			runs = append(runs, first)
		case 2:
			runs = append(runs, first, last)
		default:
			runs = append(runs, first+" to "+last)
		}
		indices = indices[n:]
	}
	switch n := len(runs); n {
	case 0:
		return "none"
	case 1:
		return runs[0]
	default:
		return strings.Join(runs[:n-1], ", ") + " and " + runs[n-1]
	}
}

// countWaiting is "1 worker waits" or "3 workers wait".
func countWaiting(n int32) string {
	if n == 1 {
		return "1 worker waits"
	}
	return fmt.Sprintf("%d workers wait", n)
}

// CapitalizeFirst returns s with its first letter, which must be ASCII, in upper case.
func CapitalizeFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// FormatTime writes a time in UTC, to the second.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }

// someHolders lists the first three jobs, and counts the others and their workers.
func someHolders(all []capacity.Holder) string {
	const most = 3
	if len(all) <= most {
		return listHolders(all)
	}
	var rest int32
	for _, h := range all[most:] {
		rest += h.Workers
	}
	others := "1 other job"
	if n := len(all) - most; n > 1 {
		others = fmt.Sprintf("%d other jobs", n)
	}
	return fmt.Sprintf("%s and %s (%d)", listHolders(all[:most]), others, rest)
}

// listSources lists the jobs that make room as listHolders does.
func listSources(all []v1beta1.RoomSource) string {
	holders := make([]capacity.Holder, len(all))
	for i, s := range all {
		holders[i] = capacity.Holder{Job: types.NamespacedName{Namespace: s.Namespace, Name: s.Name}, Workers: s.Workers}
	}
	return listHolders(holders)
}

// listHolders lists jobs, each with a number of workers: "vision/a (2), ads/b (1)".
func listHolders(all []capacity.Holder) string {
	words := make([]string, len(all))
	for i, h := range all {
		words[i] = fmt.Sprintf("%s (%d)", h.Job, h.Workers)
	}
	return strings.Join(words, ", ")
}
