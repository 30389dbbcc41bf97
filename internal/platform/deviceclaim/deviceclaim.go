// Package deviceclaim counts the devices that pods claim by dynamic resource allocation (resource.k8s.io). It counts what others
// read; package claimcache reads.
package deviceclaim

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/internal/platform/config"
)

const (
	// MaxClaims is how many claims of a pod are looked at. What a pod with more of them asks for is unknown.
	MaxClaims = 32
	// mostDevices is the most that one request counts, so that sums of many workers are numbers. A claim never gets more than 32
	// devices (AllocationResultsMaxSize), whatever it requests.
	mostDevices = 1 << 20
)

// Claims are the claims of a pod.
type Claims struct {
	All []Claim
	// More is how many claims were not looked at.
	More int
	// Classes say as what a device counts.
	Classes config.DeviceClasses
}

// Claim is one claim of a pod, as it was read.
type Claim struct {
	// Name that the pod's containers use for it.
	Name string
	// Object is the kind and name of the claim or template that the pod names, for messages.
	Object string
	// Missing is true if there is no such object.
	Missing bool
	// Requests are what the claim has where its devices are allocated, else what it asks for. Asked is always what it asks for.
	Requests, Asked []Request
}

// Request asks for devices. The scheduler takes one of its alternatives.
type Request struct {
	Name         string
	Alternatives []Alternative
}

// Alternative is a number of devices of a class.
type Alternative struct {
	Class string
	// Count is 0 for as many as there are (allocationMode: All), which is unknown before they are allocated.
	Count int64
}

// ReadRequests reads what a claim asks for. allocated are the devices that it has, if it has any: then each request asks for as
// many as it got. Requests for administrative access are left out, because their devices stay free for others.
func ReadRequests(asked []resourcev1.DeviceRequest, allocated []resourcev1.DeviceRequestAllocationResult) []Request {
	var requests []Request
	for i := range asked {
		r := Request{Name: asked[i].Name}
		if exact := asked[i].Exactly; exact != nil {
			if ptr.Deref(exact.AdminAccess, false) {
				continue
			}
			r.Alternatives = []Alternative{{exact.DeviceClassName, countOf(exact.AllocationMode, exact.Count)}}
		}
		for _, sub := range asked[i].FirstAvailable {
			r.Alternatives = append(r.Alternatives, Alternative{sub.DeviceClassName, countOf(sub.AllocationMode, sub.Count)})
		}
		if len(allocated) > 0 {
			r.Alternatives = allocatedOf(&asked[i], r.Alternatives, allocated)
		}
		requests = append(requests, r)
	}
	return requests
}

// countOf is a number of devices, and 0 for any mode but that of a number.
func countOf(mode resourcev1.DeviceAllocationMode, count int64) int64 {
	if mode != "" && mode != resourcev1.DeviceAllocationModeExactCount {
		return 0
	}
	return min(max(count, 1), mostDevices) // The API server defaults a missing count to 1.
}

// allocatedOf are the alternatives of a request that have devices, with as many as they have.
func allocatedOf(
	asked *resourcev1.DeviceRequest, alternatives []Alternative, allocated []resourcev1.DeviceRequestAllocationResult,
) []Alternative {
	var got []Alternative
	for i, alternative := range alternatives {
		name := asked.Name
		if asked.Exactly == nil {
			name += "/" + asked.FirstAvailable[i].Name
		}
		alternative.Count = 0
		for j := range allocated {
			if allocated[j].Request == name {
				alternative.Count++
			}
		}
		if alternative.Count > 0 {
			got = append(got, alternative)
		}
	}
	return got
}

// Counted is what claims count as.
type Counted struct {
	// Resources that the devices count as. Of alternatives that count as different resources, each counts.
	Resources corev1.ResourceList
	// Devices is the number of accelerators.
	Devices int64
	// Missing lists the objects that do not exist.
	Missing []string
	// Unknown says of each request that cannot be counted why not.
	Unknown []string
}

// Count counts the devices of a pod.
func (c Claims) Count() Counted { return c.count(func(string, string) bool { return true }) }

// CountFor counts the devices that a container sees: those of the claims and requests that it lists.
func (c Claims) CountFor(container *corev1.Container) Counted {
	return c.count(func(claim, request string) bool {
		return slices.ContainsFunc(container.Resources.Claims, func(r corev1.ResourceClaim) bool {
			return r.Name == claim && (r.Request == "" || request == "" || r.Request == request)
		})
	})
}

// count counts the requests that are used. A missing claim is asked for with an empty request.
func (c Claims) count(isUsed func(claim, request string) bool) Counted {
	var n Counted
	amounts := map[string]int64{}
	for i := range c.All {
		claim := &c.All[i]
		if claim.Missing && isUsed(claim.Name, "") {
			n.Missing = append(n.Missing, claim.Object)
		}
		for _, request := range claim.Requests {
			if !isUsed(claim.Name, request.Name) {
				continue
			}
			most, why := c.largestOf(request.Alternatives)
			if why != "" {
				n.Unknown = append(n.Unknown, fmt.Sprintf("request %s of %s %s", request.Name, claim.Object, why))
				continue
			}
			devices := int64(0)
			for name, count := range most {
				amounts[name] += count
				devices = max(devices, count)
			}
			n.Devices += devices
		}
	}
	if c.More > 0 {
		n.Unknown = append(n.Unknown, fmt.Sprintf("the pod has %d claims, and Tideline counts the first %d", MaxClaims+c.More,
			MaxClaims))
	}
	for name, count := range amounts {
		if n.Resources == nil {
			n.Resources = corev1.ResourceList{}
		}
		n.Resources[corev1.ResourceName(name)] = *resource.NewQuantity(count, resource.DecimalSI)
	}
	return n
}

// largestOf is the most of each resource that an alternative counts as, or why that is unknown.
func (c Claims) largestOf(alternatives []Alternative) (most map[string]int64, why string) {
	most = map[string]int64{}
	for _, a := range alternatives {
		as, known := c.Classes[a.Class]
		switch {
		case !known:
			return nil, fmt.Sprintf("asks for devices of DeviceClass %s, which the operator's configuration does not list "+
				"(deviceClasses)", a.Class)
		case as == "":
		case a.Count == 0:
			return nil, fmt.Sprintf("asks for all devices of DeviceClass %s (allocationMode: All)", a.Class)
		default:
			most[as] = max(most[as], a.Count)
		}
	}
	return most, ""
}

// DescribeUnknown joins the reasons why requests cannot be counted, for messages; the first two, and how many more.
func (n Counted) DescribeUnknown() string { return joinFirst(n.Unknown) }

// DescribeMissing is DescribeUnknown for missing objects.
func (n Counted) DescribeMissing() string { return joinFirst(n.Missing) }

func joinFirst(all []string) string {
	const shown = 2
	if len(all) <= shown {
		return strings.Join(all, " and ")
	}
	return fmt.Sprintf("%s (and %d more)", strings.Join(all[:shown], ", "), len(all)-shown)
}
