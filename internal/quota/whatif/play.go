package whatif

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/ownership"
	"github.com/tideline-io/tideline/internal/quota"
	"github.com/tideline-io/tideline/internal/quota/admission"
)

// Cluster is where the past is played again: as it is today.
type Cluster struct {
	Config     *config.Configuration
	Nodes      []capacity.Node
	Namespaces []quota.Namespace
	Queues     []gang.QueueInfo
}

// Outcome is what became of the trainings of a team.
type Outcome struct {
	// Waits are how long attempts waited that came in the time and began to run, ascending. True are the waits that they really had.
	Waits, True []time.Duration
	// Unstarted are how long those had waited by the end that came and did not begin to run, ascending.
	Unstarted []time.Duration
	// Began is how many ran already when the time began.
	Began int
	// DeviceHours is for how long cores held accelerators, in hours of one.
	DeviceHours float64
	// Stopped is how often one was stopped whole for another.
	Stopped int
}

// PlayPast plays the past again under these profiles, and returns what became of each team, by the name of its profile; empty for
// trainings of namespaces without one. Limits on what users, jobs and queues hold, tiers, guarantees and capabilities decide as
// they do in the operator; budgets, the order within a team, approvals and surplus are left out. stop ends it early, and then it
// returns nil.
func PlayPast(past *Past, c *Cluster, profiles []*v1beta1.ResourceQuotaProfile, stop func() bool) map[string]*Outcome {
	p := newReplay(past, c, profiles)
	fates, whole := p.model().ReplayPast(capacity.Past{
		Gangs: p.gangs, Pods: p.pods, End: past.To.Sub(past.From), Admit: p.admit, Stop: stop,
	})
	if !whole {
		return nil
	}
	return p.outcomes(fates)
}

// replay is a past, set up to be played.
type replay struct {
	past *Past
	c    *Cluster
	// has are the resources that nodes have.
	has      map[corev1.ResourceName]bool
	profiles []*v1beta1.ResourceQuotaProfile
	index    *quota.Index
	// byName has the profiles, and byNamespace those that were looked up; labels are of the namespaces.
	byName, byNamespace map[string]*v1beta1.ResourceQuotaProfile
	labels              map[string]map[string]string
	// limits are those of profiles that limit something.
	limits map[string]admission.Limits
	// gangs, claimants and teams are in the order of the past's runs, and pods in that of its others. A run without a profile has
	// no team.
	gangs     []capacity.PastGang
	claimants []admission.Claimant
	teams     []*v1beta1.ResourceQuotaProfile
	pods      []capacity.PastPod
	// othersOf are the pods of no training of teams with limits.
	othersOf map[string][]*Other
	// last is the latest attempt of each training so far.
	last map[types.NamespacedName]int
}

func newReplay(past *Past, c *Cluster, profiles []*v1beta1.ResourceQuotaProfile) *replay {
	p := &replay{
		past: past, c: c, has: map[corev1.ResourceName]bool{}, index: quota.NewIndex(profiles), profiles: profiles,
		byName: map[string]*v1beta1.ResourceQuotaProfile{}, byNamespace: map[string]*v1beta1.ResourceQuotaProfile{},
		labels: map[string]map[string]string{}, limits: map[string]admission.Limits{}, othersOf: map[string][]*Other{},
		last: map[types.NamespacedName]int{},
	}
	for i := range c.Nodes {
		for name := range c.Nodes[i].Allocatable {
			p.has[name] = true
		}
	}
	for _, n := range c.Namespaces {
		p.labels[n.Name] = n.Labels
	}
	for _, profile := range profiles {
		p.byName[profile.Name] = profile
		limits := admission.LimitsOf(profile)
		limits.Hours, limits.Order = nil, nil
		if limits.HasLimits() {
			p.limits[profile.Name] = limits
		}
	}
	for i := range past.Runs {
		p.addRun(&past.Runs[i])
	}
	for i := range past.Others {
		p.addOther(&past.Others[i])
	}
	return p
}

// teamOf is the profile of a namespace as it is today, else the one that something counted for; nil for none.
func (p *replay) teamOf(namespace, profile string) *v1beta1.ResourceQuotaProfile {
	if of, known := p.byNamespace[namespace]; known {
		return of
	}
	labels, there := p.labels[namespace]
	of := p.byName[profile]
	if there {
		of = p.index.ProfileOf(labels)
	}
	p.byNamespace[namespace] = of
	return of
}

func (p *replay) addRun(r *Run) {
	team, queue := p.teamOf(r.Namespace, r.Profile), r.Queue
	if team != nil {
		queue = team.Name
	}
	name := types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
	tier := p.tierNamed(r.Tier)
	g := capacity.PastGang{
		Gang: capacity.Gang{
			Job: name, Queue: cmp.Or(queue, gang.DefaultQueue), Tier: tier.Priority, TierName: tier.Name, Preempts: tier.Preempts,
			Created: r.Asked, Workers: int32(len(r.Core)),
		},
		Came: r.Came.Sub(p.past.From), Lasts: r.lasts(p.past), Began: r.Began, Priority: tier.Priority,
	}
	of := types.NamespacedName{Namespace: r.Namespace, Name: r.Job}
	if before, known := p.last[of]; known && r.Job != "" {
		g.Follows = &before
	}
	p.last[of] = len(p.gangs)
	g.Shape, g.Apart = p.shapesOf(r)
	p.gangs = append(p.gangs, g)
	p.teams = append(p.teams, team)
	claimant := admission.Claimant{
		Job: admission.Key{NamespacedName: name}, User: r.User, Priority: tier.Priority, Created: r.Asked, Since: r.Asked,
		Model: r.Model, Core: r.core(), InQueue: true,
	}
	if team != nil {
		claimant.Standing = admission.StandingOf(team, ownership.Owner{User: r.User})
	}
	p.claimants = append(p.claimants, claimant)
}

// tierNamed is a tier of the configuration; one without priority for a name that it has no more.
func (p *replay) tierNamed(name string) config.Tier {
	for i := range p.c.Config.Tiers {
		if p.c.Config.Tiers[i].Name == name {
			return p.c.Config.Tiers[i]
		}
	}
	return config.Tier{Name: name}
}

// shapesOf are the shape that most of a run's workers have, and those of the others. They run on the model of accelerator on
// which they ran, and tolerate all: what else they were bound to is not known.
func (p *replay) shapesOf(r *Run) (capacity.Shape, []capacity.Shape) {
	shapeOf := func(worker admission.MilliAmounts) capacity.Shape {
		return capacity.Shape{
			Requests: amountsOn(p.has, worker), NodeSelector: p.selectorOf(worker, r.Model),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		}
	}
	differs := func(worker admission.MilliAmounts) bool { return !maps.Equal(worker, r.Core[0]) }
	if !slices.ContainsFunc(r.Core, differs) {
		return shapeOf(r.Core[0]), nil
	}
	all, count := make([]capacity.Shape, len(r.Core)), map[string]int{}
	keys, most := make([]string, len(r.Core)), ""
	for i, worker := range r.Core {
		all[i] = shapeOf(worker)
		keys[i] = all[i].WorkerKey()
		if count[keys[i]]++; count[keys[i]] > count[most] {
			most = keys[i]
		}
	}
	shape := all[slices.Index(keys, most)]
	var apart []capacity.Shape
	for i := range all {
		if keys[i] != most {
			apart = append(apart, all[i])
		}
	}
	return shape, apart
}

// selectorOf binds a worker to nodes of a model of accelerator.
func (p *replay) selectorOf(worker admission.MilliAmounts, model string) map[string]string {
	if model == "" {
		return nil
	}
	for _, resource := range slices.Sorted(maps.Keys(p.c.Config.Accelerators)) {
		if worker[corev1.ResourceName(resource)] > 0 {
			return map[string]string{p.c.Config.Accelerators[resource]: model}
		}
	}
	return nil
}

func (p *replay) addOther(o *Other) {
	team, queue := p.teamOf(o.Namespace, o.Profile), o.Queue
	if team != nil && queue != "" {
		queue = team.Name
	}
	p.pods = append(p.pods, capacity.PastPod{
		Pod:  capacity.Pod{Node: o.Node, Requests: amountsOn(p.has, o.Holds), Queue: queue},
		From: o.Begin.Sub(p.past.From), To: o.End.Sub(p.past.From),
	})
	if team != nil && p.limits[team.Name].HasLimits() {
		p.othersOf[team.Name] = append(p.othersOf[team.Name], o)
	}
}

// model is the empty cluster, with its Queues as the profiles have them.
func (p *replay) model() *capacity.Model {
	there, total := map[string]capacity.Queue{}, capacity.Amounts{}
	for i := range p.c.Nodes {
		for name, amount := range p.c.Nodes[i].Allocatable {
			total[name] += amount
		}
	}
	// A Queue that is gone limited nothing that is known.
	for i := range p.gangs {
		there[p.gangs[i].Queue] = capacity.Queue{Name: p.gangs[i].Queue}
	}
	for i := range p.pods {
		if queue := p.pods[i].Queue; queue != "" {
			there[queue] = capacity.Queue{Name: queue}
		}
	}
	for i := range p.c.Queues {
		there[p.c.Queues[i].Name] = queueOf(&p.c.Queues[i].QueueLimits)
	}
	for _, share := range quota.WantedShares(p.profiles, p.c.Queues, total, p.c.Config) {
		there[share.Name] = queueOf(&gang.QueueLimits{
			Name: share.Name, Guarantee: share.Guarantee, Deserved: share.Deserved, Capability: share.Capability,
			Reclaimable: share.Reclaimable,
		})
	}
	s := capacity.Snapshot{Nodes: p.c.Nodes}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		s.Queues = append(s.Queues, there[name])
	}
	return capacity.New(s)
}

func queueOf(q *gang.QueueLimits) capacity.Queue {
	return capacity.Queue{
		Name: q.Name, Guarantee: capacity.AmountsOf(q.Guarantee), Deserved: capacity.AmountsOf(q.Deserved),
		Capability: capacity.AmountsOf(q.Capability), Protected: !q.Reclaimable,
	}
}

// admit lets in whom the limits of the profiles let in.
func (p *replay) admit(at time.Duration, asking, inside []int) []int {
	var admitted []int
	limited := map[string][]admission.Claimant{}
	for _, i := range asking {
		if team := p.teams[i]; team != nil && p.limits[team.Name].HasLimits() {
			c := p.claimants[i]
			c.Asks = true
			limited[team.Name] = append(limited[team.Name], c)
			continue
		}
		admitted = append(admitted, i)
	}
	if len(limited) == 0 {
		return admitted
	}
	for _, i := range inside {
		if team := p.teams[i]; team != nil && limited[team.Name] != nil {
			limited[team.Name] = append(limited[team.Name], p.claimants[i])
		}
	}
	turns := map[admission.Key]bool{}
	for _, name := range slices.Sorted(maps.Keys(limited)) {
		decided, _ := admission.AdmitJobs(p.limits[name], limited[name], p.usedBy(name, at), nil, p.past.From.Add(at))
		for job, turn := range decided {
			turns[job] = turn.Admitted
		}
	}
	for _, i := range asking {
		if team := p.teams[i]; team != nil && limited[team.Name] != nil && turns[p.claimants[i].Job] {
			admitted = append(admitted, i)
		}
	}
	return admitted
}

// usedBy is what pods of no training hold at a time of a team's room.
func (p *replay) usedBy(team string, at time.Duration) []admission.Use {
	var used []admission.Use
	moment := p.past.From.Add(at)
	for _, o := range p.othersOf[team] {
		if o.Begin.After(moment) {
			break // They are in the order in which they began.
		}
		if o.End.After(moment) {
			used = append(used, admission.Use{
				User: o.User, Model: o.Model, Holds: o.Holds, InQueue: o.Queue != "", Foreign: !o.Merging,
			})
		}
	}
	return used
}

// outcomes adds up what became of the gangs.
func (p *replay) outcomes(fates []capacity.Fate) map[string]*Outcome {
	all := map[string]*Outcome{}
	for i := range fates {
		team, r, fate := "", &p.past.Runs[i], &fates[i]
		if p.teams[i] != nil {
			team = p.teams[i].Name
		}
		if all[team] == nil {
			all[team] = &Outcome{}
		}
		o := all[team]
		o.Stopped += fate.Stopped
		o.DeviceHours += fate.Held.Hours() * float64(p.devicesOf(r)) / 1000
		if r.Began {
			o.Began++
			continue
		}
		if r.Known {
			o.True = append(o.True, r.Started.Sub(r.Came))
		}
		if fate.Placed {
			o.Waits = append(o.Waits, fate.Waited)
		} else {
			o.Unstarted = append(o.Unstarted, fate.Waited)
		}
	}
	for _, o := range all {
		slices.Sort(o.Waits)
		slices.Sort(o.True)
		slices.Sort(o.Unstarted)
	}
	return all
}

// devicesOf counts the accelerators of a run, in thousandths.
func (p *replay) devicesOf(r *Run) int64 {
	n, core := int64(0), r.core()
	for _, name := range p.c.Config.CountedAccelerators() {
		n += core[corev1.ResourceName(name)]
	}
	return n
}

// ReplaceProfile returns the profiles with one of them as it would be; a new one comes last.
func ReplaceProfile(
	profiles []*v1beta1.ResourceQuotaProfile, changed *v1beta1.ResourceQuotaProfile,
) []*v1beta1.ResourceQuotaProfile {
	all := slices.Clone(profiles)
	at := slices.IndexFunc(all, func(p *v1beta1.ResourceQuotaProfile) bool { return p.Name == changed.Name })
	if at < 0 {
		// A profile that does not exist yet is the youngest.
		young := changed.DeepCopy()
		if young.CreationTimestamp.IsZero() {
			for _, p := range all {
				if !p.CreationTimestamp.Before(&young.CreationTimestamp) {
					young.CreationTimestamp = metav1.NewTime(p.CreationTimestamp.Add(time.Second))
				}
			}
		}
		return append(all, young)
	}
	all[at] = changed
	return all
}
