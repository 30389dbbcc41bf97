package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReportRefusedLimit is how many recipients the status of a report names.
const ReportRefusedLimit = 20

// CostReportStatus is what the last report said, and what became of it.
type CostReportStatus struct {
	// ObservedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Reason says in one word how the report is.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// Message says how the report is, in a sentence with the figures and what to do.
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
	// Mailed is how many of those who are to get the last report by mail have got it, as `kubectl get` shows it.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Mailed string `json:"mailed,omitempty"`
	// Refused are recipients whose server refused the last report for good, or of whom nobody knows whether they got it, the first
	// 20.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Refused []string `json:"refused,omitempty"`
	// NotInDirectory is how many users of the last report the directory does not know.
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
	// Revision counts from 1. A report that was made anew for the same window is another revision; the one before stays as it is.
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
