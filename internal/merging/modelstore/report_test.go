package modelstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/merging"
)

var volume = Location{Type: TypeClaim, Bucket: "models", Prefix: "ctr", Increments: "inc/", Full: "full/", Marker: "_SUCCESS"}

// line is one of a report, written some minutes after noon.
func line(name string, minutes int) string {
	return name + " " + noon.Add(time.Duration(minutes)*time.Minute).Format(time.RFC3339) + "\n"
}

func TestReportTellsWhatAVolumeHolds(t *testing.T) {
	g := NewWithT(t)
	report := map[string]string{
		ReportFull:       line("a", 5) + line("b", 20) + line("c", 20),
		ReportIncrements: line("step-001", 1) + line("step-002", 10) + "\n" + line("step-003", 21) + line("x/step-004", 30),
	}
	o, err := ObserveReport(Policy{}, volume, report, Query{Run: "b", Most: 10})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.LastFull).To(Equal(&merging.Full{Name: "c", Time: noon.Add(20 * time.Minute)}), "the newest, and the later by name")
	g.Expect(o.RunComplete).To(BeTrue())
	g.Expect(listed(t, o.Increments.List)).To(Equal([]string{"step-003", "x/step-004"}), "what was written after it")
	g.Expect(o.Increments).To(And(HaveField("Count", 2), HaveField("Listed", 2), HaveField("Last", "x/step-004"),
		HaveField("NewestTime", noon.Add(30*time.Minute))))

	o, err = ObserveReport(Policy{}, volume, report, Query{Known: "c", After: "step-001", Most: 1, Run: "d"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.RunComplete).To(BeFalse())
	g.Expect(o.Increments.Count).To(Equal(3), "by the record, not by time")
	g.Expect(listed(t, o.Increments.List)).To(Equal([]string{"step-002"}))

	o, err = ObserveReport(Policy{}, volume, report, Query{Known: "c", After: "step-003", Most: 10, Window: 3})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.Increments.Count).To(Equal(1), "one waits")
	g.Expect(listed(t, o.Increments.List)).To(Equal([]string{"step-002", "step-003", "x/step-004"}), "and the window has three")

	o, err = ObserveReport(Policy{}, volume, report, Query{Known: "a", After: "step-002", Most: 10, Earlier: []string{"b", "c"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.LastFull).To(HaveField("Name", "a"), "what earlier runs made is older, whatever clocks say")
	g.Expect(listed(t, o.Increments.List)).To(Equal([]string{"step-003", "x/step-004"}))

	o, err = ObserveReport(Policy{}, volume, nil, Query{Most: 10})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o).To(Equal(Observation{}), "an empty report is of an empty volume")
}

func TestReportThatIsWrong(t *testing.T) {
	var many strings.Builder
	for i := range 10_001 {
		many.WriteString(line(fmt.Sprintf("%06d", i), 0))
	}
	for what, c := range map[string]struct{ key, content, says string }{
		"a line without a time": {
			ReportIncrements, "step-1\n", `line 1 of increments is "step-1": write a name, a space and a time`,
		},
		"a name with a space":      {ReportIncrements, "step 1 2026-11-22T00:10:00Z", "and no space in the name"},
		"a time that is none":      {ReportIncrements, line("a", 0) + "b noon", `line 2 of increments has the time "noon"`},
		"names that fall":          {ReportIncrements, line("b", 0) + line("a", 1), `has the name "a" after "b": names must rise`},
		"a name twice":             {ReportIncrements, line("b", 0) + line("b", 1), "names must rise from line to line"},
		"a way out of the folder":  {ReportIncrements, line("../../etc/passwd", 0), `has the name "../../etc/passwd": use`},
		"a path from the root":     {ReportIncrements, line("/etc/passwd", 0), `has the name "/etc/passwd": use`},
		"a long name":              {ReportIncrements, line(strings.Repeat("a", 513), 0), "use at most 512 bytes"},
		"10,001 increments":        {ReportIncrements, many.String(), "increments has more than 10000 lines: keep the newest"},
		"101 full models":          {ReportFull, strings.Repeat(line("a", 0), 101), "full has more than 100 lines: keep the newest"},
		"a full model in a folder": {ReportFull, line("a/b", 0), `line 1 of full has the name "a/b": use`},
	} {
		t.Run(what, func(t *testing.T) {
			g := NewWithT(t)
			report := map[string]string{ReportFull: line("run", 0)}
			report[c.key] = c.content
			o, err := ObserveReport(Policy{}, volume, report, Query{Run: "run", Most: 10})
			var known *Error
			g.Expect(errors.As(err, &known)).To(BeTrue(), "%v", err)
			g.Expect(known.Reason).To(Equal(ReportInvalid))
			g.Expect(err).To(MatchError(ContainSubstring(c.says)))
			g.Expect(o.RunComplete).To(Equal(c.key == ReportIncrements), "a run that is complete stays so")
			g.Expect(len(err.Error())).To(BeNumerically("<", 500), "whatever was written")
		})
	}
}

func TestReportOfAFolderWithinAnother(t *testing.T) {
	l := volume
	l.Full = "inc/full/"
	_, err := ObserveReport(Policy{}, l, nil, Query{})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("neither may be inside the other")))
}

func TestWindowListsTheLastOfAll(t *testing.T) {
	g := NewWithT(t)
	d := newDirectory(t)
	for i := range 7 {
		d.write(fmt.Sprintf("inc/%06d", i+1), i)
	}
	d.full("base", 4)
	o := d.observe(Query{Known: "base", After: "000005", Most: 5000, Window: 4})
	g.Expect(o.Increments.Count).To(Equal(2), "those that wait")
	g.Expect(listed(t, o.Increments.List)).To(Equal([]string{"000004", "000005", "000006", "000007"}))
	g.Expect(o.Increments).To(And(HaveField("First", "000004"), HaveField("Last", "000007"), HaveField("Listed", 4)))
	g.Expect(listed(t, d.observe(Query{Most: 5000, Window: 40}).Increments.List)).To(HaveLen(7), "as many as there are")
}
