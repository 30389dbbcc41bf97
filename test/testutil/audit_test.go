package testutil

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// line is a line of the audit log as kube-apiserver writes it.
func line(user, verb, resource, namespace, name string, code int) string {
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":"ResponseComplete","verb":%q,`+
		`"user":{"username":%q},"userAgent":"x","objectRef":{"resource":%q,"namespace":%q,"name":%q,"apiVersion":"v1"},`+
		`"responseStatus":{"metadata":{},"code":%d},"requestReceivedTimestamp":"2026-11-20T11:00:00.000000Z",`+
		`"stageTimestamp":"2026-11-20T11:00:00.100000Z"}`+"\n", verb, user, resource, namespace, name, code)
}

const operatorUser = "system:serviceaccount:tideline-system:tideline-controller-manager"

func TestAuditCountsWritesOfTheOperator(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.log")
	write(t, log, line(operatorUser, "create", "pods", "ns", "before", 201))
	audit, err := (&World{AuditLog: log}).Audit("ns")
	if err != nil {
		t.Fatal(err)
	}
	half := line(operatorUser, "delete", "pods", "ns", "late", 200)
	write(t, log,
		line(operatorUser, "create", "pods", "ns", "a", 201),
		line(operatorUser, "create", "pods", "ns", "refused", 403),
		line(operatorUser, "create", "pods", "ns2", "another namespace", 201),
		line("admin", "create", "pods", "ns", "another user", 201),
		line(operatorUser, "watch", "pods", "ns", "", 200),
		line(operatorUser, "get", "pods", "ns", "a", 200),
		line(operatorUser, "create", "events", "ns", "e", 201),
		half[:20],
	)
	expect := func(want ...string) {
		t.Helper()
		requests, err := audit.Select(ByOperator, Write)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range requests {
			names = append(names, r.Name)
		}
		if !slices.Equal(names, want) {
			t.Errorf("writes of the operator are on %v, want %v", names, want)
		}
	}
	expect("a", "refused")
	write(t, log, half[20:])
	expect("a", "refused", "late")
	if reads, err := audit.Select(ByOperator, Read); err != nil || len(reads) != 1 {
		t.Errorf("reads = %v, %v, want the one get", reads, err)
	}
}

func TestAuditUserCountsOneUsersRequestsOfAllNamespaces(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.log")
	write(t, log)
	audit, err := (&World{AuditLog: log}).AuditUser("client")
	if err != nil {
		t.Fatal(err)
	}
	write(t, log,
		line("client", "create", "pods", "ns", "a", 201),
		line("client", "create", "queues", "", "search", 201),
		line("client-2", "create", "pods", "ns", "another user's", 201),
		line("admin", "patch", "pods", "ns", "client", 200),
		line("client", "create", "pods", "ns2", "b", 201),
	)
	requests, err := audit.Select(Write)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range requests {
		names = append(names, r.Name)
	}
	if want := []string{"a", "search", "b"}; !slices.Equal(names, want) {
		t.Errorf("writes are on %v, want %v", names, want)
	}
}

func TestAuditNamedCountsWhatIsNamedAfterTheNamespace(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.log")
	write(t, log)
	world := &World{AuditLog: log}
	for name, c := range map[string]struct {
		audit func(string) (*Audit, error)
		want  []string
	}{
		"alone": {world.Audit, []string{"a"}}, "named": {world.AuditNamed, []string{"tideline-ns-surplus", "ns-ads-launch", "a"}},
	} {
		audit, err := c.audit("ns")
		if err != nil {
			t.Fatal(err)
		}
		write(t, log,
			line(operatorUser, "create", "priorityclasses", "", "tideline-ns-surplus", 201),
			line(operatorUser, "create", "queues", "", "search", 201),
			line(operatorUser, "create", "pods", "tideline-system", "ns-ads-launch", 201),
			line(operatorUser, "create", "pods", "ns2", "another namespace", 201),
			line(operatorUser, "create", "pods", "ns", "a", 201),
		)
		requests, err := audit.Select(ByOperator, Write)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range requests {
			names = append(names, r.Name)
		}
		if !slices.Equal(names, c.want) {
			t.Errorf("%s: writes are on %v, want %v", name, names, c.want)
		}
	}
}

func write(t *testing.T, file string, lines ...string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for _, l := range lines {
		if _, err := f.WriteString(l); err != nil {
			t.Fatal(err)
		}
	}
}
