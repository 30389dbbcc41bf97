package podstate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// Failure is how a container failed, or the pod as a whole if no container says.
type Failure struct {
	// ExitCode is 0 when none is known.
	ExitCode int32
	// Reason is Kubernetes' reason, such as Error, OOMKilled or Evicted; it may be empty.
	Reason string
	// Message is the last output of the container, or the pod's message.
	Message string
	// Container is the name of the container; empty for the pod as a whole.
	Container string
}

// failureOf returns the failure of the container that failed last, the training container among equals, else that of the pod. If
// a device of a pod that failed is unhealthy, that is the reason, unless memory was: what the container says comes of it.
func failureOf(pod *corev1.Pod) Failure {
	var last *corev1.ContainerStateTerminated
	container := ""
	all := slices.Clone(pod.Status.ContainerStatuses)
	slices.SortStableFunc(all, func(a, b corev1.ContainerStatus) int {
		return cmp.Compare(trainerFirst(a.Name), trainerFirst(b.Name))
	})
	for _, c := range all {
		for _, t := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if t != nil && t.ExitCode != 0 && (last == nil || t.FinishedAt.After(last.FinishedAt.Time)) {
				last, container = t, c.Name
			}
		}
	}
	f := Failure{Reason: pod.Status.Reason, Message: pod.Status.Message}
	if last != nil {
		f = Failure{ExitCode: last.ExitCode, Reason: last.Reason, Message: last.Message, Container: container}
	}
	// A pod that has a reason of its own, and one that goes on, did not fail for a device.
	if last != nil && pod.Status.Phase == corev1.PodFailed && pod.Status.Reason == "" && !f.OutOfMemory() {
		if devices := unhealthyDevices(pod); len(devices) > 0 {
			f.Reason, f.Message = deviceUnhealthy, "unhealthy: "+strings.Join(devices, ", ")
		}
	}
	return f
}

// trainerFirst orders the training container before others.
func trainerFirst(container string) int {
	if container == v1beta1.TrainerContainer {
		return 0
	}
	return 1
}

// OutOfMemory is true for a container that the kernel killed because it was out of memory.
func (f Failure) OutOfMemory() bool { return f.Reason == "OOMKilled" && f.Container != "" }

// LastLine is the last line of the message that has a letter or a digit, which a line drawn below a traceback does not.
func (f Failure) LastLine() string {
	lines := strings.Split(strings.TrimSpace(f.Message), "\n")
	for _, line := range slices.Backward(lines) {
		if strings.ContainsFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			return strings.TrimSpace(line)
		}
	}
	return strings.TrimSpace(lines[len(lines)-1])
}

// String is empty or begins with a space or a colon: " with exit code 1 (Error): last line".
func (f Failure) String() string {
	words := ""
	if f.ExitCode != 0 {
		words = fmt.Sprintf(" with exit code %d", f.ExitCode)
	}
	if f.Reason != "" {
		words += " (" + f.Reason + ")"
	}
	if f.Message != "" {
		words += ": " + strings.TrimSuffix(text.ClipLine(f.LastLine(), 200), ".") // It stands within a sentence.
	}
	return words
}
