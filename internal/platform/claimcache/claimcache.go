// Package claimcache reads the resource claims of pods from caches. Package deviceclaim counts them.
package claimcache

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/deviceclaim"
)

// +kubebuilder:rbac:groups=resource.k8s.io,resources=resourceclaims;resourceclaimtemplates,verbs=list;watch

// Reader reads claims. A nil Reader finds none, which is what an API server without resource.k8s.io/v1 has.
type Reader struct {
	reader  client.Reader
	classes config.DeviceClasses
}

// NewReader returns one that reads from caches.
func NewReader(reader client.Reader, classes config.DeviceClasses) *Reader {
	return &Reader{reader, classes}
}

// Setup caches claims if the API server serves them at version v1, which Kubernetes 1.34 and later do by default; else it returns
// nil. An operator that runs while they become served must be restarted.
func Setup(
	ctx context.Context, mapper meta.RESTMapper, caches cache.Cache, reader client.Reader, classes config.DeviceClasses,
) (*Reader, error) {
	kind := resourcev1.SchemeGroupVersion.WithKind("ResourceClaimTemplate")
	switch _, err := mapper.RESTMapping(kind.GroupKind(), kind.Version); {
	case meta.IsNoMatchError(err):
		return nil, nil //nolint:nilnil // documented: a nil Reader finds no claims
	case err != nil:
		return nil, fmt.Errorf("ask whether the API server serves %s: %w", kind.Kind, err)
	}
	for _, object := range []client.Object{&resourcev1.ResourceClaimTemplate{}, &resourcev1.ResourceClaim{}} {
		if _, err := caches.GetInformer(ctx, object, cache.BlockUntilSynced(false)); err != nil {
			return nil, fmt.Errorf("cache %T: %w", object, err)
		}
	}
	return NewReader(reader, classes), nil
}

// ClaimsOf reads the claims of a pod that will be created from this spec.
func (r *Reader) ClaimsOf(ctx context.Context, namespace string, spec *corev1.PodSpec) (deviceclaim.Claims, error) {
	return r.readClaims(ctx, namespace, spec, nil)
}

// HeldBy reads the claims of a pod. Of a claim that has devices, it counts these. The claim that was created for the pod comes
// before its template, which may have been replaced.
func (r *Reader) HeldBy(ctx context.Context, pod *corev1.Pod) (deviceclaim.Claims, error) {
	return r.readClaims(ctx, pod.Namespace, &pod.Spec, pod.Status.ResourceClaimStatuses)
}

// CountedOf is what the pod's devices count as, as far as it can be read; nil for a pod without any.
func (r *Reader) CountedOf(ctx context.Context, pod *corev1.Pod) corev1.ResourceList {
	claims, err := r.HeldBy(ctx, pod)
	if err != nil {
		return nil
	}
	return claims.Count().Resources
}

func (r *Reader) readClaims(
	ctx context.Context, namespace string, spec *corev1.PodSpec, created []corev1.PodResourceClaimStatus,
) (deviceclaim.Claims, error) {
	if r == nil || len(spec.ResourceClaims) == 0 {
		return deviceclaim.Claims{}, nil
	}
	claims := deviceclaim.Claims{Classes: r.classes, More: max(0, len(spec.ResourceClaims)-deviceclaim.MaxClaims)}
	for i := range spec.ResourceClaims[:len(spec.ResourceClaims)-claims.More] {
		claim, err := r.readClaim(ctx, namespace, &spec.ResourceClaims[i], createdFor(created, spec.ResourceClaims[i].Name))
		if err != nil {
			return deviceclaim.Claims{}, err
		}
		claims.All = append(claims.All, claim)
	}
	return claims, nil
}

// createdFor is the name of the claim that was created for a pod's claim; empty for none.
func createdFor(created []corev1.PodResourceClaimStatus, name string) string {
	for i := range created {
		if created[i].Name == name && created[i].ResourceClaimName != nil {
			return *created[i].ResourceClaimName
		}
	}
	return ""
}

// readClaim reads a claim that exists, else its template.
func (r *Reader) readClaim(
	ctx context.Context, namespace string, named *corev1.PodResourceClaim, created string,
) (deviceclaim.Claim, error) {
	found := deviceclaim.Claim{Name: named.Name}
	if named.ResourceClaimName != nil {
		created = *named.ResourceClaimName
		found.Object = "ResourceClaim " + created
	}
	if created != "" {
		claim := &resourcev1.ResourceClaim{}
		is, err := r.read(ctx, client.ObjectKey{Namespace: namespace, Name: created}, claim)
		if err != nil {
			return found, err
		}
		if is {
			found.Object = "ResourceClaim " + created
			found.Asked = deviceclaim.ReadRequests(claim.Spec.Devices.Requests, nil)
			found.Requests = found.Asked
			if a := claim.Status.Allocation; a != nil {
				found.Requests = deviceclaim.ReadRequests(claim.Spec.Devices.Requests, a.Devices.Results)
			}
			return found, nil
		}
	}
	found.Missing = true
	if named.ResourceClaimTemplateName == nil {
		return found, nil
	}
	found.Object = "ResourceClaimTemplate " + *named.ResourceClaimTemplateName
	template := &resourcev1.ResourceClaimTemplate{}
	is, err := r.read(ctx, client.ObjectKey{Namespace: namespace, Name: *named.ResourceClaimTemplateName}, template)
	if is {
		found.Missing, found.Asked = false, deviceclaim.ReadRequests(template.Spec.Spec.Devices.Requests, nil)
		found.Requests = found.Asked
	}
	return found, err
}

func (r *Reader) read(ctx context.Context, key client.ObjectKey, into client.Object) (found bool, err error) {
	if err := r.reader.Get(ctx, key, into, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("read %T %s: %w", into, key, err)
	}
	return true, nil
}
