package main

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What pods do becomes steps of the record, one for each change of what a merge holds.
func TestPodsBecomeSteps(t *testing.T) {
	p := &pool{experiment: small, clock: clock{began: time.Now(), scale: 300}, models: make([]holding, small.models)}
	for i := range p.models {
		p.models[i] = holding{pods: map[types.UID]hold{}, changed: make(chan struct{}, 1)}
	}
	pod := func(i int, node string, phase corev1.PodPhase) *corev1.Pod {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
		pod.UID, pod.Labels = types.UID(strconv.Itoa(i)), map[string]string{modelLabel: "1"}
		return pod
	}
	for i := range small.machines {
		p.see(pod(i, "", corev1.PodPending), false)
		p.see(pod(i, "node", corev1.PodPending), false)
	}
	p.see(pod(0, "node", corev1.PodRunning), false)
	if pods, running := p.count(1); pods != 4 || running != 1 || p.together(pods, running) || none(pods, running) {
		t.Errorf("%d pods, of which %d run; want 4 and 1", pods, running)
	}
	p.set(1, true, func(time.Duration) {})
	p.see(pod(0, "node", corev1.PodSucceeded), false)
	p.see(pod(1, "node", corev1.PodRunning), true)
	other := pod(9, "node", corev1.PodRunning)
	other.Labels[modelLabel] = "7"
	p.see(other, false)
	var got []string
	for _, s := range p.record.steps {
		got = append(got, fmt.Sprintf("%d/%d/%t", s.model, s.held, s.working))
	}
	want := []string{"1/1/false", "1/2/false", "1/3/false", "1/4/false", "1/4/true", "1/3/true", "1/2/true"}
	if !slices.Equal(got, want) {
		t.Errorf("the steps are %v, want %v", got, want)
	}
}

func TestFlags(t *testing.T) {
	o, err := parse([]string{"-pools=12, 8", "-strategies=tideline,gangs-wait"})
	if err != nil || !slices.Equal(o.pools, []int{8, 12}) || len(o.strategies) != 2 || !o.strategies[1].tideline {
		t.Errorf("%+v, %v", o, err)
	}
	for _, wrong := range []string{"-pools=3", "-pools=8,x", "-strategies=nobody", "-scale=0"} {
		if _, err := parse([]string{wrong}); err == nil {
			t.Errorf("%s was accepted", wrong)
		}
	}
}
