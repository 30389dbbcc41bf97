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

// Obstacle is something in the configuration of Volcano's scheduler that keeps it from taking surplus for waiting gangs.
type Obstacle struct {
	// What it is, a clause for messages.
	What string
	// Do says how to correct it, with the lines of the configuration; empty if there is no configuration. Several obstacles may
	// have the same remedy.
	Do string
}

// ListObstacles are what [ExamineSchedulerConf] finds, without the remedies; empty when nothing is found.
func ListObstacles(data map[string]string) []string {
	var found []string
	for _, o := range ExamineSchedulerConf(data) {
		found = append(found, o.What)
	}
	return found
}

// ExamineSchedulerConf lists what in the scheduler's configuration keeps Volcano from taking surplus for waiting gangs; it is
// empty if nothing does. data is that of the ConfigMap, nil if there is none.
func ExamineSchedulerConf(data map[string]string) []Obstacle {
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
	if conf.hasPlugin("overcommit") {
		found = append(found, Obstacle{
			"plugin overcommit counts surplus as used, which keeps large gangs Pending", "remove the line - name: overcommit",
		})
	}
	if conf.weighsSharedDevices() {
		found = append(found, Obstacle{
			"plugin deviceshare weighs nodes by their shared GPUs, and the scheduler of Volcano 1.15 then panics while a gang waits " +
				"for a part of a GPU", "remove the line deviceshare.ScheduleWeight",
		})
	}
	return found
}

// EvictsForGangs is true if the configuration has an action that came with Volcano 1.15. An older Volcano refuses it.
func EvictsForGangs(data map[string]string) bool {
	conf := schedulerConf{}
	return yaml.Unmarshal([]byte(data[schedulerConfKey]), &conf) == nil && len(conf.listedOf(byGang)) > 0
}

// PlacesByTopology is true if the configuration has the plugin that places gangs by HyperNodes.
func PlacesByTopology(data map[string]string) bool {
	conf := schedulerConf{}
	return yaml.Unmarshal([]byte(data[schedulerConfKey]), &conf) == nil && conf.hasPlugin("network-topology-aware")
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
		Name              string         `json:"name"`
		EnablePreemptable *bool          `json:"enablePreemptable"`
		Arguments         map[string]any `json:"arguments"`
	} `json:"plugins"`
}

// actionNames returns the actions as they are written, and the same with known actions in Volcano's spelling, in their order.
func (c schedulerConf) actionNames() (written, known []string) {
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

// listedOf are those of the given actions that the configuration has, in the given order.
func (c schedulerConf) listedOf(of []string) []string {
	_, known := c.actionNames()
	return slices.DeleteFunc(slices.Clone(of), func(a string) bool { return !slices.Contains(known, a) })
}

// evictsByGang is true if the configuration has an action by gang and no action by task.
func (c schedulerConf) evictsByGang() bool {
	return len(c.listedOf(byGang)) > 0 && len(c.listedOf(byTask)) == 0
}

// examineActions checks the names of actions, and which of them evict. One line corrects everything that it finds.
func (c schedulerConf) examineActions() (found []Obstacle) {
	pair := byTask
	if c.evictsByGang() {
		pair = byGang
	}
	written, known := c.actionNames()
	remedy := `have the line actions: "` + strings.Join(withPair(known, pair), ", ") + `"`
	for _, name := range written {
		if why := whyMisnamed(name); why != "" {
			found = append(found, Obstacle{
				"Volcano knows no action " + quoteWords(name) + " and refuses the configuration: " + why, remedy,
			})
		}
	}
	if mixed := c.listedOf(evicting); len(c.listedOf(byTask)) > 0 && len(c.listedOf(byGang)) > 0 {
		return append(found, Obstacle{"actions " + strings.Join(mixed, ", ") + " are mixed, which Volcano's design rules out", remedy})
	}
	for _, action := range pair {
		if !slices.Contains(known, action) {
			found = append(found, Obstacle{"action " + action + " is missing", remedy})
		}
	}
	return append(found, c.examineOrder(remedy)...)
}

// examineOrder checks which actions stand before allocate. In each cycle preempt reserves free room for a gang, as well as what
// it evicts, and allocate then skips that gang. Actions by gang do not count the room of terminating pods as free, so they
// evict more; allocate does, and reserves it for the gang before they look.
func (c schedulerConf) examineOrder(remedy string) []Obstacle {
	_, known := c.actionNames()
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

// whyMisnamed says what is wrong with the name of an action; empty if nothing is, or if a later Volcano may know the name.
func whyMisnamed(name string) string {
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

// quoteWords quotes a name of more than one word.
func quoteWords(name string) string {
	if len(strings.Fields(name)) == 1 {
		return name
	}
	return strconv.Quote(name)
}

// withPair returns the actions with their evicting ones replaced by one pair, after allocate.
func withPair(known, pair []string) []string {
	rest := slices.DeleteFunc(slices.Clone(known), func(a string) bool { return a == "" || slices.Contains(evicting, a) })
	return slices.Insert(rest, slices.Index(rest, allocate)+1, pair...)
}

// examineByTask checks the plugins for preempt and reclaim.
func (c schedulerConf) examineByTask() (found []Obstacle) {
	if !c.choosesVictims("priority") {
		found = append(found, Obstacle{"plugin priority has no say in preemption", "have the line - name: priority in the first tier"})
	}
	if !c.choosesVictims("gang") {
		found = append(found, Obstacle{
			"plugin gang has no say in preemption",
			"have the lines - name: gang and enablePreemptable: true as the last plugin of its tier",
		})
	}
	return found
}

// examineByGang checks the plugins and arguments for gangpreempt and gangreclaim. These ask plugins by another function than
// preempt and reclaim, which only conformance, priority, capacity and gang have, and ignore enablePreemptable
// (framework.Session.UnifiedEvictable).
func (c schedulerConf) examineByGang() (found []Obstacle) {
	for _, plugin := range []string{"priority", "gang"} {
		if !c.hasPlugin(plugin) {
			found = append(found, Obstacle{"plugin " + plugin + " is missing", "have the line - name: " + plugin})
		}
	}
	if !c.asksCapacity() {
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

// asksCapacity is true if gangreclaim asks plugin capacity: it asks the plugins of the first tier that allows any victim, and
// no later one.
func (c schedulerConf) asksCapacity() bool {
	for _, tier := range c.Tiers {
		if tier.hasPlugin("capacity") {
			return true
		}
		if tier.hasPlugin("priority") || tier.hasPlugin("gang") || tier.hasPlugin("conformance") {
			return false
		}
	}
	return false
}

// keepsGangs is true if both actions by gang are configured to spare pods that their gang needs.
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

func (c schedulerConf) hasPlugin(name string) bool {
	return slices.ContainsFunc(c.Tiers, func(t schedulerTier) bool { return t.hasPlugin(name) })
}

func (t schedulerTier) hasPlugin(name string) bool {
	for _, p := range t.Plugins {
		if p.Name == name {
			return true
		}
	}
	return false
}

// weighsSharedDevices is true if plugin deviceshare scores nodes for parts of GPUs: preempt has it score nodes without shared
// GPUs too (docs/decisions/0071-shared-gpus.md).
func (c schedulerConf) weighsSharedDevices() bool {
	for _, tier := range c.Tiers {
		for _, p := range tier.Plugins {
			weight, set := p.Arguments["deviceshare.ScheduleWeight"]
			if p.Name == "deviceshare" && set && fmt.Sprint(weight) != "0" && fmt.Sprint(p.Arguments["deviceshare.VGPUEnable"]) == "true" {
				return true
			}
		}
	}
	return false
}

// choosesVictims is true if the plugin takes part in choosing victims of preempt, which it does unless it is switched off.
func (c schedulerConf) choosesVictims(name string) bool {
	for _, tier := range c.Tiers {
		for _, p := range tier.Plugins {
			if p.Name == name && (p.EnablePreemptable == nil || *p.EnablePreemptable) {
				return true
			}
		}
	}
	return false
}
