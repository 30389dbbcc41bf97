package faults

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	uids "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/test/testutil"
)

// Teams of a site: the first has its namespace, the other none.
const firstTeam, otherTeam = "ads", "search"

// Names of the jobs of a user who may run one at a time, in the order in which they are created after the story's own.
const secondJob, thirdJob = "b", "c"

// owner is that user.
const owner = "alice"

// profileStories are told as stories are. Their operators see the nodes of their sites alone, of which the shares are.
var profileStories = []*story{sharing, dissolving, inheriting, gathering, handingOver, capping}

var (
	sharing = tell(story{
		name: "a profile gets its Queue, and shares with another", slug: "share", gpus: 4, clusterWide: true,
		prelude: func(s *site) { s.Join(s.team(firstTeam)) },
		strike:  func(s *site) { s.Create(s.profile(firstTeam).Obj()) },
		sequel: func(s *site) {
			s.shares(firstTeam, 4)
			s.Create(s.profile(otherTeam).Weight(3).Obj())
			s.shares(otherTeam, 3)
			s.shares(firstTeam, 1)
		},
	})
	dissolving = tell(story{
		name: "a profile is deleted, and its Queue goes with its last job", slug: "leave", gpus: 4, clusterWide: true,
		deletes: jobName,
		prelude: func(s *site) {
			s.hasTeam(s.profile(firstTeam))
			s.submitPair(jobName)
			s.trains(2, "the job runs before the story begins")
		},
		strike: func(s *site) { s.Delete(s.profile(firstTeam).Obj()) },
		sequel: func(s *site) {
			s.Eventually(s.Fetch(jobName)).Should(And(testutil.Train(2), HaveField("Status.Profile", v1alpha1.DefaultProfile),
				testutil.HaveRestarts(0)), "the job goes on, and says that it has no profile")
			s.Expect(s.share(firstTeam)).To(BeEquivalentTo(4), "its Queue stays as it was")
			s.DeleteJob(jobName)
			s.Eventually(s.queues).Should(BeEmpty(), "the Queue goes with the job")
		},
	})
	inheriting = tell(story{
		name: "a profile is deleted, and another has what was its share", slug: "heir", gpus: 4, clusterWide: true, rare: true,
		prelude: func(s *site) {
			s.hasTeam(s.profile(firstTeam))
			s.Create(s.profile(otherTeam).Obj())
			s.shares(otherTeam, 2)
			s.shares(firstTeam, 2)
		},
		strike: func(s *site) { s.Delete(s.profile(firstTeam).Obj()) },
		sequel: func(s *site) {
			s.Eventually(s.queues).Should(ConsistOf(s.team(otherTeam)), "the Queue goes with its profile")
			s.shares(otherTeam, 4)
		},
	})
	gathering = tell(story{
		name: "a reservation gathers room, and expires", slug: "room", gpus: 4, clusterWide: true,
		prelude: func(s *site) {
			s.ownResource()
			s.hasTeam(s.profile(firstTeam))
		},
		strike: func(s *site) { s.reserve(time.Now().Add(time.Hour)) },
		sequel: func(s *site) {
			s.awaitReservation(v1alpha1.ReservationHeld)
			s.reserve(time.Now())
			s.awaitReservation(v1alpha1.ReservationExpired)
		},
		verify: holdsNothing,
	})
	handingOver = tell(story{
		name: "a reservation hands its room over to its job", slug: "hand", gpus: 4, clusterWide: true,
		// Volcano takes the room for the job, and the operator what is left of it.
		shared: true,
		leaves: append(ended[:3:3], "Service a-workers", "PodGroup a"),
		prelude: func(s *site) {
			s.ownResource()
			s.hasTeam(s.profile(firstTeam))
			s.reserve(time.Now().Add(time.Hour))
			s.awaitReservation(v1alpha1.ReservationHeld)
		},
		strike: func(s *site) { s.Submit(s.Job(jobName).Range(2, 2).GPUs(2).Owner(owner)) },
		sequel: func(s *site) {
			s.trains(2, "the job has the room")
			s.awaitReservation(v1alpha1.ReservationHandedOver)
		},
		verify: holdsNothing,
	})
	capping = tell(story{
		name: "jobs wait for their turn under a cap", slug: "cap", gpus: 4, clusterWide: true,
		deletes: jobName,
		leaves: []string{
			"ElasticTrainingJob b", "ElasticTrainingJob c", "Pod b-worker-0", "Pod b-worker-1", "Service b-workers", "PodGroup b",
		},
		prelude: func(s *site) {
			s.held = s.recordHeld()
			s.hasTeam(s.profile(firstTeam).PerUser(2))
			s.submitPair(jobName)
			s.trains(2, "the first job runs before the story begins")
		},
		strike: func(s *site) {
			s.submitPair(secondJob)
			s.submitPair(thirdJob)
		},
		sequel: func(s *site) {
			waits := testutil.Wait(v1alpha1.ReasonQuotaExceeded)
			s.Eventually(s.Fetch(secondJob)).Should(waits, "the user is at the cap")
			s.Eventually(s.Fetch(thirdJob)).Should(waits, "the user is at the cap")
			s.DeleteJob(jobName)
			s.Eventually(s.Fetch(secondJob)).Should(testutil.Train(2), "the next has its turn")
			s.Eventually(s.Fetch(thirdJob)).Should(waits, "the one behind it has not")
			s.Eventually(s.Remains).ShouldNot(ContainElement(MatchRegexp(`^[A-Za-z]+ a(-|$)`)), "the garbage collector comes later")
		},
		verify: func(s *site) {
			s.Expect(s.held.most()).To(BeEquivalentTo(2), "the user never held more than the cap allows")
		},
	})
)

// team is the name of a team of the site, which is also that of its profile and of its Queue.
func (s *site) team(name string) string { return s.Namespace + "-" + name }

// profile begins with the profile of a team.
func (s *site) profile(team string) *testutil.ProfileBuilder { return testutil.Profile(s.team(team)) }

// hasTeam gives the namespace to the first team, and returns when its profile has its Queue.
func (s *site) hasTeam(b *testutil.ProfileBuilder) {
	s.Join(s.team(firstTeam))
	s.Create(b.Obj())
	s.shares(firstTeam, 4)
}

// submitPair creates a job of exactly two workers.
func (s *site) submitPair(name string) { s.Submit(s.Job(name).Range(2, 2).Owner(owner)) }

// fetchProfile reads the profile of a team.
func (s *site) fetchProfile(team string) (*v1alpha1.ResourceQuotaProfile, error) {
	p := &v1alpha1.ResourceQuotaProfile{}
	return p, s.Client.Get(s.t.Context(), client.ObjectKey{Name: s.team(team)}, p)
}

// shares awaits that a team has a Queue with a share of n GPUs, and a profile that says so.
func (s *site) shares(team string, n int) {
	s.Eventually(s.share).WithArguments(team).Should(BeEquivalentTo(n), "the share of %s is in its Queue", team)
	s.Eventually(s.fetchProfile).WithArguments(team).Should(And(Satisfy(profileReady), WithTransform(
		func(p *v1alpha1.ResourceQuotaProfile) int64 { return gpusIn(p.Status.Deserved) }, BeEquivalentTo(n))), "the profile says so")
}

// profileReady tells whether a profile's status speaks of its spec, and says that all is well.
func profileReady(p *v1alpha1.ResourceQuotaProfile) bool {
	return p.Status.ObservedGeneration == p.Generation && p.Status.Reason == v1alpha1.ReasonQueueReady
}

// share is that of a team, in its Queue.
func (s *site) share(team string) (int64, error) {
	q := &schedulingv1beta1.Queue{}
	err := s.Client.Get(s.t.Context(), client.ObjectKey{Name: s.team(team)}, q)
	return gpusIn(q.Spec.Deserved), err
}

// ownResource gives the node of the site something that no other node has. Room that is held goes wherever its resources are.
func (s *site) ownResource() {
	patch := fmt.Appendf(nil, `{"status":{"capacity":{%[1]q:"4"},"allocatable":{%[1]q:"4"}}}`, s.resource())
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.Node(0)}}
	s.Expect(s.Client.Status().Patch(s.t.Context(), node, client.RawPatch(uids.MergePatchType, patch))).To(Succeed(),
		"the node has something of its own")
}

func (s *site) resource() corev1.ResourceName {
	return corev1.ResourceName("example.com/" + s.Namespace)
}

// reserve has the first team's profile ask for all GPUs of the site, for the story's job.
func (s *site) reserve(until time.Time) {
	asked := s.profile(firstTeam).Reserve(2, 2, jobName, owner, until).Obj()
	asked.Spec.Reservations[0].Resources[s.resource()] = resource.MustParse("1")
	reservations, err := json.Marshal(asked.Spec.Reservations)
	s.Expect(err).NotTo(HaveOccurred(), "the reservation is written")
	s.Patch(asked, fmt.Sprintf(`{"spec":{"reservations":%s}}`, reservations))
}

// awaitReservation awaits that the reservation has come so far.
func (s *site) awaitReservation(phase v1alpha1.ReservationPhase) {
	s.Eventually(s.fetchProfile).WithArguments(firstTeam).Should(And(Satisfy(profileReady), reserved(phase)),
		"the reservation is %s", phase)
}

func reserved(phase v1alpha1.ReservationPhase) types.GomegaMatcher {
	return HaveField("Status.Reservations", ConsistOf(HaveField("Phase", phase)))
}

// holdsNothing checks that nothing of a reservation is left, and that the gang of its job stands where its tier stands.
func holdsNothing(s *site) {
	s.Eventually(s.placeholders).Should(BeEmpty(), "nothing holds room")
	groups := &schedulingv1beta1.PodGroupList{}
	s.Expect(s.Client.List(s.t.Context(), groups, s.rooms()...)).To(Succeed(), "the PodGroups are listed")
	s.Expect(groups.Items).NotTo(ContainElement(HaveField("Name", HavePrefix(s.Namespace))), "no PodGroup is left")
}

// rooms chooses what holds room for reservations.
func (s *site) rooms() []client.ListOption {
	return []client.ListOption{
		client.InNamespace(testutil.OperatorNamespace), client.MatchingLabels{v1alpha1.LabelProfile: s.team(firstTeam)},
	}
}

// placeholders are the pods that hold room for reservations of the site.
func (s *site) placeholders() ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := s.Client.List(s.t.Context(), pods, s.rooms()...)
	return pods.Items, err
}

// queues are the names of the site's Queues.
func (s *site) queues() ([]string, error) {
	queues := &schedulingv1beta1.QueueList{}
	err := s.Client.List(s.t.Context(), queues)
	var names []string
	for i := range queues.Items {
		if s.proxy.owns(queues.Items[i].Name) {
			names = append(names, queues.Items[i].Name)
		}
	}
	return names, err
}

// dissolve removes what the site has outside of its namespace, when nobody uses it any more.
func (s *site) dissolve() {
	if s.Scenario == nil {
		return
	}
	all := []client.Object{s.class(""), s.class("-surplus")}
	if s.books != nil {
		all = append(all, s.report(), s.prices(""), &corev1.ConfigMap{ObjectMeta: s.beside("people")},
			&corev1.Secret{ObjectMeta: s.beside("smtp")})
	}
	for _, team := range []string{firstTeam, otherTeam} {
		name := metav1.ObjectMeta{Name: s.team(team)}
		all = append(all, &v1alpha1.ResourceQuotaProfile{ObjectMeta: name}, &schedulingv1beta1.Queue{ObjectMeta: name})
	}
	for _, o := range all {
		if err := client.IgnoreNotFound(s.Client.Delete(s.Context(), o)); err != nil {
			s.t.Logf("cannot delete %T %s: %v", o, o.GetName(), err)
		}
	}
}

func gpusIn(list corev1.ResourceList) int64 {
	n := list[testutil.GPUResource]
	return n.Value()
}

// heldRecord is what the pods of a site held at any time, by what a watch told.
type heldRecord struct {
	mu   sync.Mutex
	pods map[uids.UID]int64
	max  int64
}

// recordHeld watches the pods of the site past its proxy, until the trial ends.
func (s *site) recordHeld() *heldRecord {
	r := &heldRecord{pods: map[uids.UID]int64{}}
	s.watch(r.see, &corev1.PodList{})
	return r
}

func (r *heldRecord) see(e watch.Event) {
	pod, ok := e.Object.(*corev1.Pod)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if delete(r.pods, pod.UID); e.Type != watch.Deleted && testutil.Bound(pod) {
		r.pods[pod.UID] = gpusIn(pod.Spec.Containers[0].Resources.Requests)
	}
	sum := int64(0)
	for _, n := range r.pods {
		sum += n
	}
	r.max = max(r.max, sum)
}

// most is the most that was held at a time.
func (r *heldRecord) most() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.max
}
