package merging

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

const messageLimit = 1024

func clip(s string, n int) string { return text.ClipLine(s, n) }

func count(n int32, noun string) string { return text.FormatCount(n, noun) }

func plural(n int32, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// joinWords joins a reason of Kubernetes and its message.
func joinWords(word, message string) string {
	if message == "" {
		return word
	}
	return word + ": " + message
}

// clockTime is a time of day for `kubectl get`.
func clockTime(at time.Time) string { return at.UTC().Format("15:04:05Z") }

// podRequests lists the requests of one pod. Names with a slash come first: GPUs and other extended resources are scarce.
func (t *facts) podRequests() string {
	requests := trainingpod.PodRequests(&t.spec.Template.Spec)
	names := slices.Collect(maps.Keys(requests))
	slices.SortFunc(names, func(a, b corev1.ResourceName) int {
		return cmp.Or(-cmp.Compare(strings.Count(string(a), "/"), strings.Count(string(b), "/")), cmp.Compare(a, b))
	})
	words := make([]string, len(names))
	for i, name := range names {
		q := requests[name]
		words[i] = q.String() + " " + string(name)
	}
	return cmp.Or(strings.Join(words, ", "), "no resource requests")
}

// joinList joins the items of a list with "or".
func joinList(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + ", or " + words[n-1]
	}
	return strings.Join(words, "")
}

// joinAnd joins the items of a list with "and".
func joinAnd(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return strings.Join(words, "")
}
