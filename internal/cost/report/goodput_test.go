package report

import (
	"encoding/json"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/shopspring/decimal"

	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/test/testutil/week"
)

// reporting is a week in which all tasks but one in ten report their progress, in queues with hostile names.
func reporting() cost.Report {
	r := week.Report()
	for dimension, rows := range r.By {
		r.By[dimension] = append([]cost.Row(nil), rows...)
		for i := range r.By[dimension] {
			if i%10 != 9 {
				r.By[dimension][i].Goodput = cost.Goodput{
					Held: decimal.NewFromInt(int64(1000 + i)), Kept: decimal.NewFromInt(800), Lost: decimal.NewFromInt(150),
				}
			}
		}
	}
	r.Total.Goodput = cost.Goodput{
		Held: decimal.NewFromInt(50_000), Kept: decimal.NewFromInt(40_000), Lost: decimal.NewFromInt(7000),
	}
	for i := range 30 {
		r.Queues = append(r.Queues, cost.Queue{Name: fmt.Sprintf("=queue<b>%d", i), Goodput: cost.Goodput{
			Held: decimal.NewFromInt(200), Kept: decimal.NewFromInt(int64(100 + i)), Lost: decimal.NewFromInt(50),
		}})
	}
	return r
}

func TestThePageSaysWhatBecameSteps(t *testing.T) {
	g := NewWithT(t)
	root := parse(t, pageOf(g, reporting(), Options{Name: "weekly", Top: 3}))
	g.Expect(rows(byID(t, root, "goodput-queue"))).To(HaveExactElements(
		[]string{"=queue<b>0", "50 %", "50.0"}, []string{"=queue<b>1", "50 %", "50.0"}, []string{"=queue<b>2", "51 %", "50.0"},
		[]string{"the other 27", "58 %", "1350.0"}, []string{"all", "57 %", "1500.0"}))
	tasks := rows(byID(t, root, "goodput-task"))
	g.Expect(tasks).To(HaveLen(6), "no more than are asked for")
	g.Expect(tasks[0][1:]).To(Equal([]string{"76 %", "150.0"}))
	g.Expect(tasks[4]).To(Equal([]string{"5 without progress", "unknown", "unknown"}))

	silent := parse(t, pageOf(g, week.Report(), Options{Name: "weekly"}))
	g.Expect(read(all(silent, "body")[0])).NotTo(ContainSubstring("GPU time that became steps"))
}

func TestAPersonSeesTheirOwnGoodput(t *testing.T) {
	g := NewWithT(t)
	r, _ := applyOptions(reporting(), Options{Person: "okafor"})
	g.Expect(r.Queues).To(BeEmpty(), "queues are of others too")
	g.Expect(r.Total.Goodput.KeptShare()).To(Equal(cost.Ratio{Value: 0.8, Known: true}))
}

func TestProgramsReadGoodput(t *testing.T) {
	g := NewWithT(t)
	write := func(_ cost.Report, o Options) ([]byte, error) { return CSV(reporting(), o) }
	list := records(g, write, Options{Name: "weekly"})
	g.Expect(list[0]).To(And(HaveKeyWithValue("goodput", "0.8000"), HaveKeyWithValue("progress_gpu_hours", "1000.000"),
		HaveKeyWithValue("kept_gpu_hours", "800.000"), HaveKeyWithValue("lost_gpu_hours", "150.000")))
	g.Expect(list[9]).To(And(HaveKeyWithValue("goodput", ""), HaveKeyWithValue("kept_gpu_hours", "")), "it is unknown, and not 0")
	g.Expect(list[len(list)-30]).To(And(HaveKeyWithValue("dimension", "queue"), HaveKeyWithValue("name", "'=queue<b>0"),
		HaveKeyWithValue("cost", ""), HaveKeyWithValue("goodput", "0.5000")))

	content, err := JSON(reporting(), Options{Name: "weekly"})
	g.Expect(err).NotTo(HaveOccurred())
	var d struct {
		Rows   []map[string]any
		Queues []map[string]any
	}
	g.Expect(json.Unmarshal(content, &d)).To(Succeed())
	g.Expect(d.Rows[0]["progress"]).To(Equal(map[string]any{
		"goodput": 0.8, "heldGPUHours": "1000.000", "keptGPUHours": "800.000", "lostGPUHours": "150.000",
	}))
	g.Expect(d.Rows[9]).To(HaveKeyWithValue("progress", BeNil()))
	g.Expect(d.Queues).To(HaveLen(30))
}
