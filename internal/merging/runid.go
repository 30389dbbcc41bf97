package merging

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// runTime is how the beginning of a run stands in its id: names of full models rise with time.
const runTime = "20060102t150405z"

// RunID names a run, and the directory of its full model: when it began, to the second, and a hash of the MergeJob's UID.
func RunID(start time.Time, job types.UID) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(job)) // A hash cannot fail to be written.
	return fmt.Sprintf("%s-%08x", start.UTC().Format(runTime), h.Sum32())
}

// RunTime reads when a run began from its id. It is false for a name that is no run id.
func RunTime(id string) (time.Time, bool) {
	at, unique, found := strings.Cut(id, "-")
	if !found || len(unique) != 8 || strings.Trim(unique, "0123456789abcdef") != "" {
		return time.Time{}, false
	}
	start, err := time.Parse(runTime, at)
	return start, err == nil
}
