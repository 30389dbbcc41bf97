package capacity

import (
	"fmt"
	"testing"
	"time"
)

// The subject of both benchmarks is a queue of 500 waiting gangs of 20 shapes on 1,000 full nodes.
const benchNodes, benchGangs = 1000, 500

func benchNode(i int) Node {
	n := nodeOf(fmt.Sprintf("n%03d", i), 8)
	n.Labels = map[string]string{"gpu": "a100", "zone": string(rune('a' + i%3))}
	return n
}

// benchDocket has gangs of that many workers and up to 19 more, which have all starved.
func benchDocket(workers int32, edit func(*Gang)) Docket {
	var waiting []*Gang
	for i := range benchGangs {
		g := named(fmt.Sprintf("w%03d", i), workers+int32(i%20), time.Duration(i)*time.Second)
		g.Shape = Shape{Requests: Amounts{gpu: int64(1 + i%4)}, NodeSelector: map[string]string{"gpu": "a100"}}
		edit(g)
		waiting = append(waiting, g)
	}
	return docket(waiting...)
}

// BenchmarkJudge has surplus on half of every node, enough for whoever is first in the line.
func BenchmarkJudge(b *testing.B) {
	s := Snapshot{Queues: []Queue{{Name: "default"}}}
	for i := range benchNodes {
		n := benchNode(i)
		s.Nodes = append(s.Nodes, n)
		s.Pods = append(s.Pods, used(n.Name, 4), surplus(n.Name, "x", int32(2*i), 2), surplus(n.Name, "x", int32(2*i+1), 2))
	}
	d := benchDocket(2, func(*Gang) {})
	b.ReportAllocs()
	for b.Loop() {
		New(s).Judge(d, born)
	}
}

// BenchmarkJudgePreempting has 500 running gangs of eight workers, of which two are surplus, on half of every node; the rest is
// held by others. Every waiting gang preempts the tier of half of them. In the worst cases no gang of the line can be
// served, so that each is judged with everybody gone; in the other all but the last are too large, and it takes nearly all
// whom it may.
func BenchmarkJudgePreempting(b *testing.B) {
	for _, c := range []struct {
		name string
		last int32
		edit func(*Gang)
		// leaving is every which pod leaves; 0 for none.
		leaving int
	}{
		{name: "none can be served", last: 1500},
		{name: "none can be served, worker 0 is of another shape", last: 1500, edit: func(g *Gang) {
			g.Apart = []Shape{{Requests: Amounts{gpu: 2}}}
		}},
		{name: "none can be served, and room is on its way", last: 1500, leaving: 20},
		{name: "the last is served by many", last: 900},
	} {
		s := preemptingScene()
		for i := range s.Pods {
			s.Pods[i].Leaving = c.leaving > 0 && i%c.leaving == 0
		}
		d := benchDocket(1500, func(g *Gang) {
			g.TierName, g.Preempts = "high", []string{"low"}
			if c.edit != nil {
				c.edit(g)
			}
		})
		last := d.Waiting[0] // The youngest.
		last.Workers, last.Shape.Requests = c.last, Amounts{gpu: 2}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				New(s).Judge(d, born)
			}
		})
	}
}

func preemptingScene() Snapshot {
	s := Snapshot{Queues: []Queue{{Name: "default"}}}
	for i := range benchNodes {
		n := benchNode(i)
		s.Nodes = append(s.Nodes, n)
		s.Pods = append(s.Pods, used(n.Name, 4))
	}
	for j := range benchNodes / 2 {
		r := Running{Job: job(fmt.Sprintf("r%03d", j)), Queue: "default", Tier: "mid", Priority: 2,
			Created: born.Add(-time.Duration(j) * time.Hour)}
		if j%2 == 0 {
			r.Tier, r.Priority = "low", 1
		}
		s.Running = append(s.Running, r)
		for i := range 8 {
			node := s.Nodes[2*j+i/4].Name
			p := used(node, 1)
			if i >= 6 {
				p = surplus(node, r.Job.Name, int32(i), 1)
				p.Surplus.Job, p.Surplus.Created = r.Job, r.Created
			}
			p.Job = r.Job
			s.Pods = append(s.Pods, p)
		}
	}
	return s
}

// BenchmarkResume has half of the running gangs preempted, while the line waits for the room of the others.
func BenchmarkResume(b *testing.B) {
	s := preemptingScene()
	s.Running = nil
	waiting := benchDocket(1500, func(g *Gang) { g.TierName, g.Preempts = "high", []string{"low"} }).Waiting
	var preempted []*Gang
	for i := range 250 {
		g := named(fmt.Sprintf("p%03d", i), 6, time.Duration(i)*time.Hour)
		g.TierName = "low"
		preempted = append(preempted, g)
	}
	b.ReportAllocs()
	for b.Loop() {
		New(s).ChooseResumed(preempted, waiting)
	}
}

// BenchmarkSteps has jobs that grow by four or eight workers on half of every node, and a gang that needs many of them.
func BenchmarkSteps(b *testing.B) {
	for _, workers := range []int32{4, 50, 500} {
		s := Snapshot{Queues: []Queue{{Name: "default"}}}
		for i := range benchNodes {
			n := benchNode(i)
			s.Nodes, s.Pods = append(s.Nodes, n), append(s.Pods, used(n.Name, 4))
			for j := range 4 {
				p := surplus(n.Name, fmt.Sprintf("j%02d", (4*i+j*j)%100), int32(4*i+j), 1)
				p.Surplus.Step = int32(4 + i%2*4)
				s.Pods = append(s.Pods, p)
			}
		}
		b.Run(fmt.Sprintf("%d workers", workers), func(b *testing.B) {
			for b.Loop() {
				if len(New(s).FindVictims(gangOf(workers, 2), anybody)) == 0 {
					b.Fatal("nothing leaves")
				}
			}
		})
	}
}
