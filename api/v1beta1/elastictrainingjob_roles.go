package v1beta1

// MaxRoleMembers is how many workers of a job may belong to roles, all roles together. Each is placed by itself in every question
// about room.
const MaxRoleMembers = 31

// MaxRoles is how many roles a job may have.
const MaxRoles = 8

// MaxRoleName is the length that the name of a role may have.
const MaxRoleName = 12

// Names of roles that have a meaning.
const (
	// RoleWorker is the role of all workers that belong to no other.
	RoleWorker = "worker"
	// RoleEvaluator is the role of type TensorFlow that is no part of the cluster.
	RoleEvaluator = "evaluator"
)

// JobRole is a group of workers that do something else than the others: parameter servers, an evaluator, a launcher. They are
// the template's pods but for what the role says of the training container. They belong to the core, and are among minReplicas.
//
// +kubebuilder:validation:XValidation:rule="!has(self.lead) || !self.lead || !has(self.replicas) || self.replicas == 1",fieldPath=".replicas",messageExpression="'replicas (%d) of role %s must be 1, because the role leads, and one worker leads a job: set replicas to 1, or remove lead'.format([self.replicas, self.name])"
// +kubebuilder:validation:XValidation:rule="self.name != 'master' || (has(self.lead) && self.lead)",fieldPath=".name",message="role master is the name for the worker that leads: set lead to true, or choose another name"
type JobRole struct {
	// Name of the role, for people and programs: a part of the host names of its workers (JOB-ROLE-INDEX), of Volcano's variables
	// (VC_PS_HOSTS for role ps), and the type of their task in TF_CONFIG. worker, core, surplus, merge and other are taken.
	// +required
	// +kubebuilder:validation:MaxLength=12
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9]*$`
	// +kubebuilder:validation:XValidation:rule="!(self in ['worker', 'core', 'surplus', 'merge', 'other'])",messageExpression="'name ' + self + ' is taken: Tideline calls other pods so; choose another name'"
	Name string `json:"name"`

	// Replicas is how many workers the role has. They do not stretch. Default 1, range 1 to 31.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31
	Replicas int32 `json:"replicas,omitempty"`

	// Lead makes the role's one worker the job's worker 0, which the others find by name, which is placed first, and whose success
	// completes the job unless successPolicy says otherwise: a launcher, a chief, a coordinator. Default false: worker 0 is one of
	// the template's workers.
	// +optional
	Lead bool `json:"lead,omitempty"`

	// Image of the training container. Default: the template's.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image,omitempty"`

	// Command of the training container, in place of the template's command and args. Default: the template's.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	Command []string `json:"command,omitempty"`

	// Args of the training container, in place of the template's args. Default: the template's, unless command is set.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	Args []string `json:"args,omitempty"`

	// Env of the training container: variables beside the template's, or in place of one of the same name. Default none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Env []RoleVariable `json:"env,omitempty"`

	Master `json:",inline"`
}

// RoleVariable is a variable of a role's training container.
type RoleVariable struct {
	// Name of the variable.
	// +required
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	Name string `json:"name"`
	// Value of the variable. Default empty.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Value string `json:"value,omitempty"`
}

// Seat is where a worker belongs: its role, and its index among the workers of that role.
//
// +kubebuilder:object:generate=false
type Seat struct {
	// Role of the worker; nil for the workers that the template alone describes.
	Role *JobRole
	// Index in the role, from 0.
	Index int32
}

// RoleMembers is how many workers of the job belong to roles.
func (s *ElasticTrainingJobSpec) RoleMembers() (count int32) {
	for i := range s.Roles {
		count += max(s.Roles[i].Replicas, 1) // A definition without defaults admits a role without a number.
	}
	return count
}

// SeatOf is where worker i of the job belongs. Workers are numbered in the order in which they are placed: the one of the
// role that leads, else the template's first; then the other roles, in the order of the spec; then all other workers of the
// template.
func (s *ElasticTrainingJobSpec) SeatOf(i int32) Seat {
	leading := s.leadingRole()
	switch {
	case i == 0:
		return Seat{Role: leading}
	case len(s.Roles) == 0:
		return Seat{Index: i}
	}
	at := int32(1)
	for r := range s.Roles {
		role := &s.Roles[r]
		if role == leading {
			continue
		}
		if next := at + max(role.Replicas, 1); i < next {
			return Seat{Role: role, Index: i - at}
		}
		at += max(role.Replicas, 1)
	}
	if leading == nil {
		at-- // Worker 0 is the template's first.
	}
	return Seat{Index: i - at}
}

// leadingRole is the role that worker 0 belongs to; nil for none.
func (s *ElasticTrainingJobSpec) leadingRole() *JobRole {
	for r := range s.Roles {
		if s.Roles[r].Lead {
			return &s.Roles[r]
		}
	}
	return nil
}

// Name is the name of the role.
func (s Seat) Name() string {
	if s.Role == nil {
		return RoleWorker
	}
	return s.Role.Name
}
