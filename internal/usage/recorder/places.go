package recorder

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/platform/claimcache"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/quota/profilecache"
)

// profilesInterval is how long the profile of a namespace is cached.
const profilesInterval = 5 * time.Second

// places finds where pods are, in caches. It may be asked side by side.
type places struct {
	reader client.Reader
	nodes  toolscache.Store
	// volcano knows whether there are PodGroups.
	volcano *kube.Kinds
	now     func() time.Time
	// claims counts the devices that pods claim; nil for an API server without resource claims.
	claims *claimcache.Reader

	mu sync.Mutex
	// profiles are those of one moment, and of has the profiles of namespaces that were asked for since.
	profiles *profilecache.Profiles
	read     time.Time
	of       map[string]string
	// devices are what pods with claims last held.
	devices map[types.UID]held
}

// findPlace is where a pod is, as far as it can be read.
func (p *places) findPlace(ctx context.Context, pod *corev1.Pod) Place {
	place := Place{Profile: p.profileOf(ctx, pod.Namespace), Queue: p.queueOf(ctx, pod), Claimed: p.claimedBy(ctx, pod)}
	if o, exists, err := p.nodes.GetByKey(pod.Spec.NodeName); err == nil && exists {
		if node, ok := o.(*corev1.Node); ok {
			place.Node = node.Labels
		}
	}
	return place
}

// held is what a pod's devices counted as, and when that was last asked for.
type held struct {
	as    corev1.ResourceList
	asked time.Time
}

// heldFor is how long the devices of a pod are remembered that is not asked for. All that run are asked for every minute.
const heldFor = 10 * time.Minute

// claimedBy is what the pod's devices count as. Kubernetes deletes the claims of a pod that has ended, and users delete templates
// together with their jobs, so a pod keeps what it was seen to have.
func (p *places) claimedBy(ctx context.Context, pod *corev1.Pod) corev1.ResourceList {
	if p.claims == nil || len(pod.Spec.ResourceClaims) == 0 {
		return nil
	}
	claims, err := p.claims.HeldBy(ctx, pod)
	counted, now := claims.Count(), p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.devices[pod.UID]
	if last.asked = now; err == nil && len(counted.Missing) == 0 && (!known || !hasEnded(pod)) {
		last.as = counted.Resources
	}
	maps.DeleteFunc(p.devices, func(_ types.UID, h held) bool { return now.Sub(h.asked) > heldFor })
	if p.devices == nil {
		p.devices = map[types.UID]held{}
	}
	p.devices[pod.UID] = last
	return last.as
}

func (p *places) profileOf(ctx context.Context, namespace string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if age := p.now().Sub(p.read); p.profiles == nil || age < 0 || age >= profilesInterval {
		profiles, err := profilecache.ReadProfiles(ctx, p.reader)
		if err != nil {
			return p.of[namespace]
		}
		p.profiles, p.read, p.of = profiles, p.now(), map[string]string{}
	}
	name, known := p.of[namespace]
	if known {
		return name
	}
	// A deleted namespace has no profile.
	if _, profile, err := p.profiles.ProfileOf(ctx, namespace); err == nil && profile != nil {
		name = profile.Name
	}
	p.of[namespace] = name
	return name
}

func (p *places) queueOf(ctx context.Context, pod *corev1.Pod) string {
	name := gang.GroupOf(pod)
	if name == "" || p.volcano.MissingKinds() != "" {
		return ""
	}
	group := gang.NewPodGroup()
	key := client.ObjectKey{Namespace: pod.Namespace, Name: name}
	if err := p.reader.Get(ctx, key, group, client.UnsafeDisableDeepCopy); err != nil {
		return ""
	}
	return gang.MembershipOf(group).Queue
}
