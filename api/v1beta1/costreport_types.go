package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CostReportSpec says what a report covers, when it is made, and who gets it.
type CostReportSpec struct {
	// Schedule is when the report is made: a cron line of five fields, or @weekly and the like, in timeZone. Default: Mondays at
	// nine. A missed report is made once, as soon as possible. Of an hour that a day has twice the first counts, and a day that
	// lacks the hour is left out.
	// +optional
	// +kubebuilder:default="0 9 * * 1"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Schedule string `json:"schedule,omitempty"`

	// TimeZone of the schedule and of the days of the report, by its name in the IANA database. Default: UTC.
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`

	// Window is the time before the report is made that it covers. Whole days are calendar days, also if one has 23 or 25
	// hours. Default 168h, range 1h to 2208h (92 days).
	// +optional
	// +kubebuilder:default="168h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1h') && duration(self) <= duration('2208h')",message="window must be from 1h to 2208h, which are 92 days"
	Window *metav1.Duration `json:"window,omitempty"`

	// Profiles whose namespaces the report covers. Default: the whole cluster, including namespaces without a profile.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Profiles []string `json:"profiles,omitempty"`

	// PriceListRef is the ConfigMap of the operator's namespace with the price list, under key prices.yaml.
	// +required
	PriceListRef ObjectRef `json:"priceListRef"`

	// DirectoryRef is the ConfigMap of the operator's namespace with the mail address, team and leader of each user, under key
	// people.yaml. Default: none, and no personal pages.
	// +optional
	DirectoryRef *ObjectRef `json:"directoryRef,omitempty"`

	// Rankings are those of the page. Default: all of them.
	// +optional
	// +kubebuilder:default={Utilization,Cost,Waste}
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Rankings []ReportRanking `json:"rankings,omitempty"`

	// GroupBy is what the rows of rankings stand for. Default: user, team and task.
	// +optional
	// +kubebuilder:default={User,Team,Task}
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	GroupBy []ReportDimension `json:"groupBy,omitempty"`

	// Top is the number of rows of a ranking on the page; files have all. Default 20, range 1 to 200.
	// +optional
	// +kubebuilder:default=20
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=200
	Top int32 `json:"top,omitempty"`

	// Formats in which the report is kept. Default: HTML, CSV and JSON.
	// +optional
	// +kubebuilder:default={HTML,CSV,JSON}
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Formats []ReportFormat `json:"formats,omitempty"`

	// Mail says who gets the report. Default: no mails.
	// +optional
	Mail *ReportMail `json:"mail,omitempty"`

	// HistoryLimit is how many reports are kept; older ones are deleted. Default 12, range 1 to 520.
	// +optional
	// +kubebuilder:default=12
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=520
	HistoryLimit *int32 `json:"historyLimit,omitempty"`

	// Suspend stops the report. What it misses meanwhile is made afterwards. Default false.
	// +optional
	// +kubebuilder:default=false
	Suspend bool `json:"suspend,omitempty"`
}

// ReportRanking is the figure by which rows are ranked.
//
// +kubebuilder:validation:Enum=Utilization;Cost;Waste
type ReportRanking string

const (
	// RankUtilization ranks by how little of their accelerators' time was used.
	RankUtilization ReportRanking = "Utilization"
	// RankCost ranks by cost.
	RankCost ReportRanking = "Cost"
	// RankWaste ranks by the cost of what was not used.
	RankWaste ReportRanking = "Waste"
)

// ReportDimension is what the rows of a ranking stand for.
//
// +kubebuilder:validation:Enum=User;Team;Task
type ReportDimension string

const (
	// GroupByUser has a row for each owner of pods.
	GroupByUser ReportDimension = "User"
	// GroupByTeam has a row for each profile.
	GroupByTeam ReportDimension = "Team"
	// GroupByTask has a row for each task, over its jobs and their restarts.
	GroupByTask ReportDimension = "Task"
)

// ReportFormat is a form of a report.
//
// +kubebuilder:validation:Enum=HTML;CSV;JSON;FOCUS
type ReportFormat string

const (
	// FormatHTML is the page, in one file.
	FormatHTML ReportFormat = "HTML"
	// FormatCSV has a line for each row of each dimension.
	FormatCSV ReportFormat = "CSV"
	// FormatJSON is the whole report for programs.
	FormatJSON ReportFormat = "JSON"
	// FormatFOCUS is a CSV file with columns of the FinOps Open Cost and Usage Specification.
	FormatFOCUS ReportFormat = "FOCUS"
)

// ReportMail says who gets a report by mail.
//
// +kubebuilder:validation:XValidation:rule="(has(self.to) && size(self.to) > 0) || (has(self.personal) && self.personal)",message="mail has no recipients: name some in to, or set personal"
type ReportMail struct {
	// SMTPSecretRef names a Secret of type tideline.io/smtp in the operator's namespace: host, port, username, password, tls.
	// +required
	SMTPSecretRef ObjectRef `json:"smtpSecretRef"`

	// From is the sender's address.
	// +required
	// +kubebuilder:validation:MaxLength=254
	// +kubebuilder:validation:Pattern=`^[^@\s<>,;:"]+@[^@\s<>,;:"]+$`
	From string `json:"from"`

	// To are the addresses that get the whole report.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=254
	// +kubebuilder:validation:items:Pattern=`^[^@\s<>,;:"]+@[^@\s<>,;:"]+$`
	To []string `json:"to,omitempty"`

	// Personal sends each user in the directory a page with that user's rows only. Default false.
	// +optional
	// +kubebuilder:default=false
	Personal bool `json:"personal,omitempty"`

	FormerMail `json:",inline"`
}

// CostReport reports regularly what was used in a window of time, by which users and teams, what it cost, and how much of
// it was wasted.
//
// +operator-sdk:csv:customresourcedefinitions:displayName="Cost Report"
// +operator-sdk:csv:customresourcedefinitions:resources={{ConfigMap,v1,""},{Secret,v1,""},{Event,v1,""}}
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=crep,scope=Cluster,path=costreports,singular=costreport
// +kubebuilder:printcolumn:name="Last",type=date,JSONPath=`.status.last.to`
// +kubebuilder:printcolumn:name="Total",type=string,JSONPath=`.status.last.total`
// +kubebuilder:printcolumn:name="Util",type=string,JSONPath=`.status.last.utilization`
// +kubebuilder:printcolumn:name="Waste",type=string,JSONPath=`.status.last.waste`
// +kubebuilder:printcolumn:name="Frag",type=string,JSONPath=`.status.last.fragmentation`
// +kubebuilder:printcolumn:name="Mailed",type=string,JSONPath=`.status.mailed`
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Ready",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",fieldPath=".metadata.name",messageExpression="'name (' + self.metadata.name + ') must be a DNS-1123 label, because it is a part of the names of files and of a ConfigMap: at most 63 lower-case letters, digits and dashes, without dots'"
type CostReport struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what the report covers, when it is made, and who gets it.
	// +required
	Spec CostReportSpec `json:"spec"`

	// Status is the last report, and whether it was delivered.
	// +optional
	Status CostReportStatus `json:"status,omitempty"`
}

// CostReportList is a list of CostReports.
//
// +kubebuilder:object:root=true
type CostReportList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CostReport `json:"items"`
}
