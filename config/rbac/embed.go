// Package rbac holds the operator's roles, so that the operator can tell whether they have been granted.
package rbac

import _ "embed"

// Roles are the ClusterRole of the operator and its Role in Namespace, in YAML.
//
//go:embed role.yaml
var Roles []byte

const (
	// Namespace is where the installation puts the operator.
	Namespace = "tideline-system"
	// ServiceAccount is the operator's ServiceAccount in Namespace.
	ServiceAccount = "tideline-controller-manager"
	// Lease is the object in Namespace by which one of several operators leads, as leader_election_role.yaml has it.
	Lease = "tideline.tideline.io"
)
