package doctor

import (
	"fmt"
	"io"

	"github.com/tideline-io/tideline/internal/platform/text"
)

// Print writes the findings, one screen, and returns how many are wrong.
func Print(w io.Writer, findings []Finding) (wrong int, err error) {
	for _, f := range findings {
		mark := "ok    "
		if !f.OK {
			mark = "WRONG "
			wrong++
		}
		if _, err := fmt.Fprintln(w, mark+text.Line(f.What)); err != nil {
			return wrong, err
		}
		if f.Do != "" {
			if _, err := fmt.Fprintln(w, "      -> "+text.Line(f.Do)); err != nil {
				return wrong, err
			}
		}
		if _, err := io.WriteString(w, f.Manifest); err != nil {
			return wrong, err
		}
	}
	if wrong == 0 {
		_, err = fmt.Fprintln(w, "\nThe cluster is set up for Tideline.")
	} else {
		_, err = fmt.Fprintf(w, "\n%d of %d checks found something to mend.\n", wrong, len(findings))
	}
	return wrong, err
}
