package quota

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
)

// booking plays the cluster for one reservation of two replicas of 8 GPUs, until an hour from now.
type booking struct {
	o   Observed
	now time.Time
	// last is the last decision.
	last ProfileDecision
}

func newBooking() *booking {
	b := &booking{now: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)}
	p := &v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: "ads", UID: "ads"}}
	p.Spec.NamespaceSelector.MatchLabels = map[string]string{"team": "ads"}
	p.Spec.Reservations = []v1beta1.ProfileReservation{{
		Name: "launch", Replicas: 2, Resources: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")},
		Until: metav1.NewTime(b.now.Add(time.Hour)), JobRef: v1beta1.ObjectRef{Name: "launch"}, Owner: "alice",
	}}
	b.o = Observed{
		Config: config.DefaultConfiguration(), Namespace: "tideline-system", Profiles: []Profile{{Object: p}},
		Namespaces: []Namespace{{Name: "ads-dev", Labels: map[string]string{"team": "ads"}}},
		Queues: []gang.QueueInfo{{
			QueueLimits: gang.QueueLimits{Name: "ads"}, Labels: map[string]string{v1beta1.LabelProfile: "ads"},
		}},
		Placeholders: map[ReservationKey]Placeholders{}, Nodes: capacity.Amounts{"nvidia.com/gpu": 16},
	}
	return b
}

func (b *booking) spec() *v1beta1.ProfileReservation {
	return &b.o.Profiles[0].Object.Spec.Reservations[0]
}

func (b *booking) room() Placeholders { return b.o.Placeholders[ReservationKey{"ads", "launch"}] }

// step decides, carries it out, and writes the status.
func (b *booking) step() *booking {
	d := Plan(b.o, b.now)
	b.last = d.Profiles[0]
	b.o.Profiles[0].Object.Status = b.last.Status
	for _, r := range b.last.Placeholders {
		room := b.o.Placeholders[r.ReservationKey]
		for _, gone := range r.DeletePods {
			var left []Placeholder
			for _, p := range room.Pods {
				if p.UID != gone.UID {
					left = append(left, p)
				}
			}
			room.Pods = left
		}
		if r.DeleteGroup != nil {
			room.Group = nil
		}
		if r.CreateGroup != nil {
			room.Group = &PlaceholderGroup{Name: r.CreateGroup.Name, UID: "group", MinMember: r.CreateGroup.MinMember}
		}
		if r.RestoreGroup != nil {
			room.Group = &PlaceholderGroup{Name: r.RestoreGroup.Name, UID: r.Restored, MinMember: r.RestoreGroup.MinMember}
		}
		for _, pod := range r.CreatePods {
			index := int32(len(room.Pods))
			room.Pods = append(room.Pods, Placeholder{Name: pod.Name, UID: types.UID(pod.Name), Index: index})
		}
		b.o.Placeholders[r.ReservationKey] = room
	}
	return b
}

// place gives all pods a place.
func (b *booking) place() *booking {
	room := b.room()
	for i := range room.Pods {
		room.Pods[i].Placed = true
	}
	return b.step()
}

// launch is the task of the reservation, which claims room.
func (b *booking) launch() Task {
	return Task{Namespace: "ads-dev", Name: "launch", Owner: "alice", Created: b.now, Claims: true}
}

func (b *booking) says() v1beta1.ReservationStatus { return b.last.Status.Reservations[0] }

func TestReservationSaysWhatRefusesIt(t *testing.T) {
	g := NewWithT(t)
	b := newBooking().step()
	room := b.room()
	room.Refused = &Refusal{Reason: v1beta1.ReasonRejected, Said: "Pod \"x\" is invalid: must be a standard resource"}
	b.o.Placeholders[ReservationKey{"ads", "launch"}] = room
	b.step()
	g.Expect(b.says().Phase).To(Equal(v1beta1.ReservationGathering))
	g.Expect(b.says().Reason).To(Equal("Rejected"))
	g.Expect(b.says().Message).To(Equal(`Pod "x" is invalid: must be a standard resource. Correct the reservation or what ` +
		`refuses it. Tideline keeps trying.`))
	room.Refused.Said = strings.Repeat("é", 2000)
	b.o.Placeholders[ReservationKey{"ads", "launch"}] = room
	b.step()
	g.Expect(len(b.says().Message)).To(BeNumerically("<=", 1024))
	g.Expect(b.says().Message).To(HaveSuffix("Tideline keeps trying."))
	b.now = b.now.Add(2 * time.Hour)
	b.step()
	g.Expect(b.says()).To(And(HaveField("Phase", v1beta1.ReservationExpired), HaveField("Message", ""), HaveField("Reason", "")))
}

func TestReservationIsHeldAndHandedOver(t *testing.T) {
	g := NewWithT(t)
	b := newBooking().step()
	since := metav1.NewTime(b.now)
	g.Expect(b.says()).To(Equal(v1beta1.ReservationStatus{Name: "launch", Phase: v1beta1.ReservationGathering, Since: since}))
	g.Expect(b.last.Placeholders[0].CreateGroup).To(And(HaveField("MinMember", int32(2)), HaveField("Queue", "ads"),
		HaveField("Namespace", "tideline-system"), HaveField("PriorityClass", "tideline-exploratory")))
	all := b.last.Placeholders[0].CreateGroup.MinResources["nvidia.com/gpu"]
	g.Expect(all.Value()).To(Equal(int64(16)))
	g.Expect(b.room().Pods).To(HaveLen(2))
	b.step()
	nothing := PlaceholderDecision{ReservationKey: ReservationKey{"ads", "launch"}}
	g.Expect(b.last.Placeholders[0]).To(Equal(nothing), "nothing is done twice")

	b.place()
	g.Expect(b.says()).To(Equal(v1beta1.ReservationStatus{
		Name: "launch", Phase: v1beta1.ReservationHeld, Placed: 2, Since: since,
	}))

	b.o.Tasks = []Task{b.launch()}
	b.step()
	g.Expect(b.says().Phase).To(Equal(v1beta1.ReservationHandingOver))
	g.Expect(b.says().Job).To(HaveValue(Equal(v1beta1.GangRef{Namespace: "ads-dev", Name: "launch"})))
	g.Expect(b.room().Group.MinMember).To(Equal(int32(2)), "it is held until the task's gang is the first")
	b.o.Tasks[0].Asks = true
	b.step()
	g.Expect(b.room().Group.MinMember).To(BeZero(), "Volcano may take it then, and does so for the first")
	g.Expect(b.says().Phase).To(Equal(v1beta1.ReservationHandingOver))
	room := b.room()
	room.Pods = room.Pods[:1]
	b.o.Placeholders[ReservationKey{"ads", "launch"}] = room
	b.step()
	g.Expect(b.room().Pods).To(HaveLen(1), "what it took does not come back")
	b.o.Tasks[0].Asks = false
	b.step()
	g.Expect(b.room().Pods).To(HaveLen(1), "also when the gang is as any other again")
	b.o.Tasks[0].Placed = true
	b.step()
	g.Expect(b.says().Phase).To(Equal(v1beta1.ReservationHandedOver))
	g.Expect(b.room().Pods).To(HaveLen(1), "the rest stays until that is written")
	b.step()
	g.Expect(b.room()).To(Equal(Placeholders{}))
	b.o.Tasks = nil
	b.step().step()
	g.Expect(b.says().Phase).To(Equal(v1beta1.ReservationHandedOver), "it is not gathered again when the task has gone")
	g.Expect(b.room()).To(Equal(Placeholders{}))
}

func TestWhoTakesTheRoom(t *testing.T) {
	const held, handingOver, handedOver = v1beta1.ReservationHeld, v1beta1.ReservationHandingOver, v1beta1.ReservationHandedOver
	for name, c := range map[string]struct {
		change          func(*Task)
		phase           v1beta1.ReservationPhase
		reason, message string
	}{
		"one that claims room":   {change: func(*Task) {}, phase: handingOver},
		"one that has places":    {change: func(t *Task) { t.Placed, t.Claims = true, false }, phase: handedOver},
		"one of another name":    {change: func(t *Task) { t.Name = "other" }, phase: held},
		"one of another team":    {change: func(t *Task) { t.Namespace = "search" }, phase: held},
		"one that came before":   {change: func(t *Task) { t.Created = t.Created.Add(-time.Second) }, phase: held},
		"one that has just come": {change: func(t *Task) { t.Claims, t.Unjudged = false, true }, phase: held},
		"one that claims nothing": {
			change: func(t *Task) {
				t.Claims, t.Reason, t.Message = false, v1beta1.ReasonBackOff, "Attempt 2 creates its workers at ten."
			},
			phase: held, reason: v1beta1.ReasonBackOff,
			message: "The room is for job ads-dev/launch, which claims none now. Its status says BackOff: Attempt 2 creates its " +
				"workers at ten.",
		},
		"one without a status": {
			change: func(t *Task) { t.Claims = false }, phase: held,
			message: "The room is for job ads-dev/launch, which claims none now.",
		},
		"one of somebody else": {
			change: func(t *Task) { t.Owner = "mallory" }, phase: held, reason: v1beta1.ReasonOtherOwner,
			message: "Job ads-dev/launch belongs to mallory, and the reservation is for alice. The job gets no room of it. Ask " +
				"mallory to delete the job, or correct the reservation's jobRef or owner.",
		},
		"one of somebody else that came before": {
			change: func(t *Task) { t.Owner, t.Created = "mallory", t.Created.Add(-time.Hour) }, phase: held,
			reason: v1beta1.ReasonOtherOwner, message: "Job ads-dev/launch belongs to mallory, and the reservation is for alice. " +
				"The job gets no room of it. Ask mallory to delete the job, or correct the reservation's jobRef or owner.",
		},
		"one of somebody else that has places": {
			change: func(t *Task) { t.Owner, t.Placed = "Alice", true }, phase: held, reason: v1beta1.ReasonOtherOwner,
			message: "Job ads-dev/launch belongs to Alice, and the reservation is for alice. The job gets no room of it. Ask Alice " +
				"to delete the job, or correct the reservation's jobRef or owner.",
		},
		"one that names no owner": {
			change: func(t *Task) { t.Owner = "" }, phase: held, reason: v1beta1.ReasonOtherOwner,
			message: "Job ads-dev/launch has no owner, and the reservation is for alice. The job gets no room of it. Set " +
				"spec.owner of the job to alice, or correct the reservation's jobRef.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := newBooking().step().place()
			task := b.launch()
			c.change(&task)
			b.o.Tasks = []Task{task}
			b.step()
			g.Expect(b.says().Phase).To(Equal(c.phase))
			g.Expect(b.says().Reason).To(Equal(c.reason))
			g.Expect(b.says().Message).To(Equal(c.message))
			b.step()
			if c.phase == held {
				g.Expect(b.says().Job).To(BeNil())
				g.Expect(b.room()).To(And(HaveField("Pods", HaveLen(2)), HaveField("Group.MinMember", int32(2))), "all is kept")
			}
		})
	}
}

func TestTheTaskTakesTheRoomWhoeverElseHasItsName(t *testing.T) {
	g := NewWithT(t)
	b := newBooking()
	b.o.Namespaces = append(b.o.Namespaces, Namespace{Name: "ads-prod", Labels: map[string]string{"team": "ads"}})
	b.step().place()
	other, idle := b.launch(), b.launch()
	other.Namespace, other.Owner, other.Created = "ads-prod", "mallory", b.now.Add(-time.Hour)
	idle.Claims, idle.Reason = false, v1beta1.ReasonSuspended
	b.o.Tasks = []Task{other, idle}
	g.Expect(b.step().says().Reason).To(Equal(v1beta1.ReasonSuspended), "what keeps the task itself is told first")
	b.o.Tasks[1].Claims = true
	g.Expect(b.step().says()).To(And(HaveField("Phase", v1beta1.ReservationHandingOver), HaveField("Message", ""),
		HaveField("Job", &v1beta1.GangRef{Namespace: "ads-dev", Name: "launch"})))
	later := b.launch()
	later.Namespace, later.Created = "ads-prod", b.now.Add(time.Minute)
	for _, tasks := range [][]Task{{b.launch(), later}, {later, b.launch()}} {
		b.o.Tasks = tasks
		g.Expect(b.step().says().Job.String()).To(Equal("ads-dev/launch"), "the older goes first")
	}
	later.Claims, later.Unjudged = false, true
	b.o.Tasks = []Task{later}
	g.Expect(b.step().says()).To(And(HaveField("Phase", v1beta1.ReservationHeld), HaveField("Message", "")),
		"what was handed over to one job does not go on to another unjudged")
	later.Claims, later.Unjudged = true, false
	b.o.Tasks = []Task{later, idle}
	g.Expect(b.step().says().Job.String()).To(Equal("ads-prod/launch"),
		"a later one that claims room goes before one that does not")
}

// A gang whose claim ends while the room is handed over to it must not keep everybody from the room.
func TestRoomIsHeldAgainWhenTheTaskClaimsItNoMore(t *testing.T) {
	g := NewWithT(t)
	b := newBooking().step().place()
	b.o.Tasks = []Task{b.launch()}
	b.o.Tasks[0].Asks = true
	b.step().step()
	g.Expect(b.room().Group.MinMember).To(BeZero())
	b.o.Tasks[0].Claims, b.o.Tasks[0].Unjudged = false, true
	g.Expect(b.step().says().Phase).To(Equal(v1beta1.ReservationHandingOver), "an operator that has just begun knows nothing yet")
	g.Expect(b.room().Group.MinMember).To(BeZero())
	b.o.Tasks[0].Unjudged, b.o.Tasks[0].Reason = false, v1beta1.ReasonNotPlaced
	g.Expect(b.step().says()).To(And(HaveField("Phase", v1beta1.ReservationHeld), HaveField("Reason", v1beta1.ReasonNotPlaced),
		HaveField("Job", BeNil())))
	g.Expect(b.room().Group.MinMember).To(Equal(int32(2)), "Volcano protects it again")
	b.o.Tasks[0].Unjudged = true
	g.Expect(b.step().says().Phase).To(Equal(v1beta1.ReservationHeld), "nor does one that has just begun hand it over again")
}

func TestTasksThatFindNothingToTake(t *testing.T) {
	t.Run("while nothing is held", func(t *testing.T) {
		g := NewWithT(t)
		b := newBooking().step()
		b.o.Tasks = []Task{b.launch()}
		g.Expect(b.step().says().Phase).To(Equal(v1beta1.ReservationHandedOver), "its gang waits as well as that of the reservation")
		g.Expect(b.step().room()).To(Equal(Placeholders{}))
	})
	t.Run("while nothing is held, and that claims nothing", func(t *testing.T) {
		g := NewWithT(t)
		b := newBooking().step()
		b.o.Tasks = []Task{b.launch()}
		b.o.Tasks[0].Claims, b.o.Tasks[0].Reason = false, v1beta1.ReasonSuspended
		g.Expect(b.step().says()).To(And(HaveField("Phase", v1beta1.ReservationGathering),
			HaveField("Reason", v1beta1.ReasonSuspended)), "the room is gathered for it meanwhile")
	})
	t.Run("that goes before it took the room", func(t *testing.T) {
		g := NewWithT(t)
		b := newBooking().step().place()
		since := metav1.NewTime(b.now)
		b.o.Tasks = []Task{b.launch()}
		b.step()
		b.o.Tasks = nil
		g.Expect(b.step().says()).To(Equal(v1beta1.ReservationStatus{
			Name: "launch", Phase: v1beta1.ReservationHeld, Placed: 2, Since: since,
		}))
		b.o.Tasks = []Task{b.launch()}
		b.o.Tasks[0].Asks = true
		b.step().step()
		b.o.Tasks = nil
		g.Expect(b.step().room().Group.MinMember).To(Equal(int32(2)), "and it is protected again")
	})
}

func TestReservationExpires(t *testing.T) {
	g := NewWithT(t)
	b := newBooking().step().place()
	g.Expect(Plan(b.o, b.now).Again).To(Equal(time.Hour))
	b.now = b.now.Add(time.Hour)
	g.Expect(b.step().says().Phase).To(Equal(v1beta1.ReservationExpired))
	g.Expect(b.step().room()).To(Equal(Placeholders{}))
	b.spec().Until = metav1.NewTime(b.now.Add(time.Hour))
	g.Expect(b.step().says().Phase).To(Equal(v1beta1.ReservationGathering), "who prolongs it has it gathered anew")
	g.Expect(b.step().room().Pods).To(HaveLen(2))
}

func TestReservationFollowsItsSpec(t *testing.T) {
	g := NewWithT(t)
	b := newBooking().step().place()
	before := b.room()
	room := b.room()
	room.Pods = room.Pods[:1]
	b.o.Placeholders[ReservationKey{"ads", "launch"}] = room
	b.step()
	g.Expect(b.room().Pods).To(HaveLen(2), "one that was lost comes back")

	b.spec().Replicas = 3
	b.step()
	g.Expect(b.room().Pods).To(HaveLen(3))
	g.Expect(b.room().Group.Name).NotTo(Equal(before.Group.Name), "another gang")
	g.Expect(b.room().Pods).NotTo(ContainElement(HaveField("Name", before.Pods[0].Name)))

	b.o.Profiles[0].Object.Spec.Reservations = nil
	d := Plan(b.o, b.now)
	g.Expect(d.Abandoned).To(HaveLen(1))
	g.Expect(d.Abandoned[0].DeletePods).To(HaveLen(3))
	g.Expect(d.Abandoned[0].DeleteGroup).To(Equal(b.room().Group))
	b.o.Profiles = nil
	g.Expect(Plan(b.o, b.now).Abandoned).To(HaveLen(1), "also without the profile")
}

func TestWhatAReservationHoldsIsTheTeams(t *testing.T) {
	g := NewWithT(t)
	b := newBooking()
	b.o.Reserved = map[string]capacity.Amounts{"ads": {"nvidia.com/gpu": 12}}
	b.step()
	used := b.last.Status.Used["nvidia.com/gpu"]
	g.Expect(used.Value()).To(Equal(int64(12)))
	g.Expect(b.last.Status.Lent).To(BeEmpty(), "and it is not lent")
}

func TestPlaceholderIsAPodThatDoesNothing(t *testing.T) {
	g := NewWithT(t)
	b := newBooking()
	b.spec().Name = "a-very-long-name-of-a-reservation-x"
	pods := Plan(b.o, b.now).Profiles[0].Placeholders[0].CreatePods
	pod := pods[1]
	g.Expect(len(pod.Name)).To(BeNumerically("<=", 63))
	g.Expect(pod.Labels).To(And(HaveKeyWithValue(v1beta1.LabelProfile, "ads"), HaveKeyWithValue(v1beta1.LabelWorkerIndex, "1")))
	g.Expect(pod.Spec.SchedulerName).To(Equal(gang.SchedulerName))
	g.Expect(pod.Spec.PriorityClassName).To(Equal("tideline-exploratory"))
	g.Expect(*pod.Spec.TerminationGracePeriodSeconds).To(BeZero(), "its room is free at once")
	g.Expect(pod.Spec.Tolerations).To(ConsistOf(corev1.Toleration{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}))
	g.Expect(pod.Spec.Containers[0].Image).To(Equal("registry.k8s.io/pause:3.10"))
	g.Expect(metav1.GetControllerOf(pod).Name).To(Equal("ads"), "it goes with the profile")
}
