package gang

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// SchedulerConfigMap is where Volcano's scheduler has its configuration, as Volcano's own installation names it.
var SchedulerConfigMap = types.NamespacedName{Namespace: "volcano-system", Name: "volcano-scheduler-configmap"}

// schedulerConfKey is the key of the ConfigMap that the scheduler reads.
const schedulerConfKey = "volcano-scheduler.conf"

// schedulerConf is the part of the scheduler's configuration that decides whether surplus gives way
// (volcano.sh/volcano/pkg/scheduler/conf).
type schedulerConf struct {
	Actions string `json:"actions"`
	Tiers   []struct {
		Plugins []struct {
			Name              string `json:"name"`
			EnablePreemptable *bool  `json:"enablePreemptable"`
		} `json:"plugins"`
	} `json:"tiers"`
}

// Obstacles lists, in clauses for people, what in the scheduler's configuration keeps Volcano from letting surplus give way to
// waiting gangs by itself; it is empty when nothing does. data is that of the ConfigMap, nil when there is none.
func Obstacles(data map[string]string) []string {
	text, ok := data[schedulerConfKey]
	if !ok {
		return []string{fmt.Sprintf("there is no ConfigMap %s with key %s", SchedulerConfigMap, schedulerConfKey)}
	}
	conf := schedulerConf{}
	if err := yaml.Unmarshal([]byte(text), &conf); err != nil {
		return []string{"the configuration cannot be read: " + err.Error()}
	}
	var found []string
	actions := strings.FieldsFunc(conf.Actions, func(r rune) bool { return r == ',' || r == ' ' })
	for _, action := range []string{"preempt", "reclaim"} {
		if !slices.Contains(actions, action) {
			found = append(found, "action "+action+" is missing")
		}
	}
	for _, plugin := range []string{"priority", "gang"} {
		if !conf.preempts(plugin) {
			found = append(found, "plugin "+plugin+" has no say in preemption")
		}
	}
	if conf.has("overcommit") {
		found = append(found, "plugin overcommit counts surplus as used, which keeps large gangs Pending")
	}
	return found
}

func (c schedulerConf) has(name string) bool {
	for _, tier := range c.Tiers {
		for _, p := range tier.Plugins {
			if p.Name == name {
				return true
			}
		}
	}
	return false
}

// preempts tells whether the plugin takes part in choosing victims, which is so unless it is switched off.
func (c schedulerConf) preempts(name string) bool {
	for _, tier := range c.Tiers {
		for _, p := range tier.Plugins {
			if p.Name == name && (p.EnablePreemptable == nil || *p.EnablePreemptable) {
				return true
			}
		}
	}
	return false
}
