package collector

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/promquery"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// A notebook was last in use at six on the 21st, and is asked about because it holds GPUs; an application without is not.
func TestNotebooksWithGPUsAreAskedAbout(t *testing.T) {
	w := newFixture(t)
	kind := func(s *ledger.Stay) { s.Kind, s.Run, s.Role = "StatefulSet", "", "" }
	w.record(stay("nb", "21 00:00:00", "22 12:00:00", kind), stay("web", "21 00:00:00", "22 12:00:00", kind, func(s *ledger.Stay) {
		s.Resources = ledger.Resources{"cpu": 2000}
	}))
	_, known := w.IdleTime("ads", "StatefulSet", "nb", at("21 00:00:00"))
	w.Expect(known).To(BeFalse(), "nothing was read yet")
	w.collect = func(
		_ context.Context, day time.Time, stays []promquery.Stay, _ time.Time,
	) (map[sizing.Key]sizing.Usage, error) {
		usage := map[sizing.Key]sizing.Usage{}
		for _, s := range stays {
			w.Expect([]string{s.Task, string(s.Role)}).To(Equal([]string{"nb", "other"}))
			w.Expect(s.Accelerators).To(BeEquivalentTo(1500))
			u := sizing.Usage{RunSeconds: 12 * 3600, SeenSeconds: 12 * 3600, Accelerators: sizing.AcceleratorUsage{
				HeldSeconds: 12 * 3600, LastSeen: day.Add(12 * time.Hour).Unix(), Pod: "nb-0",
			}}
			if day.Day() == 21 {
				u.Accelerators.LastSeen, u.Accelerators.LastBusy = day.Add(24*time.Hour).Unix(), day.Add(6*time.Hour).Unix()
				u.RunSeconds, u.SeenSeconds = 86400, 86400
			}
			usage[sizing.Key{Namespace: s.Namespace, Kind: s.Kind, Task: s.Task, Role: s.Role}] = u
		}
		return usage, nil
	}
	w.pass(turnLength)
	idle, known := w.IdleTime("ads", "StatefulSet", "nb", at("21 00:00:00"))
	w.Expect(known).To(BeTrue())
	w.Expect(idle).To(Equal(30 * time.Hour))
	w.Expect(w.PodIdleTime("ads", "StatefulSet", "nb", "nb-0", at("21 00:00:00"))).To(Equal(30 * time.Hour))
	w.Expect(w.PodIdleTime("ads", "StatefulSet", "nb", "forged", at("21 00:00:00"))).To(BeZero(), "what was seen is not of it")
	idle, _ = w.IdleTime("ads", "StatefulSet", "nb", at("22 10:00:00"))
	w.Expect(idle).To(Equal(2*time.Hour), "its pod is new")
	_, known = w.IdleTime("ads", "StatefulSet", "web", at("21 00:00:00"))
	w.Expect(known).To(BeFalse())
	w.Expect(w.TaskHistory("ads", "StatefulSet", "nb").Usage).To(BeEmpty(), "nobody sizes it")
	asOf, old := w.UsageAsOf()
	w.Expect([]any{asOf, old}).To(Equal([]any{at("22 12:00:05"), false}))
	w.clock = w.clock.AddDate(0, 0, 3)
	last, old := w.UsageAsOf()
	w.Expect([]any{last, old}).To(Equal([]any{asOf, true}), "Prometheus is down, and this is the last that is known")
	idle, known = w.IdleTime("ads", "StatefulSet", "nb", at("21 00:00:00"))
	w.Expect([]any{idle, known}).To(Equal([]any{30 * time.Hour, true}), "it is not lost, and does not grow")
	w.start()
	asOf, old = w.UsageAsOf()
	w.Expect([]any{asOf.IsZero(), old}).To(Equal([]any{true, true}), "an operator that has just started knows nothing yet")
	w.config.Prometheus.URL = ""
	asOf, old = w.UsageAsOf()
	w.Expect([]any{asOf.IsZero(), old}).To(Equal([]any{true, false}), "nobody collects")
	_, known = w.IdleTime("ads", "StatefulSet", "nb", at("21 00:00:00"))
	w.Expect(known).To(BeFalse(), "what is old news is no news")
	w.Expect(w.PodIdleTime("ads", "StatefulSet", "nb", "nb-0", at("21 00:00:00"))).To(BeZero())
}

// A profile may wait for 30 days, whatever window sizing has.
func TestIdleTimeIsKnownForAMonth(t *testing.T) {
	w := newFixture(t)
	var days []ledger.PartDay
	for i := range 40 {
		day := at("22 00:00:00").AddDate(0, 0, -i)
		content, err := json.Marshal(sizing.Usage{RunSeconds: 86400, SeenSeconds: 86400, Accelerators: sizing.AcceleratorUsage{
			HeldSeconds: 86400, LastSeen: day.AddDate(0, 0, 1).Unix(), Pod: "nb-0",
		}})
		w.Expect(err).NotTo(HaveOccurred())
		days = append(days, ledger.PartDay{Day: day, SeenSeconds: 86400, Content: string(content), Part: ledger.Part{
			Namespace: "ads", Kind: "StatefulSet", Task: "nb", Role: string(sizing.Other),
		}})
	}
	w.Expect(w.ledger.RecordEntries(t.Context(), ledger.Entries{PartDays: days})).To(Succeed())
	w.pass(turnLength)
	idle, _ := w.IdleTime("ads", "StatefulSet", "nb", at("22 00:00:00").AddDate(-1, 0, 0))
	w.Expect(idle).To(Equal((31 + 1) * 24 * time.Hour))
	w.Expect(w.PodIdleTime("ads", "StatefulSet", "nb", "nb-0", at("22 00:00:00").AddDate(-1, 0, 0))).To(Equal(idle))
}
