package testutil

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/test/cluster"
)

// Evicting is a pair of Volcano's actions that evict: one within a queue, and one between queues.
type Evicting struct {
	// Name is how a page has the pair, as it stands in the line actions.
	Name string
	// arguments are what the pair needs besides, at the end of a configuration.
	arguments string
}

var (
	// ByTask evicts pod by pod. config/volcano has it.
	ByTask = Evicting{Name: "preempt, reclaim"}
	// ByGang evicts for a whole gang; Volcano has it since 1.15.
	ByGang = Evicting{Name: "gangpreempt, gangreclaim", arguments: `configurations:
# Without this, a gang of lower priority is taken apart.
- name: gangpreempt
  arguments:
    allowWholeBundle: false
- name: gangreclaim
  arguments:
    allowWholeBundle: false
`}
	// BothPairs are all there are.
	BothPairs = []Evicting{ByTask, ByGang}
)

// actionsLine has what comes before and after the pair in the line actions of config/volcano.
var actionsLine = regexp.MustCompile(`(?m)^(actions: "enqueue, allocate, )(?:gang)?preempt, (?:gang)?reclaim(, backfill")$`)

// Configure returns the configuration of config/volcano with this pair instead of the one that it has.
func (e Evicting) Configure(conf string) (string, error) {
	conf, _, _ = strings.Cut(conf, "configurations:\n")
	if len(actionsLine.FindAllString(conf, -1)) != 1 {
		return "", fmt.Errorf("no line like %s", actionsLine)
	}
	return actionsLine.ReplaceAllString(conf, "${1}"+e.Name+"${2}") + e.arguments, nil
}

// Evicted tells whether the pair evicted for that reason, as Volcano's event says it.
func (e Evicting) Evicted(message string) bool {
	words := strings.Fields(message)
	return len(words) > 0 && strings.Contains(" "+e.Name+",", " "+words[len(words)-1]+",")
}

// Missing says why a cluster of [cluster.Start] cannot have the pair; empty if it can.
func (e Evicting) Missing() string {
	chosen := os.Getenv(cluster.VolcanoVariable) // Empty for the newest.
	v, err := version.ParseSemantic(chosen)
	if e != ByGang || err != nil || v.AtLeast(version.MustParseSemantic("1.15.0")) {
		return ""
	}
	return "Volcano " + chosen + " has no " + e.Name
}

// EvictedFor lists why Volcano evicted in the namespace, as its events say it: more than one of each eviction.
func (s *Scenario) EvictedFor() ([]string, error) {
	list := &corev1.EventList{}
	err := s.Client.List(s.ctx, list, client.InNamespace(s.Namespace))
	var messages []string
	for i := range list.Items {
		if e := &list.Items[i]; e.Reason == "Evict" {
			messages = append(messages, e.Message)
		}
	}
	return messages, err
}
