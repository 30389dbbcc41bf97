package sizing

import (
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// ApplyRequests sets the requests of containers of a role to the result of sizing, if the mode is Enforce. A limit keeps its
// ratio to the request.
func ApplyRequests(role Role, containers []corev1.Container, st *v1beta1.SizingStatus) {
	if st == nil || st.Mode != v1beta1.SizingEnforce {
		return
	}
	for i := range st.Resources {
		r := &st.Resources[i]
		at := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == r.Container })
		if at < 0 || r.Role != string(role) || r.Sized.Cmp(r.Requested) == 0 {
			continue
		}
		c, name := &containers[at].Resources, corev1.ResourceName(r.Resource)
		if limit, limited := c.Limits[name]; limited {
			c.Limits[name] = toQuantity(proportionalLimit(wholeAmount(limit, r.Resource), r), r.Resource)
		}
		if _, requested := c.Requests[name]; requested {
			c.Requests[name] = r.Sized
		}
	}
}

// proportionalLimit is the limit that keeps its ratio to the request.
func proportionalLimit(limit int64, r *v1beta1.SizedResource) int64 {
	requested, sized := wholeAmount(r.Requested, r.Resource), wholeAmount(r.Sized, r.Resource)
	if limit == requested {
		return sized
	}
	return int64(math.Ceil(float64(limit) / float64(requested) * float64(sized)))
}

// WasCut tells whether a container was granted less memory than its template requests.
func WasCut(st *v1beta1.SizingStatus, part Part) bool {
	return st != nil && st.Mode == v1beta1.SizingEnforce && slices.ContainsFunc(st.Resources, func(r v1beta1.SizedResource) bool {
		return r.Role == string(part.Role) && r.Container == part.Container && r.Resource == Memory && r.Sized.Cmp(r.Requested) < 0
	})
}

// NoteOOM records that a container with less memory than its template requests ran out of memory.
func NoteOOM(st *v1beta1.SizingStatus, part Part, now time.Time) {
	at := metav1.NewTime(now.Truncate(time.Second))
	for i := range st.Resources {
		if r := &st.Resources[i]; r.Role == string(part.Role) && r.Container == part.Container && r.Resource == Memory {
			r.OOMKilledTime = &at
		}
	}
}
