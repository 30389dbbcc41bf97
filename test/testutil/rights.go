package testutil

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Right is one thing that a role allows.
type Right struct {
	// Group is empty for the core group. Resource has its subresource, as in pods/status.
	Group, Resource, Verb string
	// Name is the only object that it is about; empty for any.
	Name string
}

// String is the right in words.
func (r Right) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Verb, strings.TrimSuffix(r.Resource+"."+r.Group, "."), r.Name))
}

// Unused returns those rights of roles, given in YAML, that the operator needed for no request that audit logs have. Rights that
// except names, as [Right.String] does, may be unused.
//
// A list counts as used where there was a watch: informers have the watch begin with the list where the API server can do that,
// and list where it cannot, which is before Kubernetes 1.32.
func Unused(roles []byte, except []string, logs ...string) ([]string, error) {
	granted, err := rights(roles)
	if err != nil {
		return nil, err
	}
	used := map[Right]bool{}
	for _, log := range logs {
		if err := addUsed(used, log); err != nil {
			return nil, err
		}
	}
	var unused []string
	for _, r := range granted {
		watched := r
		watched.Verb = "watch"
		if !used[r] && (r.Verb != "list" || !used[watched]) && !slices.Contains(except, r.String()) {
			unused = append(unused, r.String())
		}
	}
	return unused, nil
}

// rights are what roles and cluster roles allow.
func rights(roles []byte) ([]Right, error) {
	var all []Right
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(roles), 4096); ; {
		var role rbacv1.ClusterRole // and roles, which have the same rules
		switch err := decoder.Decode(&role); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("read roles: %w", err)
		}
		for _, rule := range role.Rules {
			all = append(all, expand(rule)...)
		}
	}
}

func expand(rule rbacv1.PolicyRule) []Right {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var all []Right
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				for _, name := range names {
					all = append(all, Right{Group: group, Resource: resource, Verb: verb, Name: name})
				}
			}
		}
	}
	return all
}

// addUsed adds the rights that the operator's requests in a log needed, as those to any object and to this one.
func addUsed(used map[Right]bool, log string) error {
	f, err := os.Open(log)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	operator := []byte(`:` + OperatorNamespace + `:` + OperatorServiceAccount + `"`)
	for reader := bufio.NewReaderSize(f, 1<<16); ; {
		line, err := reader.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case !bytes.Contains(line, operator):
			continue
		}
		var e auditv1.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("read a line of the audit log: %w", err)
		}
		if e.ObjectRef == nil || !strings.HasSuffix(e.User.Username, ":"+OperatorNamespace+":"+OperatorServiceAccount) {
			continue
		}
		r := Right{Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource, Verb: e.Verb}
		if e.ObjectRef.Subresource != "" {
			r.Resource += "/" + e.ObjectRef.Subresource
		}
		used[r] = true
		r.Name = e.ObjectRef.Name
		used[r] = true
	}
}
