package week

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

const (
	gpu       = "nvidia.com/gpu"
	wholeWeek = 7 * 24 * time.Hour
	// capacity is how many accelerators the cluster has.
	capacity = 192
)

// prices are what things cost in it.
const prices = `
currency: CNY
prices:
- validFrom: "2026-01-01"
  cpuCoreHour: "0.22"
  memoryGiBHour: "0.03"
  accelerators:
  - {resource: nvidia.com/gpu, hourly: "12.50", surplusDiscount: "0.40"}
  - {resource: nvidia.com/gpu, model: H100, hourly: "29.00", surplusDiscount: "0.40"}
`

// work is what somebody runs again and again.
type work struct {
	team, user, kind, task string
	tier                   string
	// core and surplus are pods of a gang, each of which has so many accelerators, processors and GiB.
	core, surplus    int
	model            string
	gpus, cores, gib int64
	// runs a week, which are so many hours long in the mean, and by which share there are more of them each week.
	runs  int
	hours float64
	grows float64
	// busy is the share of the time in which accelerators are in use; cpu and memory are what is used of what is requested.
	busy, cpu, memory float64
	// fails is the share of runs that fail.
	fails float64
}

const (
	training = v1beta1.ElasticTrainingJobKind
	merging  = v1beta1.MergeJobKind
)

// works are those of the cluster: most use what they ask for, one forgot an experiment, one asks for far more processors than it
// needs, notebooks are nobody's, and one user is called what would do harm.
var works = []work{
	{"ads", "chen", training, "ctr", "main-traffic", 4, 8, "", 1, 8, 64, 14, 9, .03, .84, .71, .66, .03},
	{"ads", "chen", training, "ctr-calibration", "small-traffic", 2, 0, "", 1, 4, 32, 28, 2, .02, .63, .55, .5, .05},
	{"ads", "liu.wei", training, "ctr-large", "main-traffic", 4, 0, "H100", 4, 48, 384, 3, 40, 0, .77, .62, .58, .1},
	{"ads", "alice", training, "ab-probe", "exploratory", 1, 3, "", 1, 8, 64, 35, 1.5, .1, .36, .4, .35, .28},
	{"ads", "tomas", training, "embedding-refresh", "small-traffic", 4, 2, "", 1, 64, 256, 7, 11, .02, .58, .07, .12, .05},
	{"ads", "chen", merging, "ctr-merge", "main-traffic", 2, 0, "", 1, 16, 128, 42, .6, .03, .74, .5, .6, .02},
	{"ranking", "bob", training, "recall-two-tower", "main-traffic", 4, 4, "", 2, 16, 128, 10, 12, .01, .88, .8, .7, .02},
	{"ranking", "zhang.min", training, "ranker-v3", "small-traffic", 4, 4, "", 2, 16, 96, 8, 16, .08, .69, .5, .6, .06},
	{"ranking", "ingrid", training, "ranker-distill", "exploratory", 2, 6, "", 1, 8, 64, 12, 7, -.04, .41, .3, .4, .15},
	{"speech", "maria", training, "asr-conformer", "main-traffic", 8, 4, "H100", 2, 24, 192, 3, 36, .02, .81, .7, .7, .08},
	{"speech", "sun.li", training, "tts-finetune", "exploratory", 2, 2, "", 1, 8, 64, 16, 5, 0, .52, .4, .5, .12},
	{"speech", "maria", merging, "asr-merge", "small-traffic", 2, 0, "", 1, 16, 128, 21, .9, .02, .7, .5, .6, .02},
	{"vision", "okafor", training, "ocr-finetune", "exploratory", 2, 4, "", 1, 8, 64, 18, 6, .03, .66, .5, .5, .1},
	{"vision", "yuki", training, "vit-debug", "exploratory", 1, 0, "", 8, 96, 512, 1, 160, 0, .01, .01, .05, 0},
	{"vision", "dmitri", training, "video-tagging-pretrain", "main-traffic", 8, 8, "H100", 1, 16, 160, 2, 60, .04, .79, .6, .7, .1},
	{"vision", "fatima", training, "segmentation", "small-traffic", 4, 4, "", 1, 12, 96, 9, 10, .05, .61, .5, .5, .07},
	{"vision", "<script>x()</script>", training, `=HYPERLINK("//x")`, "exploratory", 1, 3, "", 2, 8, 64, 14, 8, 0, .5, .4, .4, .1},
	{"", "legacy-batch", "Job", "nightly-export", "", 2, 0, "", 2, 16, 128, 7, 3, 0, 0, 0, 0, .02},
	{"", "", "StatefulSet", "jupyter", "", 1, 0, "", 4, 32, 256, 1, 166, 0, 0, 0, 0, 0},
}

func (w *work) owner() cost.Owner {
	o := cost.Owner{Team: w.team, User: w.user, Namespace: w.team, Kind: w.kind, Task: w.task}
	if o.Namespace == "" {
		o.Namespace = "default"
	}
	return o
}

func (w *work) resources() ledger.Resources {
	return ledger.Resources{gpu: 1000 * w.gpus, "cpu": 1000 * w.cores, "memory": w.gib << 10}
}

// simulator makes up all that happens in some weeks, as the operator would have recorded it.
type simulator struct {
	random  *rand.Rand
	now     time.Time
	runs    int
	entries ledger.Entries
	losses  []cost.Loss
	waits   []begun
}

// begun is a wait that ended at a time.
type begun struct {
	cost.Wait
	at time.Time
}

// simulate has the cluster work for some weeks until now.
func simulate(now time.Time, weeks int) *simulator {
	s := &simulator{random: rand.New(rand.NewPCG(6, 2026)), now: now}
	for i := range works {
		var spans []run
		for week := range weeks {
			from := now.Add(-time.Duration(weeks-week) * wholeWeek)
			spans = append(spans, s.week(&works[i], from, week)...)
		}
		if works[i].busy > 0 {
			s.see(&works[i], spans, now.Add(-time.Duration(weeks)*wholeWeek))
		}
	}
	s.measure(now.Add(-time.Duration(weeks) * wholeWeek))
	return s
}

// run is when one was.
type run struct{ begin, end time.Time }

// week has somebody work for a week.
func (s *simulator) week(of *work, from time.Time, week int) []run {
	var runs []run
	n := int(float64(of.runs)*(1+of.grows*float64(week)) + s.random.Float64())
	for range n {
		begin := from.Add(time.Duration(s.random.Float64() * float64(wholeWeek)))
		length := of.hours * (0.7 + 0.6*s.random.Float64())
		if of.hours > 100 {
			begin, length = from, 168 // it was there all the time
		}
		runs = append(runs, s.run(of, begin.Truncate(time.Second), length))
	}
	return runs
}

// ending is how a run ends, after so many hours, and what of its work is lost: to nobody, or to whom it made room for.
type ending struct {
	outcome ledger.Outcome
	hours   float64
	lost    time.Duration
	roomFor *cost.Owner
}

// end draws how a run ends that would last so many hours: well, badly, for another one, or because somebody had enough of it.
func (s *simulator) end(of *work, hours float64) ending {
	e := ending{outcome: ledger.Succeeded, hours: hours}
	switch chance := s.random.Float64(); {
	case chance < of.fails:
		e.outcome, e.lost = ledger.Failed, time.Duration(5+s.random.IntN(55))*time.Minute
	case of.tier == "exploratory" && chance > 0.93:
		first := works[s.random.IntN(3)].owner()
		e.outcome, e.lost, e.roomFor = ledger.Deleted, time.Duration(2+s.random.IntN(20))*time.Minute, &first
	case chance > 0.9 && of.kind == training:
		e.outcome = ledger.Deleted
	default:
		return e
	}
	e.hours *= s.random.Float64()
	return e
}

// run has a gang wait, run and end.
func (s *simulator) run(of *work, begin time.Time, hours float64) run {
	e := s.end(of, hours)
	at := run{begin, begin.Add(time.Duration(e.hours*3600+60) * time.Second)}
	final := !at.end.After(s.now)
	if !final {
		at.end, e.lost = s.now, 0
	}
	s.runs++
	loss := cost.Loss{Of: of.owner(), For: e.roomFor}
	for i := range of.core + of.surplus {
		role, there := v1beta1.PartCore, at
		if i >= of.core {
			role = v1beta1.PartSurplus
			there.begin = begin.Add(time.Duration(s.random.Float64() * float64(at.end.Sub(begin)))) // when there was room for it
		}
		s.stay(of, i, role, there, final, e.outcome)
		since := at.end.Add(-e.lost)
		if since.Before(there.begin) {
			since = there.begin
		}
		loss.Pods = append(loss.Pods, cost.LostPods{
			Number: 1, Since: since, Until: at.end, Surplus: role == v1beta1.PartSurplus, Model: of.model,
			Resources: cost.Resources(of.resources()),
		})
	}
	if e.lost > 0 {
		s.losses = append(s.losses, loss)
	}
	if of.kind == training {
		s.wait(of, begin)
	}
	return at
}

// wait has a gang wait for its place until a time: minutes, and at times for hours.
func (s *simulator) wait(of *work, until time.Time) {
	waited := time.Duration(s.random.ExpFloat64() * float64(5*time.Minute))
	if of.tier == "exploratory" && s.random.IntN(12) == 0 {
		waited += time.Duration(s.random.Float64() * float64(9*time.Hour))
	}
	job := of.owner().Namespace + "/" + of.task
	s.waits = append(s.waits, begun{cost.Wait{Job: job, Time: waited.Truncate(time.Second)}, until})
}

// stay has a pod of the last run be there.
func (s *simulator) stay(of *work, index int, role string, at run, final bool, outcome ledger.Outcome) {
	o, name := of.owner(), fmt.Sprintf("run-%d", s.runs)
	stay := ledger.Stay{
		Pod: ledger.Pod{
			UID: fmt.Sprintf("%s-%d", name, index), Namespace: o.Namespace, Name: fmt.Sprintf("%s-%d", name, index), Node: "node",
			Profile: o.Team, Queue: o.Team, User: o.User, Tier: of.tier, Kind: o.Kind, Task: o.Task, Run: name, Role: role,
			Model: of.model, Resources: of.resources(),
		},
		Begin: at.begin, End: at.end, Final: final,
	}
	if final {
		stay.Outcome = outcome
		if s.random.IntN(150) == 0 {
			stay.Outcome, stay.Uncertain = ledger.Lost, true // with its node, and nobody saw when
		}
	}
	s.entries.Stays = append(s.entries.Stays, stay)
}

// see has Prometheus say of each day what was used, but for one day on which it was down.
func (s *simulator) see(of *work, runs []run, from time.Time) {
	down := s.now.Add(-5 * 24 * time.Hour).Truncate(24 * time.Hour)
	for day := from.UTC().Truncate(24 * time.Hour); day.Before(s.now); day = day.AddDate(0, 0, 1) {
		var ran time.Duration
		for _, r := range runs {
			begin, end := r.begin, r.end
			if begin.Before(day) {
				begin = day
			}
			if next := day.AddDate(0, 0, 1); end.After(next) {
				end = next
			}
			ran += max(end.Sub(begin), 0)
		}
		if ran < time.Minute || day.Equal(down) {
			continue
		}
		for _, role := range []sizing.Role{sizing.Master, sizing.Worker} {
			s.seeRole(of, role, day, min(int64(ran/time.Second), 86400))
		}
	}
}

func (s *simulator) seeRole(of *work, role sizing.Role, day time.Time, seconds int64) {
	o := of.owner()
	part := ledger.Part{Namespace: o.Namespace, Kind: o.Kind, Task: o.Task, Role: string(role), Container: "pytorch"}
	about := func(v float64) float64 { return v * (0.9 + 0.2*s.random.Float64()) }
	u := sizing.Usage{
		RunSeconds: seconds, SeenSeconds: seconds, EvidenceSeconds: 86400,
		MemoryPeak: int64(about(of.memory) * float64(of.gib<<30)),
	}
	for range seconds/300 + 1 {
		u.CPU.Add(about(of.cpu)*float64(of.cores), 1)
	}
	s.entries.PartDays = append(s.entries.PartDays, partDay(part, day, u))
	part.Container = ""
	held := seconds * of.gpus
	active := min(about(of.busy), 1) * float64(held) * 1000
	s.entries.PartDays = append(s.entries.PartDays, partDay(part, day, sizing.Usage{
		RunSeconds: seconds, SeenSeconds: seconds,
		Accelerators: sizing.AcceleratorUsage{HeldSeconds: held, ActiveMilliseconds: int64(active)},
	}))
}

// measure has the operator look every hour at how much is free. What is left when little is free lies on many nodes.
func (s *simulator) measure(from time.Time) {
	for at := from; at.Before(s.now); at = at.Add(time.Hour) {
		free := float64(capacity)
		for i := range s.entries.Stays {
			if stay := &s.entries.Stays[i]; !stay.Begin.After(at) && stay.End.After(at) {
				free -= float64(stay.Resources[gpu]) / 1000
			}
		}
		free = max(free, 0)
		s.entries.Rooms = append(s.entries.Rooms, ledger.FreeRoom{
			At: at, Free: free, Unusable: 0.15 + 0.5*(1-free/capacity)*s.random.Float64(), Gangs: 40,
		})
	}
}
