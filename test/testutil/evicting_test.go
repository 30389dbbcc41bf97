package testutil

import (
	"os"
	"testing"

	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/test/cluster"
)

// Both configurations are right as the operator sees it, and each is made of the other.
func TestBothPairsAreConfigured(t *testing.T) {
	shipped, err := os.ReadFile("../../config/volcano/volcano-scheduler.conf")
	if err != nil {
		t.Fatal(err)
	}
	conf := string(shipped)
	for _, pair := range []Evicting{ByTask, ByGang, ByTask, ByGang} {
		if conf, err = pair.Configure(conf); err != nil {
			t.Fatal(err)
		}
		data := map[string]string{"volcano-scheduler.conf": conf}
		if found := gang.ListObstacles(data); len(found) > 0 {
			t.Errorf("%s: %v", pair.Name, found)
		}
		if got, want := gang.EvictsForGangs(data), pair == ByGang; got != want {
			t.Errorf("%s evicts for gangs: %t, want %t", pair.Name, got, want)
		}
	}
	if _, err := ByTask.Configure("actions: \"allocate\"\n"); err == nil {
		t.Error("a configuration of another kind is accepted")
	}
}

func TestWhoEvicted(t *testing.T) {
	for message, want := range map[string]Evicting{
		"preempt": ByTask, "Pod is evicted, because of reclaim": ByTask,
		"gangreclaim": ByGang, "Pod is evicted, because of gangpreempt": ByGang,
	} {
		for _, pair := range BothPairs {
			if got := pair.Evicted(message); got != (pair == want) {
				t.Errorf("%s: by %s: %t", message, pair.Name, got)
			}
		}
	}
}

func TestPairOfGangsNeedsVolcano115(t *testing.T) {
	for chosen, want := range map[string]string{
		"": "", "1.15.1": "", "v1.16.0": "", "1.14.1": "Volcano 1.14.1 has no gangpreempt, gangreclaim",
	} {
		t.Setenv(cluster.VolcanoVariable, chosen)
		if got := ByGang.Missing(); got != want {
			t.Errorf("%q: %q, want %q", chosen, got, want)
		}
		if got := ByTask.Missing(); got != "" {
			t.Errorf("%q: %q, want nothing", chosen, got)
		}
	}
}
