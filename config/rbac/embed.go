// Package rbac holds the operator's role, so that the operator can tell whether it has been granted.
package rbac

import _ "embed"

// Role is the ClusterRole of the operator, in YAML.
//
//go:embed role.yaml
var Role []byte

const (
	// Namespace is where the installation puts the operator.
	Namespace = "tideline-system"
	// ServiceAccount is the operator's ServiceAccount in Namespace.
	ServiceAccount = "tideline-controller-manager"
)
