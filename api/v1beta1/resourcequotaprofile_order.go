package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProfileOrder orders the team's trainings while GPUs are short: by tier, standing, recent use and age. A training that finds no
// room, or comes after one that finds none, waits without pods.
type ProfileOrder struct {
	// Ageing is after how long a wait a training moves up by one standing. A senior's goes before all others of its tier after once
	// that time, staff's after twice, an intern's after three times; among those the longest wait counts. Default 24h, range 10s to
	// 720h.
	// +optional
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s') && duration(self) <= duration('720h')",message="ageing must be from 10s to 720h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	Ageing *metav1.Duration `json:"ageing,omitempty"`

	// UseHalfLife is after what time a user's use of accelerators counts half as much. Of two users of one standing who used less
	// goes first. Use is known from the ledger; without one all users are equal. Default 168h, range 1h to 2160h.
	// +optional
	// +kubebuilder:default="168h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1h') && duration(self) <= duration('2160h')",message="useHalfLife must be from 1h to 2160h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	UseHalfLife *metav1.Duration `json:"useHalfLife,omitempty"`

	// LongestHold is how long a training waits for those before it although its own workers fit. After that it takes room that is
	// free. Default 10m, range 0s to 24h.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('24h')",message="longestHold must be from 0s to 24h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	LongestHold *metav1.Duration `json:"longestHold,omitempty"`
}
