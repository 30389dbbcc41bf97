package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

const (
	// scale is how much faster than life the demo is: 10 hours are shown as one minute.
	scale = 600
	// interval is between two merges of a model.
	interval = 10 * time.Hour / scale
	// stripEnd is the age at the right end of a strip, in which two ages are points, and stripWidth how wide it is.
	stripEnd, stripWidth = 2 * interval, 41
)

// poolView is what is known of the merges of one pool and of their models, by name.
type poolView struct {
	// asked is when the API server was asked for what follows.
	asked  time.Time
	merges map[string]*v1beta1.MergeJob
	pods   []corev1.Pod
	// waiting is how many gangs have no place.
	waiting int
	// increments and fulls are when the newest increment, and the newest full model, were written.
	increments, fulls map[string]time.Time
}

func newPoolView() *poolView {
	return &poolView{merges: map[string]*v1beta1.MergeJob{}, increments: map[string]time.Time{}, fulls: map[string]time.Time{}}
}

// clone copies what changes; nobody changes the objects.
func (v *poolView) clone() *poolView {
	c := *v
	c.merges, c.increments, c.fulls = maps.Clone(v.merges), maps.Clone(v.increments), maps.Clone(v.fulls)
	return &c
}

// oldest is the model for which something was written the longest ago, and how long ago.
func oldest(written map[string]time.Time, now time.Time) (model string, age time.Duration) {
	for name, at := range written {
		if old := now.Sub(at); old > age || (old == age && name < model) {
			model, age = name, old
		}
	}
	return model, age
}

// merging counts the merges that run.
func (v *poolView) merging() int { return len(v.gangs()) }

// line lists the merges that are in the line.
func (v *poolView) line() []*v1beta1.MergeJob {
	var line []*v1beta1.MergeJob
	for _, m := range v.merges {
		if m.Status.Position != nil {
			line = append(line, m)
		}
	}
	slices.SortFunc(line, func(a, b *v1beta1.MergeJob) int {
		return cmp.Or(cmp.Compare(*a.Status.Position, *b.Status.Position), cmp.Compare(a.Name, b.Name))
	})
	return line
}

// gangs are the pods of runs all of whose pods run, by attempt.
func (v *poolView) gangs() map[string][]corev1.Pod {
	gangs := map[string][]corev1.Pod{}
	for i := range v.pods {
		if pod := &v.pods[i]; pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			attempt := pod.Labels[v1beta1.LabelAttempt]
			gangs[attempt] = append(gangs[attempt], *pod)
		}
	}
	maps.DeleteFunc(gangs, func(_ string, pods []corev1.Pod) bool {
		return strconv.Itoa(len(pods)) != variable(&pods[0], "TIDELINE_COUNT")
	})
	return gangs
}

// variable is one that a pod's program is given.
func variable(pod *corev1.Pod, name string) string {
	for _, v := range pod.Spec.Containers[0].Env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

// rowHeader stands above rows and lines of models.
func rowHeader(first, last string) string {
	axis := fmt.Sprintf("%-*s%-*s%s", stripWidth/2-2, "0 h", stripWidth/2-1, "10 h", "20 h")
	return fmt.Sprintf("%-9s %9s %10s  %s  %s", first, "INCREMENT", "FULL MODEL", axis, last)
}

// row says how old the newest increment and the full model are, of the models where they are oldest, and who merges.
func row(v *poolView, since time.Duration, now time.Time) string {
	_, increment := oldest(v.increments, now)
	_, full := oldest(v.fulls, now)
	last := fmt.Sprintf("%d merging", v.merging())
	if line := v.line(); len(line) > 0 {
		last += fmt.Sprintf(", %d in line", len(line))
	}
	return agesRow("+"+shown(since), increment, full, last)
}

// modelRows say the same of each model, and where its merge stands: first those that merge, then the line, then the others.
func modelRows(v *poolView, now time.Time) []string {
	place := func(m *v1beta1.MergeJob) int {
		switch {
		case m.Status.Position != nil:
			return int(*m.Status.Position)
		case m.Status.Run != nil:
			return 0
		}
		return len(v.merges) + 1
	}
	merges := slices.SortedFunc(maps.Values(v.merges), func(a, b *v1beta1.MergeJob) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.Name, b.Name))
	})
	rows := make([]string, len(merges))
	for i, m := range merges {
		rows[i] = agesRow(m.Name, now.Sub(v.increments[m.Name]), now.Sub(v.fulls[m.Name]), m.Status.Summary)
	}
	return rows
}

func agesRow(first string, increment, full time.Duration, last string) string {
	return fmt.Sprintf("%-9s %9s %10s  %s  %s", first, shown(increment), shown(full), strip(increment, full), last)
}

// strip draws two ages between nothing and two intervals.
func strip(increment, full time.Duration) string {
	s := []byte("|" + strings.Repeat(" ", stripWidth/2-1) + ":" + strings.Repeat(" ", stripWidth/2-1) + "|")
	for _, point := range []struct {
		age  time.Duration
		sign byte
	}{{increment, 'i'}, {full, 'F'}} {
		s[min(max(int(point.age*(stripWidth-1)/stripEnd), 0), stripWidth-1)] = point.sign
	}
	return string(s)
}

// shown is a time as it is in life.
func shown(d time.Duration) string {
	if d *= scale; d < time.Hour {
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%.1f h", d.Hours())
}
