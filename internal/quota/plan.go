// Package quota decides what becomes of ResourceQuotaProfiles: whose namespaces are whose, what share of the nodes each profile
// has, and what its Queue says. Plan is its heart, a pure function over all profiles at once.
package quota

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/quota/datasets"
)

// How the nodes are divided, for each resource by itself (shares.go):
//
//	                  what all ready nodes have
//	|-------------------------------------------------------------------------|
//	| other Queues   | fixed shares  | guarantees      | left: divided by     |
//	| (not profiles) | (deserved)    | A     | B       | weight A : weight B  |
//	                                  \___________________________/
//	                   share of A = guarantee of A + its part of what is left, at most its capability
//
// A profile's Queue says its share as deserved. Volcano lets a Queue use more while others are idle, and takes that back by
// reclaim. If guarantees and fixed shares exceed the nodes, nothing is left to divide, and condition Overcommitted says so.

// Observed is all that Plan knows.
type Observed struct {
	Config *config.Configuration
	// Profiles are all there are, in any order.
	Profiles []Profile
	// Namespaces are those of the cluster.
	Namespaces []Namespace
	// Nodes is what all nodes that are ready have for pods.
	Nodes capacity.Amounts
	// Queues are those of Volcano.
	Queues []gang.QueueInfo
	// Gangs counts the PodGroups of each Queue.
	Gangs map[string]int
	// Used is what pods hold on nodes, by namespace.
	Used map[string]capacity.Amounts
	// Jobs counts trainings and merges by namespace.
	Jobs map[string]Jobs
	// Namespace is the operator's own, in which the pods are that hold the room of reservations.
	Namespace string
	// Placeholders are what reservations have, also those of profiles that are gone.
	Placeholders map[ReservationKey]Placeholders
	// Reserved is what such pods hold on nodes, by profile.
	Reserved map[string]capacity.Amounts
	// Holdings are the accelerators that pods hold, and Offers what there is for gangs of each Queue. OffersOld is true for offers
	// that are not of the moment.
	Holdings  []Holding
	Offers    map[string][]v1beta1.AvailableStatus
	OffersOld bool
	// Budgets are what was used of each profile's budgets.
	Budgets map[string][]Budget
	// LedgerVolatile is in one sentence why the ledger goes with the operator's pod; empty if it does not, or that is unknown.
	LedgerVolatile string
	// Guarding is what is known of how the API server refuses pods that are not of Tideline's jobs.
	Guarding Guarding
	// Tasks are the trainings that have the names for which there are reservations.
	Tasks []Task
	// Idle are the tasks of other workloads whose accelerators were seen without use, in any order.
	Idle []IdleTask
	// IdleAsOf is until when their use is known; zero for nothing known. IdleOld is true if newer figures are due.
	IdleAsOf time.Time
	IdleOld  bool
	// Stopping is what is known of how Notebooks are stopped.
	Stopping Stopping
	// VolcanoMissing names the Volcano kinds that the API server does not serve; empty when it serves all.
	VolcanoMissing string
	// DataUses are the trainings that use data of profiles, by namespace.
	DataUses map[string][]datasets.Use
	// DataSpace is how large claims are, of all namespaces and of those names that profiles list.
	DataSpace map[types.NamespacedName]resource.Quantity
	// Waits are those of the decision before this one.
	Waits Waits
}

// Holding is the accelerators that a pod holds, in thousandths.
type Holding struct {
	Namespace string
	// Profile that it holds room for, as a reservation; empty for every other pod, which is of the profile of its namespace.
	Profile string
	// Tier of its priority, and User who owns it; empty for none.
	Tier, User   string
	Accelerators int64
}

// Profile is a profile, and what is known of it alone.
type Profile struct {
	Object *v1beta1.ResourceQuotaProfile
	// Invalid is the message with which admission would refuse the spec; empty for a valid one.
	Invalid string
	// Refused is the error of Volcano or the API server at the last write of the Queue for this generation; empty for none.
	Refused string
	// RefusedAt is the time of that error.
	RefusedAt time.Time
	// GuardRefused is the error of the API server at the last write of the guard; empty for none.
	GuardRefused string
	// Stopped are Notebooks that were stopped since the operator started; the status may not have all of them yet.
	Stopped []v1beta1.StoppedNotebook
}

// Jobs counts trainings and merges.
type Jobs struct{ Running, Waiting, AwaitingApproval int32 }

// Decision is what to do about all profiles.
type Decision struct {
	// Profiles are in the order in which their Queues are written: those whose shares shrink come first.
	Profiles []ProfileDecision
	// DeleteQueues are Queues of profiles that are gone, which have held nothing for a while.
	DeleteQueues []QueueRef
	// Abandoned are rooms of reservations that no profile has any more.
	Abandoned []PlaceholderDecision
	// Again is when time alone changes the decision; zero for never.
	Again time.Duration
	// Waits go into the Observed of the next Plan.
	Waits Waits
}

// QueueRef names a Queue to delete.
type QueueRef struct {
	Name string
	UID  types.UID
}

// ProfileDecision is what to do about one profile.
type ProfileDecision struct {
	Profile *v1beta1.ResourceQuotaProfile
	// Create is the Queue to create. Apply is what an existing Queue should say, and Have what it says now. Nil for nothing to do.
	Create, Apply *gang.Share
	Have          gang.QueueInfo
	// Agrees is true if the Queue says what it should. False also while a write is held back, for example for nodes to return.
	Agrees bool
	// Placeholders are the decisions about the reservations, carried out after the Queue is written.
	Placeholders []PlaceholderDecision
	// Guard is what to do about the ConfigMap by which the API server judges other pods.
	Guard GuardDecision
	// Stop are Notebooks to stop.
	Stop []NotebookStop
	// Status is what the status should be.
	Status v1beta1.ResourceQuotaProfileStatus
}

// planner is one Plan at work.
type planner struct {
	o Observed
	// at is the time, and now the same in whole seconds, as statuses have it.
	at     time.Time
	now    metav1.Time
	index  *Index
	queues map[string]gang.QueueInfo
	// parents are the names of Queues that have others below them.
	parents map[string]bool
	reviews []*review
	// namespaces and conflicts are those of each profile.
	namespaces map[string][]string
	conflicts  map[string][]Conflict
	shares     map[string]capacity.Amounts
	// excess is what guarantees and fixed shares take beyond what the nodes have.
	excess capacity.Amounts
	// again is when time alone changes the decision.
	again time.Duration
}

// review is one profile, as the plan for it grows.
type review struct {
	p       *planner
	profile *v1beta1.ResourceQuotaProfile
	given   Profile
	st      *v1beta1.ResourceQuotaProfileStatus
	d       ProfileDecision
	used    capacity.Amounts
	// obstacle keeps the Queue from being as the profile says; nil for none.
	obstacle *obstacle
}

// Plan decides about all profiles at once, because their shares depend on one another.
func Plan(o Observed, now time.Time) Decision {
	p := newPlanner(o, now)
	// patient stays true while Queues differ only because nodes came or went. Then the change may wait for them to come back.
	d, patient := Decision{}, true
	for _, r := range p.reviews {
		patient = patient && r.profile.Status.ObservedGeneration == r.profile.Generation
		r.obstacle = r.findObstacle()
		if r.obstacle == nil || r.obstacle.queueToo {
			r.writeQueue()
		}
		if r.obstacle == nil && (r.d.Create != nil || r.d.Apply != nil) {
			r.obstacle = r.refusedQueue()
		}
		patient = patient && !r.rewritesQueue()
		r.d.Agrees = r.d.Create == nil && r.d.Apply == nil
	}
	lent := p.lentAmounts()
	for _, r := range p.reviews {
		// Before the reservations: they hold room only in a Queue that the status has.
		r.writeStatus(lent)
		r.planReservations()
		r.d.Profile, r.d.Status = r.profile, *r.st
		d.Profiles = append(d.Profiles, r.d)
	}
	d.DeleteQueues, d.Abandoned = p.orphanQueues(), p.releaseAbandoned()
	// Queues that shrink are written first: at no moment may the Queues below one parent deserve more than the parent.
	slices.SortStableFunc(d.Profiles, func(a, b ProfileDecision) int { return cmp.Compare(p.growthRank(&a), p.growthRank(&b)) })
	p.holdForNodes(&d, patient)
	p.holdRefused(&d)
	p.holdDeletions(&d)
	p.awaitFigures()
	d.Again = p.again
	return d
}

func newPlanner(o Observed, now time.Time) *planner {
	p := &planner{
		o: o, at: now, now: metav1.NewTime(now).Rfc3339Copy(), queues: map[string]gang.QueueInfo{}, parents: map[string]bool{},
	}
	p.o.Profiles = slices.Clone(o.Profiles)
	var all, valid []*v1beta1.ResourceQuotaProfile
	slices.SortFunc(p.o.Profiles, func(a, b Profile) int { return cmp.Compare(a.Object.Name, b.Object.Name) })
	for _, given := range p.o.Profiles {
		all = append(all, given.Object)
		if given.Invalid == "" {
			valid = append(valid, given.Object)
		}
		r := &review{p: p, profile: given.Object, given: given, st: given.Object.Status.DeepCopy()}
		r.st.ObservedGeneration = given.Object.Generation
		p.reviews = append(p.reviews, r)
	}
	for _, q := range o.Queues {
		p.queues[q.Name], p.parents[q.Parent] = q, true
	}
	p.index = NewIndex(all)
	p.namespaces, p.conflicts = p.index.assignNamespaces(o.Namespaces)
	p.divideShares(valid)
	for _, r := range p.reviews {
		r.used = capacity.Amounts{}
		// Pods that hold reserved room are in the operator's namespace, and the profile's all the same.
		for name, amount := range o.Reserved[r.profile.Name] {
			r.used[name] = amount
		}
		for _, n := range p.namespaces[r.profile.Name] {
			for name, amount := range o.Used[n] {
				r.used[name] = addCapped(r.used[name], amount)
			}
		}
	}
	return p
}

// divideShares divides what the nodes have among the valid profiles. Guarantees and shares of all other Queues are taken off
// first. These include the Queues of deleted and invalid profiles, whose jobs may still run.
func (p *planner) divideShares(valid []*v1beta1.ResourceQuotaProfile) {
	ours := map[string]bool{}
	var claims []Claim
	for _, profile := range valid {
		if q, there := p.queues[profile.Name]; there && !isProfileQueue(q) {
			continue // The Queue belongs to someone else, so the profile gets no share.
		}
		ours[profile.Name] = true
		q := &profile.Spec.Queue
		claims = append(claims, Claim{
			Name: profile.Name, Weight: int64(max(q.Weight, 1)), Guarantee: capacity.AmountsOf(q.Guarantee),
			Deserved: capacity.AmountsOf(q.Deserved), Capability: capacity.AmountsOf(q.Capability),
		})
	}
	there := capacity.Amounts{}
	for name, amount := range p.o.Nodes {
		if dividedByShares(name) {
			there[name] = amount
		}
	}
	// What a profile names is divided also if it is of no kind that is divided by itself.
	for name := range resourcesOf(nil, claims) {
		there[name] = p.o.Nodes[name]
	}
	for _, q := range p.o.Queues {
		if ours[q.Name] || p.parents[q.Name] {
			continue // A parent has what its children have. Counting both would take it off twice.
		}
		guarantee, deserved := capacity.AmountsOf(q.Guarantee), capacity.AmountsOf(q.Deserved)
		for name := range there {
			// The larger, not the sum: what a Queue deserves includes what is guaranteed to it.
			there[name] = max(there[name]-max(guarantee[name], deserved[name]), 0)
		}
	}
	p.shares, p.excess = ComputeShares(there, claims), capacity.Amounts{}
	for name, amount := range CommittedAmounts(claims) {
		if beyond := amount - there[name]; beyond > 0 {
			p.excess[name] = beyond
		}
	}
}

// dividedByShares tells whether a resource is divided although no profile names it: cores, memory, and devices.
func dividedByShares(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || strings.Contains(string(name), "/")
}

// writeQueue creates the profile's Queue, or brings it to what it should say.
func (r *review) writeQueue() {
	share := r.wantedShare()
	queue, there := r.p.queues[r.profile.Name]
	switch {
	case !there:
		r.d.Create = &share
	case share.HasDrifted(queue):
		r.d.Apply, r.d.Have = &share, queue
	}
}

// rewritesQueue tells whether the Queue changes by more than what follows from nodes and other profiles.
func (r *review) rewritesQueue() bool { return r.d.Apply != nil && r.d.Apply.IsRewritten(r.d.Have) }

// wantedShare is what the profile's Queue should say.
func (r *review) wantedShare() gang.Share {
	spec := &r.profile.Spec.Queue
	deserved := r.p.shares[r.profile.Name]
	share := gang.Share{
		Name: r.profile.Name, Labels: map[string]string{v1beta1.LabelProfile: r.profile.Name},
		Annotations: map[string]string{v1beta1.AnnotationCreatedFor: string(r.profile.UID)}, Weight: max(spec.Weight, 1),
		Guarantee: spec.Guarantee.DeepCopy(), Deserved: listOf(deserved), Parent: spec.Parent,
		Reclaimable: spec.Reclaimable == nil || *spec.Reclaimable,
	}
	if len(spec.Capability) == 0 {
		return share
	}
	// What the profile does not limit may be as much as there is: a Queue's capability lists everything or nothing.
	limits := capacity.AmountsOf(spec.Capability)
	for name, amount := range deserved {
		if _, limited := limits[name]; !limited {
			limits[name] = max(amount, r.p.o.Nodes[name])
		}
	}
	share.Capability = listOf(limits)
	return share
}

// WantedShares are what the Queues of these profiles should say, beside other Queues, on what nodes have. Profiles are taken to
// be valid. A profile whose name another Queue has gets none.
func WantedShares(
	profiles []*v1beta1.ResourceQuotaProfile, queues []gang.QueueInfo, nodes capacity.Amounts, cfg *config.Configuration,
) []gang.Share {
	o := Observed{Config: cfg, Nodes: nodes, Queues: queues}
	for _, profile := range profiles {
		o.Profiles = append(o.Profiles, Profile{Object: profile})
	}
	var shares []gang.Share
	p := newPlanner(o, time.Time{})
	for _, r := range p.reviews {
		if q, there := p.queues[r.profile.Name]; !there || isProfileQueue(q) {
			shares = append(shares, r.wantedShare())
		}
	}
	return shares
}

// growthRank is 1 for a profile whose Queue gets more of a resource, and 0 for others.
func (p *planner) growthRank(d *ProfileDecision) int {
	if d.Create != nil {
		return 1
	}
	if d.Apply == nil {
		return 0
	}
	have := capacity.AmountsOf(p.queues[d.Apply.Name].Deserved)
	for name, amount := range capacity.AmountsOf(d.Apply.Deserved) {
		if amount > have[name] {
			return 1
		}
	}
	return 0
}

// isProfileQueue tells whether the Queue belongs to the profile of its name, or did before that was deleted.
func isProfileQueue(q gang.QueueInfo) bool { return q.Labels[v1beta1.LabelProfile] == q.Name }

// orphanQueues are the empty Queues of deleted profiles. A Queue with gangs stays until they have ended. A Queue that an
// administrator made and handed over to a profile stays for good: Tideline did not create it.
func (p *planner) orphanQueues() []QueueRef {
	there := map[string]bool{}
	for _, r := range p.reviews {
		there[r.profile.Name] = true
	}
	var empty []QueueRef
	for _, q := range p.o.Queues {
		_, made := q.Annotations[v1beta1.AnnotationCreatedFor]
		held := p.o.Gangs[q.Name] > 0 || p.parents[q.Name]
		if isProfileQueue(q) && made && !there[q.Name] && !q.Deleting && !held {
			empty = append(empty, QueueRef{Name: q.Name, UID: q.UID})
		}
	}
	return empty
}

// lentAmounts is how much of each profile's idle share others use beyond their own shares, by profile and resource.
func (p *planner) lentAmounts() map[string]capacity.Amounts {
	lent := map[string]capacity.Amounts{}
	for name := range p.o.Nodes {
		borrowed, idle := p.heldOutsideProfiles(name), map[string]int64{}
		for _, r := range p.reviews {
			spare := p.shares[r.profile.Name][name] - r.used[name]
			borrowed += max(-spare, 0)
			idle[r.profile.Name] = max(spare, 0)
		}
		for profile, amount := range lendIdle(borrowed, idle) {
			if lent[profile] == nil {
				lent[profile] = capacity.Amounts{}
			}
			lent[profile][name] = amount
		}
	}
	return lent
}

// heldOutsideProfiles is what pods of namespaces without a profile hold.
func (p *planner) heldOutsideProfiles(name corev1.ResourceName) int64 {
	all := int64(0)
	for _, amounts := range p.o.Used {
		all += amounts[name]
	}
	for _, r := range p.reviews {
		all -= r.used[name] - p.o.Reserved[r.profile.Name][name]
	}
	return all
}
