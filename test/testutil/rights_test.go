package testutil

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
)

// asked is a line of the audit log for a request of a user.
func asked(user, verb, group, resource, subresource, name string) string {
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":%q,"user":{"username":%q},`+
		`"objectRef":{"resource":%q,"subresource":%q,"apiGroup":%q,"name":%q},"responseStatus":{"code":200}}`+"\n",
		verb, user, resource, subresource, group, name)
}

const someRoles = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: a}
rules:
- {apiGroups: [""], resources: [pods, services], verbs: [create, list, watch]}
- {apiGroups: [""], resources: [nodes], verbs: [list]}
- {apiGroups: [tideline.io], resources: [elastictrainingjobs/status], verbs: [get, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: a}
rules:
- {apiGroups: [""], resources: [secrets], resourceNames: [one, two], verbs: [get]}
`

func TestUnusedRightsAreFound(t *testing.T) {
	log, other := filepath.Join(t.TempDir(), "audit.log"), filepath.Join(t.TempDir(), "audit.log")
	write(t, log,
		asked(operatorUser, "create", "", "pods", "", "a-worker-0"),
		asked(operatorUser, "watch", "", "pods", "", ""),
		asked("alice", "create", "", "services", "", "a"),
		asked(operatorUser+"2", "watch", "", "services", "", ""),
		asked(operatorUser, "patch", "tideline.io", "elastictrainingjobs", "status", "a"),
		asked(operatorUser, "get", "", "secrets", "", "one"),
		`{"stage":"ResponseComplete","verb":"get","user":{"username":"`+operatorUser+`"},"requestURI":"/api"}`+"\n",
	)
	write(t, other, asked(operatorUser, "list", "", "services", "", ""))
	unused, err := Unused([]byte(someRoles), []string{"watch services"}, log, other)
	want := []string{"create services", "list nodes", "get elastictrainingjobs/status.tideline.io", "get secrets two"}
	if err != nil || !slices.Equal(unused, want) {
		t.Errorf("unused are %q (%v), want %q", unused, err, want)
	}
	if _, err := Unused([]byte("kind: [}"), nil, log); err == nil {
		t.Error("roles that cannot be read are taken for none")
	}
	if _, err := Unused([]byte(someRoles), nil, log, "missing"); err == nil {
		t.Error("a log that is missing is taken for an empty one")
	}
}
