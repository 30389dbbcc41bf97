package gang

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// SchedulerConfigMap is where Volcano's scheduler has its configuration, as Volcano's own installation names it.
var SchedulerConfigMap = types.NamespacedName{Namespace: "volcano-system", Name: "volcano-scheduler-configmap"}

// schedulerConfKey is the key of the ConfigMap that the scheduler reads.
const schedulerConfKey = "volcano-scheduler.conf"

// The actions by which Volcano evicts, as its code registers them (pkg/scheduler/actions, v1.15.1). Its page on the design
// writes gangPreempt and gangReclaim, which its scheduler does not know.
const (
	preempt     = "preempt"
	reclaim     = "reclaim"
	gangPreempt = "gangpreempt"
	gangReclaim = "gangreclaim"
)

var (
	byTask = []string{preempt, reclaim}
	byGang = []string{gangPreempt, gangReclaim}
	// evicting are both pairs of actions. Volcano allows one of them in a configuration (docs/design/gang-aware-eviction-design.md).
	evicting = slices.Concat(byTask, byGang)
	// actions are all actions of Volcano v1.15.1.
	actions = slices.Concat(evicting, []string{"enqueue", allocate, "backfill", "shuffle"})
)

const (
	// allocate places gangs where there is room, and the actions that evict belong after it.
	allocate = "allocate"
	// allowWholeBundle has the actions by gang evict pods that a gang needs, unless it is false.
	allowWholeBundle = "allowWholeBundle"
)

// Obstacle is something in the configuration of Volcano's scheduler that keeps surplus from giving way as it should.
type Obstacle struct {
	// What it is, a clause for people.
	What string
	// Do says how to mend it, with the lines of the configuration; empty where there is none to change. Several obstacles may
	// have the same remedy.
	Do string
}

// Obstacles are what [Examine] finds, without the remedies; empty when nothing is found.
func Obstacles(data map[string]string) []string {
	var found []string
	for _, o := range Examine(data) {
		found = append(found, o.What)
	}
	return found
}

// Examine lists what in the scheduler's configuration keeps Volcano from letting surplus give way to waiting gangs by itself, as
// it should; it is empty when nothing does. data is that of the ConfigMap, nil when there is none.
func Examine(data map[string]string) []Obstacle {
	text, ok := data[schedulerConfKey]
	if !ok {
		return []Obstacle{{What: fmt.Sprintf("there is no ConfigMap %s with key %s", SchedulerConfigMap, schedulerConfKey)}}
	}
	conf := schedulerConf{}
	if err := yaml.Unmarshal([]byte(text), &conf); err != nil {
		return []Obstacle{{What: "the configuration cannot be read: " + err.Error()}}
	}
	found := conf.examineActions()
	if conf.evictsByGang() {
		found = append(found, conf.examineByGang()...)
	} else {
		found = append(found, conf.examineByTask()...)
	}
	if conf.has("overcommit") {
		found = append(found, Obstacle{
			"plugin overcommit counts surplus as used, which keeps large gangs Pending", "remove the line - name: overcommit",
		})
	}
	return found
}

// EvictsForGangs tells whether the configuration has an action that came with Volcano 1.15; an older Volcano refuses it.
func EvictsForGangs(data map[string]string) bool {
	conf := schedulerConf{}
	return yaml.Unmarshal([]byte(data[schedulerConfKey]), &conf) == nil && len(conf.listed(byGang)) > 0
}

// schedulerConf is the part of the scheduler's configuration that decides whether surplus gives way
// (volcano.sh/volcano/pkg/scheduler/conf).
type schedulerConf struct {
	Actions        string          `json:"actions"`
	Tiers          []schedulerTier `json:"tiers"`
	Configurations []struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
	} `json:"configurations"`
}

type schedulerTier struct {
	Plugins []struct {
		Name              string `json:"name"`
		EnablePreemptable *bool  `json:"enablePreemptable"`
	} `json:"plugins"`
}

// names are the actions as they are written, and known are those of them that a known action is meant by, in their order.
func (c schedulerConf) names() (written, known []string) {
	for name := range strings.SplitSeq(c.Actions, ",") {
		name = strings.TrimSpace(name)
		written = append(written, name)
		for word := range strings.FieldsSeq(name) {
			if i := slices.IndexFunc(actions, func(a string) bool { return strings.EqualFold(a, word) }); i >= 0 {
				word = actions[i]
			}
			known = append(known, word)
		}
	}
	return written, known
}

// listed are those of the actions that the configuration has, in the order in which they are asked for.
func (c schedulerConf) listed(of []string) []string {
	_, known := c.names()
	return slices.DeleteFunc(slices.Clone(of), func(a string) bool { return !slices.Contains(known, a) })
}

// evictsByGang tells whether the pair of actions by gang is meant: one of them is there, and none of the other pair.
func (c schedulerConf) evictsByGang() bool {
	return len(c.listed(byGang)) > 0 && len(c.listed(byTask)) == 0
}

// examineActions judges the names of actions, and which of them evict. One line mends all that is found.
func (c schedulerConf) examineActions() (found []Obstacle) {
	pair := byTask
	if c.evictsByGang() {
		pair = byGang
	}
	written, known := c.names()
	remedy := `have the line actions: "` + strings.Join(withPair(known, pair), ", ") + `"`
	for _, name := range written {
		if why := misnamed(name); why != "" {
			found = append(found, Obstacle{"Volcano knows no action " + quoted(name) + " and refuses the configuration: " + why, remedy})
		}
	}
	if mixed := c.listed(evicting); len(c.listed(byTask)) > 0 && len(c.listed(byGang)) > 0 {
		return append(found, Obstacle{"actions " + strings.Join(mixed, ", ") + " are mixed, which Volcano's design rules out", remedy})
	}
	for _, action := range pair {
		if !slices.Contains(known, action) {
			found = append(found, Obstacle{"action " + action + " is missing", remedy})
		}
	}
	return append(found, c.examineOrder(remedy)...)
}

// examineOrder judges what stands before allocate. In each cycle, preempt promises a gang the room that is free as well as what
// it evicts, and allocate then leaves that gang out. An action by gang does not count as free what is being left; allocate does,
// and promises it to the gang before they look.
func (c schedulerConf) examineOrder(remedy string) []Obstacle {
	_, known := c.names()
	early := known[:max(0, slices.Index(known, allocate))]
	switch {
	case slices.Contains(early, preempt):
		return []Obstacle{{"preempt stands before allocate, which then never places a gang where there is room", remedy}}
	case slices.Contains(early, gangPreempt) || slices.Contains(early, gangReclaim):
		return []Obstacle{{
			"gangpreempt and gangreclaim stand before allocate, and evict again while those leave that they evicted", remedy,
		}}
	}
	return nil
}

// misnamed says what is wrong with the name of an action; empty when nothing is, and for what a later Volcano may know.
func misnamed(name string) string {
	if slices.Contains(actions, name) {
		return ""
	}
	if len(strings.Fields(name)) > 1 {
		return "names are separated by commas"
	}
	for _, a := range actions {
		if strings.EqualFold(a, name) {
			return "it is " + a
		}
	}
	return ""
}

// quoted puts a name into quotation marks that is more than a word.
func quoted(name string) string {
	if len(strings.Fields(name)) == 1 {
		return name
	}
	return strconv.Quote(name)
}

// withPair returns the actions with one pair of those that evict, after allocate, instead of what there is of them.
func withPair(known, pair []string) []string {
	rest := slices.DeleteFunc(slices.Clone(known), func(a string) bool { return a == "" || slices.Contains(evicting, a) })
	return slices.Insert(rest, slices.Index(rest, allocate)+1, pair...)
}

// examineByTask judges the plugins for preempt and reclaim.
func (c schedulerConf) examineByTask() (found []Obstacle) {
	if !c.preempts("priority") {
		found = append(found, Obstacle{"plugin priority has no say in preemption", "have the line - name: priority in the first tier"})
	}
	if !c.preempts("gang") {
		found = append(found, Obstacle{
			"plugin gang has no say in preemption",
			"have the lines - name: gang and enablePreemptable: true as the last plugin of its tier",
		})
	}
	return found
}

// examineByGang judges the plugins and arguments for gangpreempt and gangreclaim. These ask plugins by another function than
// preempt and reclaim do, which conformance, priority, capacity and gang have, and whatever enablePreemptable says
// (framework.Session.UnifiedEvictable).
func (c schedulerConf) examineByGang() (found []Obstacle) {
	for _, plugin := range []string{"priority", "gang"} {
		if !c.has(plugin) {
			found = append(found, Obstacle{"plugin " + plugin + " is missing", "have the line - name: " + plugin})
		}
	}
	if !c.shares() {
		found = append(found, Obstacle{
			"plugin capacity has no say in gangreclaim, which then takes surplus of queues within their share",
			"have the line - name: capacity in the tier of - name: gang, instead of proportion",
		})
	}
	if !c.keepsGangs() {
		found = append(found, Obstacle{
			"gangpreempt and gangreclaim take gangs of others apart, because allowWholeBundle is not false",
			"have the line configurations: [{name: gangpreempt, arguments: {allowWholeBundle: false}}, " +
				"{name: gangreclaim, arguments: {allowWholeBundle: false}}]",
		})
	}
	return found
}

// shares tells whether capacity is asked by gangreclaim: the first tier alone is, as long as it allows anybody.
func (c schedulerConf) shares() bool {
	for _, tier := range c.Tiers {
		if tier.has("capacity") {
			return true
		}
		if tier.has("priority") || tier.has("gang") || tier.has("conformance") {
			return false
		}
	}
	return false
}

// keepsGangs tells whether both actions by gang are told to leave alone what a gang needs.
func (c schedulerConf) keepsGangs() bool {
	kept := map[string]bool{}
	for _, action := range c.Configurations {
		allowed, err := strconv.ParseBool(fmt.Sprint(action.Arguments[allowWholeBundle]))
		if _, seen := kept[action.Name]; !seen { // Volcano reads the first of a name.
			kept[action.Name] = err == nil && !allowed
		}
	}
	return kept[gangPreempt] && kept[gangReclaim]
}

func (c schedulerConf) has(name string) bool {
	return slices.ContainsFunc(c.Tiers, func(t schedulerTier) bool { return t.has(name) })
}

func (t schedulerTier) has(name string) bool {
	for _, p := range t.Plugins {
		if p.Name == name {
			return true
		}
	}
	return false
}

// preempts tells whether the plugin takes part in choosing victims of preempt, which is so unless it is switched off.
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
