package merging

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// pods sets how many a merge has.
func pods(n int32) func(*v1beta1.MergeJobSpec) {
	return func(s *v1beta1.MergeJobSpec) { s.MinReplicas, s.MaxReplicas = n, n }
}

// heldUp is a pool of 8 in which "runs" has 4 for an hour, "short" 1 for half an hour, and the head waits for 6.
func heldUp(t *testing.T) (w *simulator, head *merger) {
	t.Helper()
	w = newSimulator(t, 8)
	for name, takes := range map[string]time.Duration{"runs": time.Hour, "short": 30 * time.Minute} {
		n := int32(4)
		if name == "short" {
			n = 1
		}
		m := w.add(name, pods(n)).full(w, 11*time.Hour)
		m.past = Past{Usual: takes, Longest: takes}
	}
	w.settle()
	head = w.add("head", pods(6)).full(w, 12*time.Hour)
	w.settle()
	return w, head
}

// joins adds a merge of that many pods whose runs take that long.
func (w *simulator) joins(name string, n int32, takes time.Duration) *merger {
	m := w.add(name, pods(n)).full(w, 11*time.Hour)
	m.past = Past{Usual: takes, Longest: takes}
	return m
}

func TestHistoryTellsHowLongRunsTake(t *testing.T) {
	g := NewWithT(t)
	ran := func(minutes int, outcome v1beta1.MergeOutcome) v1beta1.MergeResult {
		return v1beta1.MergeResult{
			Outcome: outcome, StartTime: timePointer(morning), EndTime: metaTime(morning.Add(time.Duration(minutes) * time.Minute)),
		}
	}
	g.Expect(PastIn(nil)).To(BeZero())
	g.Expect(PastIn([]v1beta1.MergeResult{
		ran(20, v1beta1.OutcomeMerged), ran(90, v1beta1.OutcomeFailed), ran(40, v1beta1.OutcomeMerged),
		ran(10, v1beta1.OutcomeMerged),
		{Outcome: v1beta1.OutcomeMerged, EndTime: metaTime(morning)},
	})).To(Equal(Past{Usual: 21 * time.Minute, Longest: 41 * time.Minute}), "runs that merged, and were seen to run")
	var held []time.Duration
	for i := range 12 {
		held = append(held, time.Duration(20-i)*time.Minute)
	}
	g.Expect(PastOf(held)).To(Equal(Past{Usual: 14 * time.Minute, Longest: 18 * time.Minute}), "the last ten")
}

func TestMergeThatEndsInTimeGoesAhead(t *testing.T) {
	g := NewWithT(t)
	w, head := heldUp(t)
	small := w.joins("small", 3, 50*time.Minute)
	w.settle()
	g.Expect(w.running()).To(ContainElement(small))
	g.Expect(small.status().Message).To(HaveSuffix(
		" It went ahead of head: it should end by 06:50:20Z, and head should have room at 07:00:00Z."))
	g.Expect(head.status().Summary).To(Equal("Queued (asking)"))
	g.Expect(*head.status().Position).To(Equal(int32(1)))
	g.Expect(head.status().Message).To(HaveSuffix(
		" small goes ahead: it should end by 06:50:20Z, and this merge should have room at 07:00:00Z."))
	w.now = w.now.Add(50 * time.Minute)
	w.merge(small)
	w.settle()
	g.Expect(head.status().Message).NotTo(ContainSubstring("small"))
}

func TestMergeThatWouldDelayTheHeadWaits(t *testing.T) {
	g := NewWithT(t)
	w, _ := heldUp(t)
	long := w.joins("long", 3, 61*time.Minute)
	unknown := w.add("unknown", pods(3)).full(w, 11*time.Hour)
	w.settle()
	for _, m := range []*merger{long, unknown} {
		g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonInLine), m.object.Name)
	}
	unknown.object.Spec.RunTimeoutSeconds, unknown.object.Spec.StartTimeoutSeconds = ptr.To[int32](3000), ptr.To[int32](300)
	unknown.object.Generation++
	unknown.look()
	w.settle()
	g.Expect(unknown.status().Reason).To(Equal(v1beta1.ReasonMerging), "its timeouts end it in time")
}

func TestMergeInRoomThatTheHeadDoesNotNeedGoesAhead(t *testing.T) {
	g := NewWithT(t)
	w, head := heldUp(t)
	long := w.joins("long", 2, 20*time.Hour)
	w.settle()
	g.Expect(long.status().Message).To(HaveSuffix(" It went ahead of head: it uses room that head will not need."))
	g.Expect(head.status().Message).To(HaveSuffix(" long goes ahead: it uses room that this merge will not need."))
	more := w.joins("more", 1, 20*time.Hour)
	w.settle()
	g.Expect(more.status().Reason).To(Equal(v1beta1.ReasonInLine), "8 - 2 is all that the head needs")
}

func TestNoMergeGoesAheadInAStrictPool(t *testing.T) {
	g := NewWithT(t)
	w, _ := heldUp(t)
	w.config.Merges.StrictPools = []string{"tideline-merge"}
	small := w.joins("small", 1, time.Minute)
	w.settle()
	g.Expect(small.status().Reason).To(Equal(v1beta1.ReasonInLine))
}

func TestMergeThatIsNotPlacedAtOnceStandsBack(t *testing.T) {
	g := NewWithT(t)
	w, head := heldUp(t)
	small := w.joins("small", 2, time.Minute)
	small.unplaceable = true
	w.settle()
	joined := *small.status().QueueTime
	g.Expect(small.status().Summary).To(Equal("Queued (going ahead)"))
	g.Expect(*small.status().Position).To(Equal(int32(2)))
	w.now = w.now.Add(20 * time.Second)
	w.settle()
	g.Expect(small.status().Summary).To(Equal("Queued (2 of 2)"))
	g.Expect(*small.status().QueueTime).To(Equal(joined))
	g.Expect(small.pods).To(BeEmpty())
	g.Expect(small.status().SetAside).To(BeNil())
	g.Expect(head.status().Summary).To(Equal("Queued (asking)"))
	small.unplaceable = false
	w.now = w.now.Add(9 * time.Minute)
	w.settle()
	g.Expect(small.status().Reason).To(Equal(v1beta1.ReasonInLine), "it does not try again and again")
	w.now = w.now.Add(time.Minute)
	w.settle()
	g.Expect(small.status().Reason).To(Equal(v1beta1.ReasonMerging))
}

func TestMergeThatStoodBackIsLookedAtAgainOnlyIfItMayGoAheadThen(t *testing.T) {
	for name, c := range map[string]struct {
		takes   time.Duration
		trouble *Trouble
		again   time.Duration
	}{
		"it still ends in time":    {takes: 40 * time.Minute, again: aheadPause},
		"it would end too late":    {takes: 55 * time.Minute},
		"its store cannot be read": {takes: 40 * time.Minute, trouble: &Trouble{Reason: v1beta1.ReasonStoreUnreachable}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w, _ := heldUp(t)
			small := w.joins("small", 3, c.takes)
			small.unplaceable = true
			w.settle()
			w.now = w.now.Add(aheadTimeout)
			w.settle()
			g.Expect(small.status().Summary).To(Equal("Queued (2 of 2)"))
			small.sighting.Trouble = c.trouble
			at := w.plan().RequeueAfter
			if c.again > 0 {
				g.Expect(at).To(Equal(c.again))
			} else {
				g.Expect(at).To(BeNumerically(">", aheadPause))
			}
		})
	}
}

func TestMergeStandsBackOnceTheHeadHasRoom(t *testing.T) {
	g := NewWithT(t)
	w, head := heldUp(t)
	head.unplaceable = true // Volcano has not looked yet.
	small := w.joins("small", 2, time.Minute)
	small.unplaceable = true
	w.settle()
	g.Expect(small.status().Reason).To(Equal(v1beta1.ReasonGoingAhead))
	for _, m := range w.running() {
		w.merge(m)
	}
	head.unplaceable = false
	w.settle()
	g.Expect(head.status().Reason).To(Equal(v1beta1.ReasonMerging))
	g.Expect(small.status().Reason).To(Equal(v1beta1.ReasonAsking), "it is the head now")
}

func TestCallByHandThatStoodBackIsStillACall(t *testing.T) {
	g := NewWithT(t)
	w, _ := heldUp(t)
	small := w.joins("small", 2, time.Minute)
	small.object.Annotations = map[string]string{v1beta1.AnnotationRunNow: "1"}
	small.unplaceable = true
	w.settle()
	g.Expect(small.status().RunNow).To(Equal("1"))
	w.now = w.now.Add(20 * time.Second)
	w.settle()
	g.Expect(small.status().RunNow).To(BeEmpty())
	g.Expect(small.status().Summary).To(Equal("Queued (2 of 2)"))
}
