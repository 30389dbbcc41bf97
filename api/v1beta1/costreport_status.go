package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReportRefusedLimit is how many recipients the status of a report names.
const ReportRefusedLimit = 20

// CostReportStatus is the last report, and whether it was delivered.
type CostReportStatus struct {
	// ObservedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Reason is the state of the report in one word.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// Message is the state of the report in a sentence, with the figures and what to do.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
	// Conditions of the report: Ready, Reconciling, Stalled, Mailed.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Last is what the last report said.
	// +optional
	Last *ReportSummary `json:"last,omitempty"`
	// Mailed is how many recipients of the last report got their mail, as `kubectl get` shows it.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Mailed string `json:"mailed,omitempty"`
	// Refused are recipients whose server refused the last report for good, or whose delivery is uncertain, the first 20.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Refused []string `json:"refused,omitempty"`
	// NotInDirectory is how many users of the last report are not in the directory.
	// +optional
	NotInDirectory int32 `json:"notInDirectory,omitempty"`
	// AskedUntil is the value of annotation tideline.io/report-until.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	AskedUntil string `json:"askedUntil,omitempty"`
	// AskedRevision is the revision that is made for it.
	// +optional
	AskedRevision int32 `json:"askedRevision,omitempty"`
	// NextTime is when the next report is due.
	// +optional
	NextTime *metav1.Time `json:"nextTime,omitempty"`
}

// ReportSummary is what a report said, in figures as people write them.
type ReportSummary struct {
	// From is when the window of the report began.
	From metav1.Time `json:"from"`
	// To is when it ended, which is when the report was due.
	To metav1.Time `json:"to"`
	// Revision counts from 1. A report made again for the same window is another revision; the one before stays unchanged.
	Revision int32 `json:"revision"`
	// Total cost, with its currency.
	// +kubebuilder:validation:MaxLength=64
	Total string `json:"total"`
	// Utilization of accelerators, in percent; empty where it is not known.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Utilization string `json:"utilization,omitempty"`
	// Waste is the cost of what was requested and not used.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Waste string `json:"waste,omitempty"`
	// Recoverable is the part of it above what sizing would have granted.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Recoverable string `json:"recoverable,omitempty"`
	// Fragmentation is the share of free accelerators that a gang like those of the window could not use, in percent; empty where it
	// is not known.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Fragmentation string `json:"fragmentation,omitempty"`
}
