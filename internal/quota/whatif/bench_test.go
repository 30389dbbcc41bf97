package whatif

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/quota"
)

// busyWeek has 9,000 trainings of 15 teams on 63 nodes, which ask for more than there is, with a cap for each user.
func busyWeek() (*Past, *Cluster, []*v1beta1.ResourceQuotaProfile) {
	r := rand.New(rand.NewPCG(1, 2))
	past, c := &Past{From: monday, To: monday.AddDate(0, 0, 7), KnownSince: monday}, eight()
	c.Nodes, c.Namespaces = nil, nil
	for i := range 63 {
		c.Nodes = append(c.Nodes, capacity.Node{Name: fmt.Sprint("n", i), Allocatable: capacity.Amounts{
			gpu: 8, corev1.ResourceMemory: 512 << 30, corev1.ResourcePods: 110,
		}})
	}
	var profiles []*v1beta1.ResourceQuotaProfile
	for i := range 15 {
		name := fmt.Sprint("team-", i)
		profiles = append(profiles, ofTeam(name, perUser(32)))
		c.Namespaces = append(c.Namespaces, quota.Namespace{Name: name, Labels: map[string]string{"team": name}})
	}
	for i := range 9000 {
		came := monday.Add(time.Duration(i) * 7 * 24 * time.Hour / 9000)
		run := ran(fmt.Sprint("team-", r.IntN(15)), fmt.Sprint("run-", i), []int{1, 1, 1, 2, 4, 8}[r.IntN(6)], 0, 0, 0)
		run.Asked, run.Came, run.Started = came, came, came.Add(time.Duration(r.IntN(60))*time.Minute)
		run.Ended = run.Started.Add(time.Duration(r.ExpFloat64() * float64(4*time.Hour)))
		run.User = fmt.Sprint("user-", r.IntN(100))
		past.Runs = append(past.Runs, run)
	}
	return past, c, profiles
}

// BenchmarkPlayPast is what one replay of such a week costs.
func BenchmarkPlayPast(b *testing.B) {
	past, c, profiles := busyWeek()
	for b.Loop() {
		all := PlayPast(past, c, profiles, func() bool { return false })
		unstarted := 0
		for _, o := range all {
			unstarted += len(o.Unstarted)
		}
		b.ReportMetric(float64(unstarted), "not-begun")
	}
}
