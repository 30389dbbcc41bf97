package doctor

import (
	"fmt"
	"io"
	"strings"

	"github.com/tideline-io/tideline/internal/platform/text"
)

// PrintFindings writes the findings, one screen, and returns how many are wrong.
func PrintFindings(w io.Writer, findings []Finding) (wrong int, err error) {
	var b strings.Builder
	count := map[Level]int{}
	for _, f := range findings {
		count[f.Level]++
		fmt.Fprintf(&b, "%-5s %s\n", f.Level, text.SingleLine(f.What))
		if f.Do != "" {
			fmt.Fprintf(&b, "      -> %s\n", text.SingleLine(f.Do))
		}
		if f.Run != "" {
			fmt.Fprintf(&b, "      $ %s\n", text.SingleLine(f.Run))
		}
		b.WriteString(f.Manifest)
	}
	b.WriteString("\n")
	if n := count[Warn]; n > 0 {
		fmt.Fprintf(&b, "%d of %d checks gave a warning (WARN): it may be as you want it.\n", n, len(findings))
	}
	if n := count[Unknown]; n > 0 {
		fmt.Fprintf(&b, "%d of %d checks could not be made (?).\n", n, len(findings))
	}
	switch {
	case count[Wrong] > 0:
		fmt.Fprintf(&b, "%d of %d checks found something to mend.\n", count[Wrong], len(findings))
	case count[Unknown] > 0:
		b.WriteString("Apart from that the cluster is set up for Tideline.\n")
	default:
		b.WriteString("The cluster is set up for Tideline.\n")
	}
	_, err = io.WriteString(w, b.String())
	return count[Wrong], err
}
