package v1beta1

// QueueAllocationGateKey names the annotation by which a pod asks Volcano to keep the autoscaler off it while its queue has
// no room, and the scheduling gate that the webhook then gives it. The value is that of Volcano's
// docs/design/scheduling-gates-queue-admission.md.
const QueueAllocationGateKey = GroupName + "/queue-allocation-gate"
