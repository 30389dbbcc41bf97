package kube

import (
	resourcev1 "k8s.io/api/resource/v1"
)

// StripOthers is for objects without a transform of their own. It keeps of resource claims and their templates what they ask for
// and how many devices they got, of jobs no template that is too large, and of others all but what no reconciler reads. The cache
// must not be told of these in another way: it asks about every kind that it is told of, and an API server may not serve them.
func StripOthers(o any) (any, error) {
	switch object := o.(type) {
	case *resourcev1.ResourceClaim:
		stripped := &resourcev1.ResourceClaim{ObjectMeta: identityOf(object)}
		stripped.Spec.Devices = stripRequests(object.Spec.Devices.Requests)
		if a := object.Status.Allocation; a != nil {
			stripped.Status.Allocation = &resourcev1.AllocationResult{}
			kept := &stripped.Status.Allocation.Devices.Results
			for i := range a.Devices.Results {
				*kept = append(*kept, resourcev1.DeviceRequestAllocationResult{Request: a.Devices.Results[i].Request})
			}
		}
		return stripped, nil
	case *resourcev1.ResourceClaimTemplate:
		stripped := &resourcev1.ResourceClaimTemplate{ObjectMeta: identityOf(object)}
		stripped.Spec.Spec.Devices = stripRequests(object.Spec.Spec.Devices.Requests)
		return stripped, nil
	}
	return StripJob(o)
}

// stripRequests keeps of each request its name, its class and how many devices it asks for.
func stripRequests(requests []resourcev1.DeviceRequest) resourcev1.DeviceClaim {
	kept := make([]resourcev1.DeviceRequest, len(requests))
	for i := range requests {
		kept[i].Name = requests[i].Name
		if exact := requests[i].Exactly; exact != nil {
			kept[i].Exactly = &resourcev1.ExactDeviceRequest{
				DeviceClassName: exact.DeviceClassName, AllocationMode: exact.AllocationMode, Count: exact.Count,
				AdminAccess: exact.AdminAccess,
			}
		}
		for _, sub := range requests[i].FirstAvailable {
			kept[i].FirstAvailable = append(kept[i].FirstAvailable, resourcev1.DeviceSubRequest{
				Name: sub.Name, DeviceClassName: sub.DeviceClassName, AllocationMode: sub.AllocationMode, Count: sub.Count,
			})
		}
	}
	return resourcev1.DeviceClaim{Requests: kept}
}
