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
	"sync"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Request is one request that the API server answered.
type Request struct {
	// Received is when the request arrived, Answered when it was answered.
	Received, Answered time.Time
	User, UserAgent    string
	Verb, Resource     string // Resource with its subresource, as in pods/status
	Namespace, Name    string
	Code               int32
}

// String is the request in one line.
func (r Request) String() string {
	return fmt.Sprintf("%s %s %s %s/%s %d", r.Received.Format("15:04:05.000"), r.Verb, r.Resource, r.Namespace, r.Name, r.Code)
}

// Audit reads the requests that concern one namespace, or those of one user, from the API server's audit log, from the moment it
// was made.
type Audit struct {
	path string
	// mention is what each line of such a request has.
	mention  []byte
	concerns func(Request) bool

	mu     sync.Mutex
	offset int64
	read   []Request
}

// Audit begins to read what concerns the namespace.
func (w *World) Audit(namespace string) (*Audit, error) {
	return w.audit(`"namespace":"`+namespace+`"`, func(r Request) bool { return r.Namespace == namespace })
}

// AuditNamed is Audit, and has the requests too that concern objects outside of the namespace which have its name in theirs.
func (w *World) AuditNamed(namespace string) (*Audit, error) {
	return w.audit(namespace, func(r Request) bool { return r.Namespace == namespace || strings.Contains(r.Name, namespace) })
}

// AuditUser begins to read what a user asks, of all namespaces.
func (w *World) AuditUser(user string) (*Audit, error) {
	return w.audit(`"username":"`+user+`"`, func(r Request) bool { return r.User == user })
}

func (w *World) audit(mention string, concerns func(Request) bool) (*Audit, error) {
	info, err := os.Stat(w.AuditLog)
	if err != nil {
		return nil, fmt.Errorf("find the audit log: %w", err)
	}
	return &Audit{path: w.AuditLog, mention: []byte(mention), concerns: concerns, offset: info.Size()}, nil
}

// Select returns the requests so far that all conditions hold for, in the order in which they were answered.
func (a *Audit) Select(conditions ...func(Request) bool) ([]Request, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.catchUp(); err != nil {
		return nil, err
	}
	var selected []Request
	for _, r := range a.read {
		if !slices.ContainsFunc(conditions, func(c func(Request) bool) bool { return !c(r) }) {
			selected = append(selected, r)
		}
	}
	return selected, nil
}

// Forbidden returns an error that quotes the first request that the operator's role does not allow. What a quota or an admission
// plugin refuses is allowed by the role, and ordinary.
func (w *World) Forbidden() error {
	f, err := os.Open(w.AuditLog)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	decision, operator := []byte(`"authorization.k8s.io/decision":"forbid"`), []byte(`"userAgent":"tideline`)
	for reader := bufio.NewReaderSize(f, 1<<16); ; {
		line, err := reader.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case bytes.Contains(line, decision) && bytes.Contains(line, operator):
			return fmt.Errorf("the operator's role (config/rbac) does not allow:\n%s", line)
		}
	}
}

// catchUp reads the lines that were added since it last read.
func (a *Audit) catchUp() error {
	f, err := os.Open(a.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(a.offset, io.SeekStart); err != nil {
		return err
	}
	for reader := bufio.NewReaderSize(f, 1<<16); ; {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // A line without its end is read again next time.
		}
		if err != nil {
			return err
		}
		a.offset += int64(len(line))
		if !bytes.Contains(line, a.mention) {
			continue
		}
		var e auditv1.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("read a line of the audit log: %w", err)
		}
		if r, ok := requestOf(&e); ok && a.concerns(r) {
			a.read = append(a.read, r)
		}
	}
}

func requestOf(e *auditv1.Event) (Request, bool) {
	if e.ObjectRef == nil || e.ResponseStatus == nil || e.Stage != auditv1.StageResponseComplete {
		return Request{}, false
	}
	resource := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}
	return Request{
		Received: e.RequestReceivedTimestamp.Time, Answered: e.StageTimestamp.Time,
		User: e.User.Username, UserAgent: e.UserAgent,
		Verb: e.Verb, Resource: resource, Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
		Code: e.ResponseStatus.Code,
	}, true
}

// ByOperator holds for requests of the operator: of its service account, or of any user by a program that calls itself so.
func ByOperator(r Request) bool {
	const account = "system:serviceaccount:" + OperatorNamespace + ":" + OperatorServiceAccount
	return r.User == account || strings.HasPrefix(r.UserAgent, "tideline")
}

// ByVolcano holds for requests of Volcano's scheduler, whose deletions of pods are evictions.
func ByVolcano(r Request) bool { return strings.HasSuffix(r.User, ":volcano-scheduler") }

// ByKubelet holds for requests of KWOK, which stands for the kubelets: it removes a pod for good that somebody deleted.
func ByKubelet(r Request) bool { return r.User == "kwok" }

// Write holds for requests that change something, or tried to and were refused. Events and leases are not counted.
func Write(r Request) bool {
	return Change(r) && r.Resource != "events" && r.Resource != "leases"
}

// Read holds for requests that read without watching.
func Read(r Request) bool { return r.Verb == "get" || r.Verb == "list" }

// Event holds for writes of events.
func Event(r Request) bool { return Change(r) && r.Resource == "events" }

// Change holds for requests that are no reads: writes, and events and leases too.
func Change(r Request) bool { return !Read(r) && r.Verb != "watch" }

// Not turns a condition round.
func Not(condition func(Request) bool) func(Request) bool {
	return func(r Request) bool { return !condition(r) }
}

// Doing holds for requests of a verb on a resource, given with its subresource as in pods/status.
func Doing(verb, resource string) func(Request) bool {
	return func(r Request) bool { return r.Verb == verb && r.Resource == resource }
}

// To holds for requests on objects of that name.
func To(name string) func(Request) bool {
	return func(r Request) bool { return r.Name == name }
}

// Refused holds for requests that the API server did not carry out.
func Refused(r Request) bool { return r.Code >= 400 }

// From holds for requests that arrived at that time or later.
func From(t time.Time) func(Request) bool {
	return func(r Request) bool { return !r.Received.Before(t) }
}

// Counts counts requests by what they did, as in "create pods": 4.
func Counts(requests []Request) map[string]int {
	counts := map[string]int{}
	for _, r := range requests {
		counts[r.Verb+" "+r.Resource]++
	}
	return counts
}
