package kube

import (
	"os"
	"strings"
)

// namespaceFile is where a pod finds the namespace of its ServiceAccount.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// OwnNamespace is the namespace that this process runs in, or another where it runs outside the cluster.
func OwnNamespace(otherwise string) string {
	if content, err := os.ReadFile(namespaceFile); err == nil && len(content) > 0 {
		return strings.TrimSpace(string(content))
	}
	return otherwise
}
