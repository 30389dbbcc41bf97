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

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// Teams of an environment: the first has its namespace, the other none.
const firstTeam, otherTeam = "ads", "search"

// Names of the jobs of a user who may run one at a time, in the order in which they are created after the story's own.
const secondJob, thirdJob = "b", "c"

// owner is that user.
const owner = "alice"

// profileStories are told as stories are. Their operators see the nodes of their environments alone, of which the shares are.
var profileStories = []*story{sharing, dissolving, inheriting, gathering, handingOver, capping}

var (
	sharing = tell(story{
		name: "a profile gets its Queue, and shares with another", slug: "share", gpus: 4, clusterWide: true,
		setup:  func(env *environment) { env.Join(env.team(firstTeam)) },
		action: func(env *environment) { env.Create(env.profile(firstTeam).Obj()) },
		sequel: func(env *environment) {
			env.shares(firstTeam, 4)
			env.Create(env.profile(otherTeam).Weight(3).Obj())
			env.shares(otherTeam, 3)
			env.shares(firstTeam, 1)
		},
	})
	dissolving = tell(story{
		name: "a profile is deleted, and its Queue goes with its last job", slug: "leave", gpus: 4, clusterWide: true,
		deletes: jobName,
		setup: func(env *environment) {
			env.hasTeam(env.profile(firstTeam))
			env.submitPair(jobName)
			env.trains(2, "the job runs before the story begins")
		},
		action: func(env *environment) { env.Delete(env.profile(firstTeam).Obj()) },
		sequel: func(env *environment) {
			env.Eventually(env.Fetch(jobName)).Should(And(testutil.Train(2), HaveField("Status.Profile", v1beta1.DefaultProfile),
				testutil.HaveRestarts(0)), "the job goes on, and says that it has no profile")
			env.Expect(env.share(firstTeam)).To(BeEquivalentTo(4), "its Queue stays as it was")
			env.DeleteJob(jobName)
			env.Eventually(env.queues).Should(BeEmpty(), "the Queue goes with the job")
		},
	})
	inheriting = tell(story{
		name: "a profile is deleted, and another has what was its share", slug: "heir", gpus: 4, clusterWide: true, rare: true,
		setup: func(env *environment) {
			env.hasTeam(env.profile(firstTeam))
			env.Create(env.profile(otherTeam).Obj())
			env.shares(otherTeam, 2)
			env.shares(firstTeam, 2)
		},
		action: func(env *environment) { env.Delete(env.profile(firstTeam).Obj()) },
		sequel: func(env *environment) {
			env.Eventually(env.queues).Should(ConsistOf(env.team(otherTeam)), "the Queue goes with its profile")
			env.shares(otherTeam, 4)
		},
	})
	gathering = tell(story{
		name: "a reservation gathers room, and expires", slug: "room", gpus: 4, clusterWide: true,
		setup: func(env *environment) {
			env.ownResource()
			env.hasTeam(env.profile(firstTeam))
		},
		action: func(env *environment) { env.reserve(time.Now().Add(time.Hour)) },
		sequel: func(env *environment) {
			env.awaitReservation(v1beta1.ReservationHeld)
			env.reserve(time.Now())
			env.awaitReservation(v1beta1.ReservationExpired)
		},
		verify: holdsNothing,
	})
	handingOver = tell(story{
		name: "a reservation hands its room over to its job", slug: "hand", gpus: 4, clusterWide: true,
		// Volcano takes the room for the job, and the operator what is left of it.
		shared: true,
		leaves: append(ended[:3:3], "Service a-workers", "PodGroup a"),
		setup: func(env *environment) {
			env.ownResource()
			env.hasTeam(env.profile(firstTeam))
			env.reserve(time.Now().Add(time.Hour))
			env.awaitReservation(v1beta1.ReservationHeld)
		},
		action: func(env *environment) { env.Submit(env.Job(jobName).Range(2, 2).GPUs(2).Owner(owner)) },
		sequel: func(env *environment) {
			env.trains(2, "the job has the room")
			env.awaitReservation(v1beta1.ReservationHandedOver)
		},
		verify: holdsNothing,
	})
	capping = tell(story{
		name: "jobs wait for their turn under a cap", slug: "cap", gpus: 4, clusterWide: true,
		deletes: jobName,
		leaves: []string{
			"ElasticTrainingJob b", "ElasticTrainingJob c", "Pod b-worker-0", "Pod b-worker-1", "Service b-workers", "PodGroup b",
		},
		setup: func(env *environment) {
			env.held = env.recordHeld()
			env.hasTeam(env.profile(firstTeam).PerUser(2))
			env.submitPair(jobName)
			env.trains(2, "the first job runs before the story begins")
		},
		action: func(env *environment) {
			env.submitPair(secondJob)
			env.submitPair(thirdJob)
		},
		sequel: func(env *environment) {
			waits := testutil.Wait(v1beta1.ReasonQuotaExceeded)
			env.Eventually(env.Fetch(secondJob)).Should(waits, "the user is at the cap")
			env.Eventually(env.Fetch(thirdJob)).Should(waits, "the user is at the cap")
			env.DeleteJob(jobName)
			env.Eventually(env.Fetch(secondJob)).Should(testutil.Train(2), "the next has its turn")
			env.Eventually(env.Fetch(thirdJob)).Should(waits, "the one behind it has not")
			env.Eventually(env.Remains).ShouldNot(ContainElement(MatchRegexp(`^[A-Za-z]+ a(-|$)`)), "the garbage collector comes later")
		},
		verify: func(env *environment) {
			env.Expect(env.held.most()).To(BeEquivalentTo(2), "the user never held more than the cap allows")
		},
	})
)

// team is the name of a team of the environment, which is also that of its profile and of its Queue.
func (env *environment) team(name string) string { return env.Namespace + "-" + name }

// profile begins with the profile of a team.
func (env *environment) profile(team string) *testutil.ProfileBuilder {
	return testutil.Profile(env.team(team))
}

// hasTeam gives the namespace to the first team, and returns when its profile has its Queue.
func (env *environment) hasTeam(b *testutil.ProfileBuilder) {
	env.Join(env.team(firstTeam))
	env.Create(b.Obj())
	env.shares(firstTeam, 4)
}

// submitPair creates a job of exactly two workers.
func (env *environment) submitPair(name string) { env.Submit(env.Job(name).Range(2, 2).Owner(owner)) }

// fetchProfile reads the profile of a team.
func (env *environment) fetchProfile(team string) (*v1beta1.ResourceQuotaProfile, error) {
	p := &v1beta1.ResourceQuotaProfile{}
	return p, env.Client.Get(env.t.Context(), client.ObjectKey{Name: env.team(team)}, p)
}

// shares awaits that a team has a Queue with a share of n GPUs, and a profile that says so.
func (env *environment) shares(team string, n int) {
	env.Eventually(env.share).WithArguments(team).Should(BeEquivalentTo(n), "the share of %s is in its Queue", team)
	env.Eventually(env.fetchProfile).WithArguments(team).Should(And(Satisfy(profileReady), WithTransform(
		func(p *v1beta1.ResourceQuotaProfile) int64 { return gpusIn(p.Status.Deserved) }, BeEquivalentTo(n))), "the profile says so")
}

// profileReady tells whether a profile's status speaks of its spec, and says that all is well.
func profileReady(p *v1beta1.ResourceQuotaProfile) bool {
	return p.Status.ObservedGeneration == p.Generation && p.Status.Reason == v1beta1.ReasonQueueReady
}

// share is that of a team, in its Queue.
func (env *environment) share(team string) (int64, error) {
	q := &schedulingv1beta1.Queue{}
	err := env.Client.Get(env.t.Context(), client.ObjectKey{Name: env.team(team)}, q)
	return gpusIn(q.Spec.Deserved), err
}

// ownResource gives the node of the environment something that no other node has. Room that is held goes wherever its resources
// are.
func (env *environment) ownResource() {
	patch := fmt.Appendf(nil, `{"status":{"capacity":{%[1]q:"4"},"allocatable":{%[1]q:"4"}}}`, env.resource())
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: env.Node(0)}}
	env.Expect(env.Client.Status().Patch(env.t.Context(), node, client.RawPatch(uids.MergePatchType, patch))).To(Succeed(),
		"the node has something of its own")
}

func (env *environment) resource() corev1.ResourceName {
	return corev1.ResourceName("example.com/" + env.Namespace)
}

// reserve has the first team's profile ask for all GPUs of the environment, for the story's job.
func (env *environment) reserve(until time.Time) {
	asked := env.profile(firstTeam).Reserve(2, 2, jobName, owner, until).Obj()
	asked.Spec.Reservations[0].Resources[env.resource()] = resource.MustParse("1")
	reservations, err := json.Marshal(asked.Spec.Reservations)
	env.Expect(err).NotTo(HaveOccurred(), "the reservation is written")
	env.Patch(asked, fmt.Sprintf(`{"spec":{"reservations":%s}}`, reservations))
}

// awaitReservation awaits that the reservation has come so far.
func (env *environment) awaitReservation(phase v1beta1.ReservationPhase) {
	env.Eventually(env.fetchProfile).WithArguments(firstTeam).Should(And(Satisfy(profileReady), reserved(phase)),
		"the reservation is %s", phase)
}

func reserved(phase v1beta1.ReservationPhase) types.GomegaMatcher {
	return HaveField("Status.Reservations", ConsistOf(HaveField("Phase", phase)))
}

// holdsNothing checks that nothing of a reservation is left, and that the gang of its job stands where its tier stands.
func holdsNothing(env *environment) {
	env.Eventually(env.placeholders).Should(BeEmpty(), "nothing holds room")
	groups := &schedulingv1beta1.PodGroupList{}
	env.Expect(env.Client.List(env.t.Context(), groups, env.rooms()...)).To(Succeed(), "the PodGroups are listed")
	env.Expect(groups.Items).NotTo(ContainElement(HaveField("Name", HavePrefix(env.Namespace))), "no PodGroup is left")
}

// rooms chooses what holds room for reservations.
func (env *environment) rooms() []client.ListOption {
	return []client.ListOption{
		client.InNamespace(testutil.OperatorNamespace), client.MatchingLabels{v1beta1.LabelProfile: env.team(firstTeam)},
	}
}

// placeholders are the pods that hold room for reservations of the environment.
func (env *environment) placeholders() ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := env.Client.List(env.t.Context(), pods, env.rooms()...)
	return pods.Items, err
}

// queues are the names of the environment's Queues.
func (env *environment) queues() ([]string, error) {
	queues := &schedulingv1beta1.QueueList{}
	err := env.Client.List(env.t.Context(), queues)
	var names []string
	for i := range queues.Items {
		if env.proxy.owns(queues.Items[i].Name) {
			names = append(names, queues.Items[i].Name)
		}
	}
	return names, err
}

// dissolve removes what the environment has outside of its namespace, when nobody uses it any more.
func (env *environment) dissolve() {
	if env.Scenario == nil {
		return
	}
	all := []client.Object{env.class(""), env.class("-surplus")}
	if env.books != nil {
		all = append(all, env.report(), env.prices(""), &corev1.ConfigMap{ObjectMeta: env.beside("people")},
			&corev1.Secret{ObjectMeta: env.beside("smtp")})
	}
	for _, team := range []string{firstTeam, otherTeam} {
		name := metav1.ObjectMeta{Name: env.team(team)}
		all = append(all, &v1beta1.ResourceQuotaProfile{ObjectMeta: name}, &schedulingv1beta1.Queue{ObjectMeta: name})
	}
	for _, o := range all {
		if err := client.IgnoreNotFound(env.Client.Delete(env.Context(), o)); err != nil {
			env.t.Logf("cannot delete %T %s: %v", o, o.GetName(), err)
		}
	}
}

func gpusIn(list corev1.ResourceList) int64 {
	n := list[testutil.GPUResource]
	return n.Value()
}

// heldRecord is what the pods of an environment held at any time, by what a watch told.
type heldRecord struct {
	mu   sync.Mutex
	pods map[uids.UID]int64
	max  int64
}

// recordHeld watches the pods of the environment past its proxy, until the run ends.
func (env *environment) recordHeld() *heldRecord {
	r := &heldRecord{pods: map[uids.UID]int64{}}
	env.watch(r.see, &corev1.PodList{})
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
