package growth

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// amdahl are speeds of a training in which each worker has its own part of the work, a share of what one does.
func amdahl(own float64, sizes ...int32) (all []Speed) {
	for _, n := range sizes {
		all = append(all, Speed{Workers: n, PerHour: 3 * float64(n) / (1 + own*float64(n))})
	}
	return all
}

func TestGainFollowsFromTwoSizes(t *testing.T) {
	g := NewWithT(t)
	c := FitCurve(4, amdahl(0.05, 4, 12))
	speed := func(n float64) float64 { return n / (1 + 0.05*n) }
	for _, n := range []int32{4, 12, 24, 60} {
		x := float64(n)
		g.Expect(c.GainAt(n)).To(BeNumerically("~", (speed(x+1)-speed(x))/(speed(4)/4), 1e-9), "what one more adds to %d", n)
	}
	g.Expect(c.GainAt(1)).To(Equal(c.GainAt(4)), "fewer than the core do not train")
	g.Expect(c.ShareOf(8, 8)).To(BeNumerically("~", (speed(16)/speed(8)-1)*8/8, 1e-9))
	most := c.LargestWorthwhile(0.25)
	g.Expect(c.GainAt(most-1)).To(BeNumerically(">=", 0.25), "the last one gains enough")
	g.Expect(c.GainAt(most)).To(BeNumerically("<", 0.25))
	g.Expect(c.LargestWorthwhile(0)).To(BeEquivalentTo(math.MaxInt32))
	g.Expect(c.LargestWorthwhile(1)).To(BeEquivalentTo(4), "the core trains whatever it gains")
}

func TestTooLittleIsKnownToSayWhatAWorkerGains(t *testing.T) {
	for name, speeds := range map[string][]Speed{
		"nothing": nil, "one size": amdahl(0.1, 8), "two that are close": amdahl(0.1, 8, 9),
		"no speed":  {{Workers: 8}, {Workers: 16, PerHour: -1}},
		"nonsense":  {{Workers: 8, PerHour: math.NaN()}, {Workers: 16, PerHour: math.Inf(1)}},
		"no worker": {{Workers: 0, PerHour: 3}, {Workers: -4, PerHour: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := FitCurve(8, speeds)
			g.Expect(c.GainAt(8)).To(BeNumerically("~", 0.94, 0.01))
			g.Expect(c.GainAt(64)).To(BeNumerically("~", 0.82, 0.01))
			g.Expect(Curve{}.GainAt(64)).To(Equal(AssumedGain))
			g.Expect(c.ShareOf(8, 8)).To(Equal(1.0))
			g.Expect(c.LargestWorthwhile(0.5)).To(BeEquivalentTo(math.MaxInt32))
		})
	}
}

func TestGainIsBetweenNothingAndAWorkerOfTheCore(t *testing.T) {
	g := NewWithT(t)
	faster := FitCurve(4, []Speed{{4, 4}, {8, 9}, {16, 20}})
	g.Expect(faster.GainAt(16)).To(BeNumerically("~", 1, 1e-9), "faster than in proportion is no reason to expect more")
	g.Expect(faster.LargestWorthwhile(0.9)).To(BeEquivalentTo(math.MaxInt32))
	slower := FitCurve(4, []Speed{{4, 4}, {16, 3}})
	g.Expect(slower.GainAt(4)).To(BeZero(), "more made it slower")
	g.Expect(slower.LargestWorthwhile(0.1)).To(BeEquivalentTo(4))
	g.Expect(slower.ShareOf(4, 4)).To(BeZero())
}

func TestSurplusThatGainsTooLittleIsNotWanted(t *testing.T) {
	g := NewWithT(t)
	job := &v1beta1.ElasticTrainingJob{}
	job.Spec.Progress = &v1beta1.JobProgress{}
	job.Status.Attempt = &v1beta1.AttemptStatus{MinReplicas: 4, MaxReplicas: 64}
	job.Status.Elasticity = &v1beta1.ElasticityStatus{}
	for _, s := range amdahl(0.1, 4, 8) {
		job.Status.Elasticity.Speeds = append(job.Status.Elasticity.Speeds, v1beta1.MeasuredSpeed{
			Workers: s.Workers, PercentPerHour: fmt.Sprint(s.PerHour),
		})
	}
	g.Expect(WorthwhileSurplus(&job.Spec, &job.Status, 60)).To(BeEquivalentTo(23),
		"with 10 %%, the default: the worker after 27 adds 0.14 / (0.37 * 0.38) of what one of the core adds")
	job.Spec.Elasticity.Step = 4
	g.Expect(WorthwhileSurplus(&job.Spec, &job.Status, 60)).To(BeEquivalentTo(20), "in whole steps")
	job.Spec.Elasticity.Growth.LeastGainPercent = ptr.To[int32](0)
	g.Expect(WorthwhileSurplus(&job.Spec, &job.Status, 60)).To(BeEquivalentTo(60), "no limit")
	job.Spec.Elasticity.Growth.LeastGainPercent, job.Spec.Progress = nil, nil
	g.Expect(WorthwhileSurplus(&job.Spec, &job.Status, 60)).To(BeEquivalentTo(60), "a job that tells no progress")
}

func TestTheSpeedsThatWereMeasuredLastAreKept(t *testing.T) {
	g := NewWithT(t)
	start := time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC)
	of := func(workers int32, minute int) v1beta1.MeasuredSpeed {
		return v1beta1.MeasuredSpeed{Workers: workers, PercentPerHour: strconv.Itoa(minute),
			Time: metav1.NewTime(start.Add(time.Duration(minute) * time.Minute))}
	}
	var all []v1beta1.MeasuredSpeed
	for i := range v1beta1.MaxSpeeds {
		all = KeepSpeed(all, of(int32(24-2*i), i))
	}
	g.Expect(all).To(HaveLen(v1beta1.MaxSpeeds))
	g.Expect(all[0].Workers).To(BeEquivalentTo(10), "by rising number of workers")
	g.Expect(KeepSpeed(all, of(10, 99))[0].PercentPerHour).To(Equal("99"), "the newer of one size")
	g.Expect(KeepSpeed(all, of(10, 1))[0].PercentPerHour).To(Equal("7"), "not an older one")
	more := KeepSpeed(all, of(11, 99))
	g.Expect(more).To(HaveLen(v1beta1.MaxSpeeds))
	g.Expect(more).NotTo(ContainElement(HaveField("Workers", BeEquivalentTo(24))), "the first that was measured makes place")
	g.Expect(all).To(ContainElement(HaveField("Workers", BeEquivalentTo(24))), "what was given is unchanged")
}
