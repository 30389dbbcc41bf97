package space

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cli"
	"github.com/tideline-io/tideline/internal/quota"
	"github.com/tideline-io/tideline/internal/quota/datasets"
	"github.com/tideline-io/tideline/internal/quota/space"
)

// team is whose claims are looked at.
type team struct {
	// profile of the namespaces; nil if they belong to none.
	profile    *v1beta1.ResourceQuotaProfile
	namespaces []string
	// whole is true if these are all namespaces of the profile.
	whole bool
}

// findTeam reads whose claims those of a namespace are or, if a profile is named, all namespaces of it.
func findTeam(ctx context.Context, c client.Client, namespace, profile string) (*team, error) {
	var profiles []*v1beta1.ResourceQuotaProfile
	list := &v1beta1.ResourceQuotaProfileList{}
	if err := cli.ListPages(ctx, c, list, func(o client.Object) {
		if p, ok := o.(*v1beta1.ResourceQuotaProfile); ok {
			profiles = append(profiles, p.DeepCopy())
		}
	}); err != nil {
		return nil, fmt.Errorf("read which claims profiles list: %w", err)
	}
	index := quota.NewIndex(profiles)
	if profile == "" {
		n := &metav1.PartialObjectMetadata{}
		n.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		if err := c.Get(ctx, client.ObjectKey{Name: namespace}, n); err != nil {
			return nil, fmt.Errorf("read whose namespace %s is: %w", namespace, err)
		}
		return &team{profile: index.ProfileOf(n.Labels), namespaces: []string{namespace}}, nil
	}
	t := &team{whole: true}
	for _, p := range profiles {
		if p.Name == profile {
			t.profile = p
		}
	}
	if t.profile == nil {
		return nil, fmt.Errorf("there is no ResourceQuotaProfile %s", profile)
	}
	namespaces := &metav1.PartialObjectMetadataList{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	err := cli.ListPages(ctx, c, namespaces, func(n client.Object) {
		if index.ProfileOf(n.GetLabels()) == t.profile {
			t.namespaces = append(t.namespaces, n.GetName())
		}
	})
	return t, err
}

// claim is a claim with what a write to it names.
type claim struct {
	space.Claim

	uid     types.UID
	version string
}

// gathered are claims and who uses them.
type gathered struct {
	claims []claim
	// unread are kinds whose use of claims is not known, with the error, in words.
	unread []string
}

// bare are claims without what only writes need.
func bare(claims []claim) []space.Claim {
	all := make([]space.Claim, len(claims))
	for i := range claims {
		all[i] = claims[i].Claim
	}
	return all
}

// gather reads the claims of a team and what uses them. It lists all kinds that may, so that what it does not find is not there,
// but for kinds in unread.
func gather(ctx context.Context, c client.Client, t *team) (*gathered, error) {
	g := &gathered{}
	for _, namespace := range t.namespaces {
		var claims []*corev1.PersistentVolumeClaim
		err := cli.ListPages(ctx, c, &corev1.PersistentVolumeClaimList{}, func(o client.Object) {
			if p, ok := o.(*corev1.PersistentVolumeClaim); ok {
				claims = append(claims, p.DeepCopy())
			}
		}, client.InNamespace(namespace))
		if err != nil {
			return nil, fmt.Errorf("list claims: %w", err)
		}
		// After the claims, so that what is known of users is the newer of the two.
		users := t.readUsers(ctx, c, namespace, g)
		for _, p := range claims {
			users.addSource(p)
		}
		for _, p := range claims {
			g.claims = append(g.claims, t.read(p, users))
		}
	}
	return g, nil
}

func (t *team) read(p *corev1.PersistentVolumeClaim, by *users) claim {
	size, is := p.Status.Capacity[corev1.ResourceStorage]
	if !is {
		size = p.Spec.Resources.Requests[corev1.ResourceStorage]
	}
	known := claim{Claim: space.Claim{
		Namespace: p.Namespace, Name: p.Name, Size: size.DeepCopy(), Created: p.CreationTimestamp.Time,
		Leaving: p.DeletionTimestamp != nil, Rule: p.Annotations[v1beta1.AnnotationPruneAfter],
		UnusedSince: p.Annotations[v1beta1.AnnotationUnusedSince], UnusedSeen: p.Annotations[v1beta1.AnnotationUnusedSeen],
		Users: by.names(p.Name), LastUse: by.ended[p.Name].Time, Missed: by.missed,
	}, uid: p.UID, version: p.ResourceVersion}
	for _, owner := range p.OwnerReferences { // such as the pod of an ephemeral volume
		known.Users = append(known.Users, owner.Kind+" "+owner.Name)
	}
	if t.profile != nil {
		for _, set := range t.profile.Spec.DataSets {
			for _, v := range set.Versions {
				if v.Claim == p.Name {
					known.Versions = append(known.Versions, space.NameVersion(set.Name, v.Version))
				}
			}
		}
	}
	return known
}

// users are what names the claims of a namespace.
type users struct {
	// of maps a claim's name to the kinds and names of its users. ended maps it to the time at which its last former user ended.
	of    map[string][]string
	ended map[string]metav1.Time
	// made are the beginnings of names of claims that StatefulSets make.
	made map[string]string
	// missed is [space.Claim.Missed].
	missed string
}

func (u *users) add(kind string, o client.Object, claims ...string) {
	for _, name := range claims {
		u.of[name] = append(u.of[name], kind+" "+o.GetName())
	}
}

func (u *users) names(claim string) []string {
	all := slices.Clone(u.of[claim])
	for prefix, user := range u.made {
		if len(claim) > len(prefix) && claim[:len(prefix)] == prefix {
			all = append(all, user)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (t *team) readUsers(ctx context.Context, c client.Client, namespace string, g *gathered) *users {
	u := &users{of: map[string][]string{}, ended: map[string]metav1.Time{}, made: map[string]string{}}
	list := func(kind string, list client.ObjectList, each func(client.Object)) {
		err := cli.ListPages(ctx, c, list, each, client.InNamespace(namespace))
		if err != nil && !meta.IsNoMatchError(err) {
			g.unread = append(g.unread, fmt.Sprintf("what objects of kind %s in namespace %s use is not known: %v", kind, namespace, err))
		}
	}
	list(v1beta1.ElasticTrainingJobKind, &v1beta1.ElasticTrainingJobList{}, func(o client.Object) {
		if job, ok := o.(*v1beta1.ElasticTrainingJob); ok {
			t.addTraining(u, job)
		}
	})
	list(v1beta1.MergeJobKind, &v1beta1.MergeJobList{}, func(o client.Object) {
		if merge, ok := o.(*v1beta1.MergeJob); ok {
			u.add(v1beta1.MergeJobKind, o, claimsOf(merge.Spec.Template.Spec.Volumes)...)
			if merge.Spec.Store.Claim != nil {
				u.add(v1beta1.MergeJobKind, o, merge.Spec.Store.Claim.Name)
			}
		}
	})
	for _, kind := range holders {
		served, err := c.RESTMapper().RESTMapping(kind)
		if err != nil {
			if !meta.IsNoMatchError(err) {
				g.unread = append(g.unread, fmt.Sprintf("whether the cluster serves kind %s is not known: %v", kind, err))
			}
			continue
		}
		objects := &unstructured.UnstructuredList{}
		objects.SetGroupVersionKind(served.GroupVersionKind.GroupVersion().WithKind(kind.Kind + "List"))
		list(kind.Kind, objects, func(o client.Object) {
			switch holder, ok := o.(*unstructured.Unstructured); {
			case !ok:
			case isOver(kind, holder):
				u.noteEnd(lastMoment(holder), claimsIn(holder.Object)...)
			default:
				u.add(kind.Kind, o, claimsIn(holder.Object)...)
				u.addMade(kind.Kind, holder)
			}
		})
	}
	return u
}

// isOver is true for pods that have ended: they keep no volume. What made them may need it again, and counts by itself.
func isOver(kind schema.GroupKind, o *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	return kind.Kind == "Pod" && (phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed))
}

// lastMoment is when the last container of a pod that is over ended, as far as it says so, and else when it was created.
func lastMoment(pod *unstructured.Unstructured) metav1.Time {
	last := pod.GetCreationTimestamp()
	statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", "containerStatuses")
	for _, each := range statuses {
		if status, ok := each.(map[string]any); ok {
			finished, _, _ := unstructured.NestedString(status, "state", "terminated", "finishedAt")
			if at, err := time.Parse(time.RFC3339, finished); err == nil && at.After(last.Time) {
				last = metav1.NewTime(at)
			}
		}
	}
	return last
}

// noteEnd notes when something ended that had named claims.
func (u *users) noteEnd(at metav1.Time, claims ...string) {
	for _, name := range claims {
		if last := u.ended[name]; last.Before(&at) {
			u.ended[name] = at
		}
	}
}

// addTraining adds what a training uses: the claims of its template, and those of its data, where its attempt has them and where
// the profile has what it names.
func (t *team) addTraining(u *users, job *v1beta1.ElasticTrainingJob) {
	claims := claimsOf(job.Spec.Template.Spec.Volumes)
	var had []v1beta1.DataPlace
	if job.Status.Attempt != nil {
		had = job.Status.Attempt.DataSets
	}
	places, missing := datasets.Places(job.Spec.DataSets, had, t.profile)
	for _, p := range slices.Concat(had, places) {
		if p.Claim != "" {
			claims = append(claims, p.Claim)
		}
	}
	if ended := job.Status.CompletionTime; ended != nil {
		u.noteEnd(*ended, claims...)
		return
	}
	u.add(v1beta1.ElasticTrainingJobKind, job, claims...)
	if len(missing) > 0 {
		at := job.Spec.DataSets[missing[0].At]
		u.missed = fmt.Sprintf("ElasticTrainingJob %s names data set %s, which the profile does not list",
			job.Name, space.NameVersion(at.Name, at.Version))
	}
}

// claimsOf are the claims that volumes of a template name.
func claimsOf(volumes []corev1.Volume) []string {
	var names []string
	for i := range volumes {
		if of := volumes[i].PersistentVolumeClaim; of != nil {
			names = append(names, of.ClaimName)
		}
	}
	return names
}

// addSource adds a claim as the user of the one that it is to be a copy of, until it is.
func (u *users) addSource(p *corev1.PersistentVolumeClaim) {
	const kind = "PersistentVolumeClaim"
	if p.Status.Phase == corev1.ClaimBound {
		return
	}
	if of := p.Spec.DataSource; of != nil && of.Kind == kind {
		u.add(kind, p, of.Name)
	}
	if of := p.Spec.DataSourceRef; of != nil && of.Kind == kind && (of.Namespace == nil || *of.Namespace == p.Namespace) {
		u.add(kind, p, of.Name)
	}
}

// addMade adds the claims that a StatefulSet makes, whose names are of its own templates, its name and a number.
func (u *users) addMade(kind string, o *unstructured.Unstructured) {
	templates, _, _ := unstructured.NestedSlice(o.Object, "spec", "volumeClaimTemplates")
	for _, each := range templates {
		if template, ok := each.(map[string]any); ok {
			name, _, _ := unstructured.NestedString(template, "metadata", "name")
			u.made[name+"-"+o.GetName()+"-"] = kind + " " + o.GetName()
		}
	}
}
