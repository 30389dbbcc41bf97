package recorder

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

	mu sync.Mutex
	// profiles are those of one moment, and of has the profiles of namespaces that were asked for since.
	profiles *profilecache.Profiles
	read     time.Time
	of       map[string]string
}

// findPlace is where a pod is, as far as it can be read.
func (p *places) findPlace(ctx context.Context, pod *corev1.Pod) Place {
	place := Place{Profile: p.profileOf(ctx, pod.Namespace), Queue: p.queueOf(ctx, pod)}
	if o, exists, err := p.nodes.GetByKey(pod.Spec.NodeName); err == nil && exists {
		if node, ok := o.(*corev1.Node); ok {
			place.Node = node.Labels
		}
	}
	return place
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
