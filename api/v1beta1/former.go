package v1beta1

import (
	"bytes"
	"encoding/json"
)

// This file has field names that v1alpha1 had at first. The API server drops a field that the schema does not know before any
// rule or webhook sees it, so that a spec with an old name would be accepted and lose what the field says. The schema
// therefore keeps each old name, and refuses it with the new one.
//
// A CEL rule refuses most of them, and costs nothing while the field is absent. The API server evaluates no CEL rules for an
// object that lacks a required field, as an old store, member or reservation does. There a pattern refuses the old string,
// and the pattern's words are the message.

// FormerObject is the value of a former name; its fields do not matter.
type FormerObject struct{}

// FormerJob has former names in the spec of an ElasticTrainingJob.
type FormerJob struct {
	// RunPolicy is a former name, and refused.
	// +optional
	// +kubebuilder:validation:XValidation:rule="false",message="runPolicy has been split: write suspend in spec, and its other fields in spec.restarts, spec.deadlines, spec.cleanup and spec.successPolicy"
	FormerRunPolicy *FormerObject `json:"runPolicy,omitempty"`

	// Rendezvous is a former name, and refused.
	// +optional
	// +kubebuilder:validation:XValidation:rule="false",message="rendezvous has been replaced by framework: write backend as spec.framework.type, Torchrun for C10d and Custom for None, sshKeys as spec.framework.ssh, port as spec.framework.port, and its other fields in spec.framework.torchrun"
	FormerRendezvous *FormerObject `json:"rendezvous,omitempty"`

	// NprocPerNode is a former name, and refused.
	// +optional
	// +kubebuilder:validation:XValidation:rule="false",message="nprocPerNode has moved: write spec.framework.nprocPerNode"
	FormerNprocPerNode *int32 `json:"nprocPerNode,omitempty"`

	FormerOwner `json:",inline"`
}

// FormerOwner has former names in the specs of jobs of both kinds.
type FormerOwner struct {
	// OwnerGroups is a former name, and refused.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="false",message="ownerGroups has been replaced by submitter, which Tideline records: remove it"
	FormerOwnerGroups []string `json:"ownerGroups,omitzero"`
}

// FormerElasticity has former names in Elasticity.
type FormerElasticity struct {
	// CooldownSeconds is a former name, and refused.
	// +optional
	// +kubebuilder:validation:XValidation:rule="false",message="cooldownSeconds has moved: write spec.elasticity.growth.cooldownSeconds"
	FormerCooldownSeconds *int32 `json:"cooldownSeconds,omitempty"`

	// MinSurplusRunSeconds is a former name, and refused.
	// +optional
	// +kubebuilder:validation:XValidation:rule="false",message="minSurplusRunSeconds has a new name: write spec.elasticity.shrink.minRunSeconds"
	FormerMinSurplusRunSeconds *int32 `json:"minSurplusRunSeconds,omitempty"`

	// ShrinkBy is a former name, and refused.
	// +optional
	// +kubebuilder:validation:XValidation:rule="false",message="shrinkBy has a new name: write spec.elasticity.shrink.initiator"
	FormerShrinkBy *string `json:"shrinkBy,omitempty"`

	// StarvationSeconds is a former name, and refused.
	// +optional
	// +kubebuilder:validation:XValidation:rule="false",message="starvationSeconds has moved: write spec.elasticity.shrink.starvationSeconds"
	FormerStarvationSeconds *int32 `json:"starvationSeconds,omitempty"`

	// Surplus is a former name, and refused.
	// +optional
	// +kubebuilder:validation:XValidation:rule="false",message="surplus has a new name: write spec.elasticity.growth.mode, Always for All and OnlyIfFits for Fitting"
	FormerSurplus *string `json:"surplus,omitempty"`

	// OnRangeChange is a former name, and refused.
	// +optional
	// +kubebuilder:validation:XValidation:rule="false",message="onRangeChange has a new name: write spec.elasticity.rangeUpdate, NextAttempt for Wait and Restart for Restart"
	FormerOnRangeChange *string `json:"onRangeChange,omitempty"`
}

// FormerAccelerator has former names in Accelerator.
type FormerAccelerator struct {
	// Resource is a former name, and refused.
	// +optional
	// +kubebuilder:validation:XValidation:rule="false",message="resource has a new name: write spec.accelerator.resourceName"
	FormerResource *string `json:"resource,omitempty"`

	// Mixed is a former name, and refused.
	// +optional
	// +kubebuilder:validation:XValidation:rule="false",message="mixed has a new name: write spec.accelerator.mixing, Allowed for true and Forbidden for false"
	FormerMixed *bool `json:"mixed,omitempty"`
}

// FormerRule has former names in FailureRule.
type FormerRule struct {
	// OnWorkers is a former name, and refused.
	// +optional
	// +kubebuilder:validation:XValidation:rule="false",message=`onWorkers has been replaced by targets: write targets: [{indexes: "0"}] for Master, and [{indexes: "1-"}] for Worker`
	FormerOnWorkers *string `json:"onWorkers,omitempty"`
}

// FormerStore has former names in ModelStore.
type FormerStore struct {
	// Provider is a former name, and refused.
	// +optional
	// +kubebuilder:validation:Pattern=`provider has a new name: write type, S3 for s3 and File for file`
	FormerProvider *string `json:"provider,omitempty"`

	// Bucket is a former name, and refused.
	// +optional
	// +kubebuilder:validation:Pattern=`bucket has moved: write s3.bucket for type S3, and file.path for type File`
	FormerBucket *string `json:"bucket,omitempty"`

	// Region is a former name, and refused.
	// +optional
	// +kubebuilder:validation:Pattern=`region has moved: write s3.region`
	FormerRegion *string `json:"region,omitempty"`

	// Endpoint is a former name, and refused.
	// +optional
	// +kubebuilder:validation:Pattern=`endpoint has moved: write s3.endpoint`
	FormerEndpoint *string `json:"endpoint,omitempty"`

	// CredentialsSecretName is a former name, and refused.
	// +optional
	// +kubebuilder:validation:Pattern=`credentialsSecretName has a new name: write s3.credentialsRef.name`
	FormerCredentialsSecretName *string `json:"credentialsSecretName,omitempty"`
}

// FormerMember has former names in ProfileMember.
type FormerMember struct {
	// User is a former name, and refused.
	// +optional
	// +kubebuilder:validation:Pattern=`user has been replaced by kind and name: write kind: User, and the user as name`
	FormerUser *string `json:"user,omitempty"`

	// Group is a former name, and refused.
	// +optional
	// +kubebuilder:validation:Pattern=`group has been replaced by kind and name: write kind: Group, and the group as name`
	FormerGroup *string `json:"group,omitempty"`
}

// FormerQueue has former names in ProfileQueue.
type FormerQueue struct {
	// FairSurplus is a former name, and refused.
	// +optional
	// +kubebuilder:validation:XValidation:rule="false",message="fairSurplus has a new name: write spec.queue.surplusSharing, Fair for true and Excluded for false"
	FormerFairSurplus *bool `json:"fairSurplus,omitempty"`
}

// FormerCaps has former names in ProfileCaps.
type FormerCaps struct {
	// GPUHours is a former name, and refused.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="false",message="gpuHours has a new name: write spec.caps.acceleratorHours"
	FormerGPUHours []FormerObject `json:"gpuHours,omitzero"`
}

// FormerReservation has former names in ProfileReservation.
type FormerReservation struct {
	// ForTask is a former name, and refused.
	// +optional
	// +kubebuilder:validation:Pattern=`forTask has a new name: write jobRef.name`
	FormerForTask *string `json:"forTask,omitempty"`

	// ForOwner is a former name, and refused.
	// +optional
	// +kubebuilder:validation:Pattern=`forOwner has a new name: write owner`
	FormerForOwner *string `json:"forOwner,omitempty"`
}

// FormerMail has former names in ReportMail.
type FormerMail struct {
	// SMTPSecretName is a former name, and refused.
	// +optional
	// +kubebuilder:validation:Pattern=`smtpSecretName has a new name: write smtpSecretRef.name`
	FormerSMTPSecretName *string `json:"smtpSecretName,omitempty"`
}

// UnmarshalJSON also reads a word, which the policy once was, because a client that could not read one stored job could list
// none. Master, which was the default, means what the default means now. Any other word becomes the operator, which the
// schema refuses.
func (p *SuccessPolicy) UnmarshalJSON(content []byte) error {
	if !bytes.HasPrefix(bytes.TrimSpace(content), []byte(`"`)) {
		type plain SuccessPolicy
		return json.Unmarshal(content, (*plain)(p))
	}
	var word SuccessOperator
	if err := json.Unmarshal(content, &word); err != nil || word == "Master" {
		return err
	}
	p.Operator = word
	return nil
}
