package ledger

import (
	"encoding/csv"
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestExport(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		record(ctx, g, l,
			stay("b", "14 22:00:00", "15 01:00:00", finally(Lost), uncertain, func(s *Stay) { s.Resources["memory"] = 512 }),
			stay("a", "15 23:00:00", "16 01:00:00", by("bob"), func(s *Stay) { s.Resources = Resources{"cpu": 1} }))
		var out strings.Builder
		g.Expect(l.Export(ctx, &out, at("14 23:00:00"), at("15 23:00:10"))).To(Succeed())
		g.Expect(out.String()).To(Equal(`day,pod_uid,namespace,name,node,profile,queue,user,tier,kind,task,run,role,model,` +
			`begin,end,seconds,outcome,uncertain,cpu (1/1000),memory (MiB),nvidia.com/gpu (1/1000)
2026-11-14,b,ads,ctr-b,n1,ads,ads,alice,exploratory,ElasticTrainingJob,ctr,1,core,A100,` +
			`2026-11-14T23:00:00Z,2026-11-15T00:00:00Z,3600,,false,2000,512,1000
2026-11-15,a,ads,ctr-a,n1,ads,ads,bob,exploratory,ElasticTrainingJob,ctr,1,core,A100,` +
			`2026-11-15T23:00:00Z,2026-11-15T23:00:10Z,10,,false,1,0,0
2026-11-15,b,ads,ctr-b,n1,ads,ads,alice,exploratory,ElasticTrainingJob,ctr,1,core,A100,` +
			`2026-11-15T00:00:00Z,2026-11-15T01:00:00Z,3600,Lost,true,2000,512,1000
`))
	})
}

// What a user is called is calculated by no spreadsheet.
func TestExportIsHarmless(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		names := []string{`=HYPERLINK("http://evil","x")`, "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "a=b", "a,\"b\"\nc", ""}
		for i, name := range names {
			record(ctx, g, l, stay(string(rune('a'+i)), "14 22:00:00", "14 22:00:01", by(name), func(s *Stay) {
				s.Name, s.Node, s.Run, s.Namespace, s.Task, s.Outcome = name, name, name, name, name, Outcome(name)
				s.Resources = Resources{"=cmd": 1}
				s.Final = true
			}))
		}
		var out strings.Builder
		g.Expect(l.Export(ctx, &out, at("14 00:00:00"), at("15 00:00:00"))).To(Succeed())
		rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(rows).To(HaveLen(1 + len(names)))
		for i, row := range rows[1:] {
			want := names[i]
			if i < 7 {
				want = "'" + want
			}
			for _, column := range []int{2, 3, 4, 7, 10, 11, 17} {
				g.Expect(row[column]).To(Equal(strings.ReplaceAll(want, "\r\n", "\n")), "%s of %q", rows[0][column], names[i])
			}
		}
		g.Expect(rows[0]).To(ContainElement("'=cmd (1/1000)"))
	})
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("the disk of who asked is full")

func TestExportThatIsNotRead(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		record(t.Context(), g, l, stay("a", "14 22:00:00", "14 23:00:00"))
		err := l.Export(t.Context(), full{}, at("14 00:00:00"), at("15 00:00:00"))
		g.Expect(err).To(MatchError(errFull))
		g.Expect(err).NotTo(Or(MatchError(ErrUnavailable), MatchError(ErrUnusable)))
	})
}
