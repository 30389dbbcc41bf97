package growth

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestAStepPaysWhenSurplusStaysLongEnough(t *testing.T) {
	g := NewWithT(t)
	step := Step{Training: 4, Joining: 2, Devices: 1, Outage: time.Minute, First: true}
	g.Expect(step.Weigh()).To(Equal(Worth{Gain: 7080, Cost: 240}), "an hour where nothing is known: 2 * (3600 - 60), 4 * 60")
	g.Expect(step.IsDue()).To(BeTrue())
	step.Stay = Stay{Held: 11 * time.Hour, Left: 239}
	g.Expect(step.Stay.Expected()).To(Equal(3 * time.Minute))
	g.Expect(step.Weigh()).To(Equal(Worth{Gain: 240, Cost: 240}), "2 * (180 - 60), 4 * 60")
	g.Expect(step.IsDue()).To(BeFalse())
	step.Devices = 8
	g.Expect(step.Weigh()).To(Equal(Worth{Gain: 8 * 240, Cost: 8 * 240}), "in device-seconds")
	step.Stay.Held = time.Minute
	g.Expect(step.Weigh().Gain).To(BeZero(), "surplus leaves before it has trained")
}

func TestAStepWaitsUntilAsMuchWasMissedAsItCosts(t *testing.T) {
	g := NewWithT(t)
	step := Step{Training: 8, Joining: 2, Devices: 8, Outage: time.Minute, Idle: time.Minute}
	g.Expect(step.Weigh()).To(Equal(Worth{Gain: 16 * 3540, Cost: 3840, Missed: 960}))
	g.Expect(step.TimeLeft()).To(Equal(3*time.Minute), "2 workers miss in 4 minutes what 8 do in one")
	g.Expect(step.IsDue()).To(BeFalse())
	step.Idle = 4 * time.Minute
	g.Expect(step.IsDue()).To(BeTrue())
	much := Step{Training: 8, Joining: 16, Outage: time.Minute}
	g.Expect(much.TimeLeft()).To(Equal(30*time.Second), "much room is worth a sooner restart")
	step.Idle, step.First = 0, true
	g.Expect(step.IsDue()).To(BeTrue(), "the first growth waits for nothing")
}

func TestRoomKnowsForHowLongItHasBeenFree(t *testing.T) {
	g := NewWithT(t)
	start := time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	r := Room{}.Follow(2, 0, at(0))
	r = r.Follow(2, 0, at(2))
	g.Expect(r.Since).To(Equal(at(0)))
	r = r.Follow(6, 0, at(3))
	g.Expect(r.Since).To(Equal(at(2)), "2 workers for 3 minutes are 6 for one")
	r = r.Follow(4, 0, at(5))
	g.Expect(r.Since).To(Equal(at(2)), "those that still fit have waited as long on average")
	g.Expect(r.Follow(4, 2, at(6)).Since).To(Equal(at(6)), "the job grew")
	r = r.Follow(0, 0, at(7))
	g.Expect(r.Since).To(BeZero(), "others took it")
	g.Expect(r.Follow(1, 0, at(9)).Since).To(Equal(at(9)))
}

func TestCooldownDoublesWhileGainsAreLost(t *testing.T) {
	g := NewWithT(t)
	own, lost := 5*time.Minute, int32(0)
	var cooldowns []time.Duration
	for range 8 {
		lost = CountQuickLosses(CooldownAfter(own, lost), lost, time.Minute)
		cooldowns = append(cooldowns, CooldownAfter(own, lost)/time.Minute)
	}
	g.Expect(cooldowns).To(Equal([]time.Duration{5, 10, 20, 40, 60, 60, 60, 60}), "in minutes; no longer than an hour")
	left := CountQuickLosses(CooldownAfter(own, 3), 3, 45*time.Minute)
	g.Expect(left).To(Equal(int32(1)), "it stayed for two cooldowns of 20 minutes")
	g.Expect(CountQuickLosses(own, 3, 100*time.Hour)).To(BeZero())
	g.Expect(CountQuickLosses(0, 3, 0)).To(BeZero(), "without a cooldown none is doubled")
	g.Expect(CooldownAfter(2*time.Hour, 5)).To(Equal(2*time.Hour), "a longer one is kept")
}

func TestAnHourHasAsManyGrowthsAsItMay(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)
	var debt, next time.Time
	for range 12 {
		g.Expect(next).To(BeTemporally("<=", now))
		debt, next = ChargeBudget(debt, now, 12)
	}
	g.Expect(next).To(Equal(now), "the thirteenth is the first that is left of the hour")
	_, next = ChargeBudget(debt, now, 12)
	g.Expect(next).To(Equal(now.Add(5*time.Minute)), "then one each five minutes")
	_, next = ChargeBudget(debt, now.Add(3*time.Hour), 12)
	g.Expect(next).To(BeTemporally("<", now.Add(3*time.Hour)), "what was spent long ago counts no more")
}

func TestMeterMeasuresTheLongestPauseAfterAChange(t *testing.T) {
	g := NewWithT(t)
	now, m, step := time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC), Meter{}, int64(0)
	train := func(steps int) {
		for range steps {
			now, step = now.Add(2*time.Second), step+1
			m.NoteProgress(step, now)
		}
	}
	m.NoteChange(now)
	train(10)
	m.NoteChange(now)
	train(5) // The agents have not seen the new worker yet.
	now = now.Add(40 * time.Second)
	m.NoteProgress(step-3, now) // Steps that are done again are no progress.
	now = now.Add(20 * time.Second)
	train(20)
	_, count := m.Outage()
	g.Expect(count).To(BeZero(), "it may still come")
	train(20)
	outage, count := m.Outage()
	g.Expect([]any{outage, count}).To(Equal([]any{time.Minute, 1}))
	train(100)
	_, count = m.Outage()
	g.Expect(count).To(Equal(1), "each change is measured once")
	g.Expect(SmoothOutage(0, time.Minute)).To(Equal(time.Minute))
	g.Expect(SmoothOutage(time.Minute, 2*time.Minute)).To(Equal(78 * time.Second))
}
