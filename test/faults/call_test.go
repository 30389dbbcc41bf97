package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// call is one request of the operator, in the words of the API server's audit log.
type call struct {
	// number counts writes from 1; reads, events and leases have none.
	number int
	verb   string
	// resource with its subresource, as in pods/status.
	resource string
	name     string
	// says is what a write of status says, for people.
	says string
	// code is the API server's answer; 0 while there is none.
	code int
	// fault is what happened to the request.
	fault fault
}

func newCall(info *apirequest.RequestInfo, body []byte) *call {
	c := &call{verb: info.Verb, resource: info.Resource, name: info.Name}
	if info.Subresource != "" {
		c.resource += "/" + info.Subresource
	}
	if c.verb == "create" && c.name == "" {
		c.name = nameIn(body)
	}
	if info.Subresource == "status" {
		c.says = saidIn(body)
	}
	return c
}

func (c call) isWrite() bool {
	switch c.verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return c.resource != "events" && c.resource != "leases"
	}
	return false
}

// does is what the request does, as in "create pods a-worker-0".
func (c call) does() string { return c.verb + " " + c.resource + " " + c.name }

// String is what the request does and says.
func (c call) String() string {
	if c.says == "" {
		return c.does()
	}
	return c.does() + ": " + c.says
}

// begins tells whether a write was carried out as the first of the story that a job or a merge has in its status.
func (c call) begins() bool {
	return c.number > 0 && (c.resource == jobsResource+"/status" || c.resource == mergesResource+"/status") && c.code < 400
}

// nameIn reads the name of an object that is created, which may be written in protobuf.
func nameIn(body []byte) string {
	if bytes.HasPrefix(body, []byte("k8s\x00")) {
		o, _, err := serializer.NewCodecFactory(clientgoscheme.Scheme).UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			return err.Error()
		}
		if object, err := meta.Accessor(o); err == nil {
			return object.GetName()
		}
	}
	o := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(body, o); err != nil {
		return err.Error()
	}
	return o.Name
}

// saidIn reads the parts of a patch of status by which people know it.
func saidIn(patch []byte) string {
	said := struct {
		Status struct {
			Phase, Summary, Reason, Mailed string
			Attempt                        *struct{ Number int }
			Run                            *struct{ Outcome string }
			Restarts                       int
			Elasticity                     struct{ LastEvictionTime string }
			Reservations                   []struct{ Name, Phase string }
		}
	}{}
	if err := json.Unmarshal(patch, &said); err != nil {
		return err.Error()
	}
	st := said.Status
	var words []string
	if st.Attempt != nil {
		words = append(words, fmt.Sprintf("attempt %d", st.Attempt.Number))
	}
	if st.Run != nil && st.Run.Outcome != "" {
		words = append(words, "run "+st.Run.Outcome)
	}
	for _, word := range []string{st.Phase, st.Summary, st.Reason} {
		if word != "" {
			words = append(words, word)
		}
	}
	if st.Mailed != "" {
		words = append(words, "mailed "+st.Mailed)
	}
	if st.Restarts != 0 {
		words = append(words, fmt.Sprintf("restarts %d", st.Restarts))
	}
	if st.Elasticity.LastEvictionTime != "" {
		words = append(words, "evicted")
	}
	for _, r := range st.Reservations {
		words = append(words, r.Name+" "+r.Phase)
	}
	return strings.Join(words, ", ")
}

// fault is what may happen to a request.
type fault int

const (
	noFault fault = iota
	// crashBefore: the operator dies when it sends the request, which does not arrive.
	crashBefore
	// crashAfter: the request is carried out, and the operator dies before it has the answer.
	crashAfter
	// conflict: refused, as when somebody else was faster.
	conflict
	// tooManyRequests: refused, as by priority and fairness.
	tooManyRequests
	// internalError: refused, as by an admission webhook that fails.
	internalError
	// timeoutBefore: the request is not carried out, and the answer says nothing of that.
	timeoutBefore
	// timeoutAfter: it is, and the answer is the same.
	timeoutAfter
	// stall: the operator is paused when it has sent the request, which arrives when it goes on.
	stall
	// cutOff: the API server is gone when the request arrives, and for some time.
	cutOff
	// silenced: it is carried out, and then no packet passes for some time, in either direction. The answer arrives after that.
	silenced
)

// String names the fault.
func (f fault) String() string {
	return [...]string{"nothing", "crash before", "crash after", "409", "429", "500", "504 before", "504 after", "paused",
		"cut off", "no packet passes"}[f]
}

func (f fault) carriedOut() bool {
	return f == noFault || f == crashAfter || f == timeoutAfter || f == stall || f == silenced
}

func (f fault) crashes() bool { return f == crashBefore || f == crashAfter }

// refuses is true for faults of which the operator is told in an answer.
func (f fault) refuses() bool { return f >= conflict && f <= timeoutAfter }

// refuse answers with an error as the API server writes it.
func (f fault) refuse(w http.ResponseWriter, c call) {
	resource, reason := schema.GroupResource{Resource: c.resource}, errors.New("a fault of the test")
	var err *apierrors.StatusError
	switch {
	case f == conflict && c.verb == "create":
		err = apierrors.NewAlreadyExists(resource, c.name)
	case f == conflict:
		err = apierrors.NewConflict(resource, c.name, reason)
	case f == tooManyRequests:
		err = apierrors.NewTooManyRequests(reason.Error(), 1)
		w.Header().Set("Retry-After", "1")
	case f == internalError:
		err = apierrors.NewInternalError(reason)
	default:
		err = apierrors.NewTimeoutError(reason.Error(), 0)
	}
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // an operator that is gone reads nothing
}

// noFaults lets everything pass.
func noFaults(call) fault { return noFault }

// at lets one fault happen, to the n-th write.
func at(n int, f fault) func(call) fault {
	return func(c call) fault {
		if c.number == n {
			return f
		}
		return noFault
	}
}
