package v1beta1

import "k8s.io/apimachinery/pkg/api/resource"

// Bounds of data sets.
const (
	// MaxDataSets is how many data sets a profile may list, and MaxDataVersions how many versions each of them.
	MaxDataSets, MaxDataVersions = 16, 16
	// MaxJobDataSets is how many data sets a job may use.
	MaxJobDataSets = 6
	// DataUsersLimit is how many jobs the status of a profile names for a version of a data set.
	DataUsersLimit = 4
)

// ProfileDataSet is data that the team's trainings name instead of a volume, in versions.
type ProfileDataSet struct {
	// Name by which jobs use the data set: lower-case letters, digits and dashes, beginning with a letter, 32 at most.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// Versions of the data set, at most 16. New data is a new version, in a place of its own. A version that a job uses cannot be
	// removed: status.dataSets says which do.
	// +required
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.map(v, has(v.claim) ? 'claim ' + v.claim + '/' + (has(v.folder) ? v.folder + '/' : '') : (has(v.prefix) ? v.prefix + '/' : v.version)).all(a, self.map(v, has(v.claim) ? 'claim ' + v.claim + '/' + (has(v.folder) ? v.folder + '/' : '') : (has(v.prefix) ? v.prefix + '/' : v.version)).exists_one(b, b.startsWith(a)))",message="two versions have the same place, or one is within that of another, so that new data would change what a version is: give each version a claim, a folder or a prefix of its own"
	Versions []DataVersion `json:"versions"`
}

// DataVersion is the place of one version of a data set.
//
// +kubebuilder:validation:XValidation:rule="has(self.claim) != has(self.prefix)",fieldPath=".claim",messageExpression="'version ' + self.version + ' must have one of claim and prefix: ' + (has(self.claim) ? 'remove one of the two' : 'set one of the two')"
// +kubebuilder:validation:XValidation:rule="!has(self.folder) || has(self.claim)",fieldPath=".folder",message="folder is one of a claim: set claim, or write the folder at the end of prefix"
// +kubebuilder:validation:XValidation:rule="has(self.claim) == has(oldSelf.claim) && (!has(self.claim) || self.claim == oldSelf.claim) && has(self.folder) == has(oldSelf.folder) && (!has(self.folder) || self.folder == oldSelf.folder) && has(self.prefix) == has(oldSelf.prefix) && (!has(self.prefix) || self.prefix == oldSelf.prefix)",messageExpression="'version ' + self.version + ' cannot get another place, because what jobs trained on would not be known: add a version'"
type DataVersion struct {
	// Version is its name: lower-case letters, digits, dots and dashes, such as 2026-11 or v3.1, 32 at most.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	Version string `json:"version"`

	// Claim is the name of the PersistentVolumeClaim with the data, in the namespace of each job that uses the version; also one
	// that Fluid makes for a Dataset. Workers mount it read-only.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	Claim string `json:"claim,omitempty"`

	// Folder of the claim that has the data, relative to its root. Default: the whole claim.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.endsWith('/') && !self.matches('(^|/)[.]{0,2}(/|$)')",message="folder must be within its claim, and written in one way: leave out a slash at its begin and end, //, . and .."
	Folder string `json:"folder,omitempty"`

	// Prefix of the data's objects in an object store, such as s3://ads-data/clicks/2026-11. Nothing is mounted: the training reads
	// it by itself, and with its own rights.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9+.-]*://[^/@?#$[:space:][:cntrl:]]+(/[^/@?#$[:space:][:cntrl:]]+)*$') && !self.matches('/[.]{1,2}(/|$)')",message="prefix must be SCHEME://BUCKET/FOLDER without a slash at its end, .., an account, a variable or a query: jobs of the whole team see it, so that keys belong into a Secret"
	Prefix string `json:"prefix,omitempty"`
}

// JobDataSet is a version of a data set that a job's workers read.
type JobDataSet struct {
	// Name of a data set of the profile that the job's namespace belongs to.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// Version of the data set.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	Version string `json:"version"`

	// MountPath is where the training container has the data, if the version is in a claim: an absolute path. Default /data/NAME.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^(/[^/:$[:cntrl:]]+)+$') && !self.matches('/[.]{1,2}(/|$)') && self != '/etc' && self != '/etc/tideline' && !self.startsWith('/etc/tideline/')",message="mountPath must be an absolute path without :, $ or .., and neither /etc nor in /etc/tideline, where Tideline mounts its own files: choose another path"
	MountPath string `json:"mountPath,omitempty"`
}

// Path is where the training container has the data of a claim.
func (d *JobDataSet) Path() string {
	if d.MountPath != "" {
		return d.MountPath
	}
	return "/data/" + d.Name
}

// DataPlace is where the workers of an attempt have a data set, as the profile said when the attempt began.
type DataPlace struct {
	// Name of the data set.
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`
	// Version of the data set.
	// +kubebuilder:validation:MaxLength=32
	Version string `json:"version"`
	// Claim with the data; empty for data in an object store.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Claim string `json:"claim,omitempty"`
	// Folder of the claim that has the data; empty for the whole claim.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Folder string `json:"folder,omitempty"`
	// Prefix of the data's objects in an object store; empty for data in a claim.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Prefix string `json:"prefix,omitempty"`
}

// DataSetStatus says who uses a version of a data set.
type DataSetStatus struct {
	// Name of the data set.
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`
	// Version of the data set.
	// +kubebuilder:validation:MaxLength=32
	Version string `json:"version"`
	// Jobs is how many jobs use it that have not ended: those that run, wait or are suspended.
	Jobs int32 `json:"jobs"`
	// UsedBy are those jobs as NAMESPACE/NAME, the first 4 by name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MaxLength=320
	UsedBy []string `json:"usedBy,omitempty"`
	// Space of its claims, those of all namespaces of the profile together. Absent without a claim.
	// +optional
	Space *resource.Quantity `json:"space,omitempty"`
}
