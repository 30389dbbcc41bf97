package quota

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
)

// placeholders makes what holds the room of a reservation: a gang of pods that do nothing.
type placeholders struct {
	namespace string
	profile   *v1beta1.ResourceQuotaProfile
	spec      *v1beta1.ProfileReservation
	tier      config.Tier
	image     string
}

// namePart is how much of a name stands in those of objects, so that with index they are DNS labels.
const namePart = 20

// groupName differs for each reservation and for each version of what it asks for, so that a changed reservation gets new
// objects.
func (b placeholders) groupName() string {
	asks, _ := json.Marshal([]any{b.profile.UID, b.spec.Name, b.spec.Replicas, b.spec.Resources, b.tier.Name}) // it has no error
	sum := sha256.Sum256(asks)
	return clipName(b.profile.Name) + "-" + clipName(b.spec.Name) + "-" + hex.EncodeToString(sum[:4])
}

func (b placeholders) podName(i int32) string { return b.groupName() + "-" + strconv.Itoa(int(i)) }

func clipName(name string) string { return strings.TrimRight(name[:min(len(name), namePart)], "-") }

func (b placeholders) labels() map[string]string {
	return map[string]string{v1beta1.LabelProfile: b.profile.Name, v1beta1.LabelReservation: b.spec.Name}
}

// ownerReference lets the garbage collector release the room when the profile is deleted, even if no operator runs.
func (b placeholders) ownerReference() metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1beta1.OwnerVersion.String(), Kind: v1beta1.ResourceQuotaProfileKind, Name: b.profile.Name, UID: b.profile.UID,
		Controller: ptr.To(true),
	}
}

func (b placeholders) podGroup() gang.Group {
	all := corev1.ResourceList{}
	for name, each := range b.spec.Resources {
		total := each.DeepCopy()
		total.Mul(int64(b.spec.Replicas))
		all[name] = total
	}
	return gang.Group{
		Namespace: b.namespace, Name: b.groupName(), Labels: b.labels(), Owner: b.ownerReference(), Queue: b.profile.Name,
		PriorityClass: b.tier.ClassName(), MinMember: b.spec.Replicas, MinResources: all,
	}
}

// yieldingGroup is the group in a form that lets any gang with a higher priority take its room. minResources is zero as well,
// so that Volcano counts all that the pods hold as something the queue can release. Otherwise it would not consider a gang
// for which the queue seems to have no room.
func (b placeholders) yieldingGroup(g gang.Group) gang.Group {
	nothing := corev1.ResourceList{}
	for name := range g.MinResources {
		nothing[name] = resource.Quantity{}
	}
	g.MinMember, g.MinResources = 0, nothing
	return g
}

// placeholderPod holds the place of one replica. It tolerates the taints of the devices that it asks for, and has a grace
// period of zero, so that the job gets its place at once.
func (b placeholders) placeholderPod(i int32) *corev1.Pod {
	labels := b.labels()
	labels[v1beta1.LabelWorkerIndex] = strconv.Itoa(int(i))
	var tolerations []corev1.Toleration
	for name := range b.spec.Resources {
		if strings.Contains(string(name), "/") {
			tolerations = append(tolerations, corev1.Toleration{Key: string(name), Operator: corev1.TolerationOpExists})
		}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: b.namespace, Name: b.podName(i), Labels: labels,
			OwnerReferences: []metav1.OwnerReference{b.ownerReference()},
		},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To[int64](0), Tolerations: tolerations,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65532),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "placeholder", Image: b.image,
				Resources: corev1.ResourceRequirements{Requests: b.spec.Resources.DeepCopy(), Limits: b.spec.Resources.DeepCopy()},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
	// Preemptable, yet safe: Volcano evicts no pod that its PodGroup needs for minMember.
	gang.Member{Group: b.groupName(), Index: i, PriorityClass: b.tier.ClassName(), Preemptable: true}.JoinGang(pod)
	return pod
}
