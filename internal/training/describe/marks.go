package describe

import (
	"fmt"
	"strings"

	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// RestoredWords says what was put back on the pod of a worker, and on how many others: "Worker 1's pod: label tideline.io/part
// was gold and is core again."
func RestoredWords(worker int32, marks []podstate.Mark, others int) string {
	said := make([]string, len(marks))
	for i, m := range marks {
		kind, was := "label", "was missing"
		if m.Annotation {
			kind = "annotation"
		}
		if m.Have != "" {
			was = "was " + m.Have
		}
		is := "is gone again"
		if m.Want != "" {
			is = "is " + m.Want + " again"
		}
		said[i] = fmt.Sprintf("%s %s %s and %s", kind, m.Key, was, is)
	}
	beside := ""
	if others > 0 {
		beside = fmt.Sprintf(" So it was on %d more.", others)
	}
	return text.ClipLine(fmt.Sprintf("Worker %d's pod: %s.%s Tideline knows its workers by these keys: write others to mark pods "+
		"of your own.", worker, strings.Join(said, ", "), beside), statuspace.MessageLimit)
}
