// Package pages decides how people reach ports of worker 0 from outside the cluster, such as TensorBoard: by which Service and
// route, at which URLs. Host and path follow from the operator's configuration and from names alone. It reads and writes nothing.
package pages

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

// Kinds of routes. The Gateway API's types are not imported: of all its kinds one object is written, in these few fields.
var (
	HTTPRouteKind = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"}
	IngressKind   = networkingv1.SchemeGroupVersion.WithKind("Ingress")
)

// KindOf is the kind of a route as a status names it, by its word; false for another word.
func KindOf(word string) (schema.GroupVersionKind, bool) {
	for _, kind := range []schema.GroupVersionKind{HTTPRouteKind, IngressKind} {
		if kind.Kind == word {
			return kind, true
		}
	}
	return schema.GroupVersionKind{}, false
}

// ChooseKind is the kind of route that leads to pages by this configuration.
func ChooseKind(c config.Pages) schema.GroupVersionKind {
	if c.UsesGateway() {
		return HTTPRouteKind
	}
	return IngressKind
}

// ObjectName is the name of the Service and of the route of a job's pages.
func ObjectName(job string) string { return job + "-pages" }

// firstPort is the port of the Service for the first page; each further one has the next.
const firstPort = 80

// Wanted is what a job with pages should have.
type Wanted struct {
	// Digest tells these objects from those of another spec, configuration or job of the same name: 16 hexadecimal digits.
	Digest string
	// Service selects worker 0, whichever pod that is, with a port for each page.
	Service *corev1.Service
	// Route is an HTTPRoute or an Ingress, with one path for each page, which belongs to the job as the Service does.
	Route *unstructured.Unstructured
	// Pages are the pages with their URLs, in the order of the spec.
	Pages []v1beta1.PageStatus
}

// MakeWanted makes what the job should have by a configuration that says where pages are. Its spec keeps the rules of the schema.
func MakeWanted(job *v1beta1.ElasticTrainingJob, c config.Pages) *Wanted {
	host := c.HostOf(hostLabel(job))
	w := &Wanted{Service: newService(job)}
	paths := make([]string, len(job.Spec.Pages))
	for i, page := range job.Spec.Pages {
		paths[i] = "/" + job.Namespace + "/" + job.Name + "/" + page.Name
		address := url.URL{Scheme: c.Scheme, Host: host, Path: paths[i] + "/"}
		w.Pages = append(w.Pages, v1beta1.PageStatus{Name: page.Name, URL: address.String()})
	}
	spec := ingressSpec(job, c, host, paths)
	if c.UsesGateway() {
		spec = routeSpec(job, c, host, paths)
	}
	w.Route = newRoute(job, c, spec)
	w.Digest = digestOf(w.Service, w.Route)
	w.Service.Labels[v1beta1.LabelPages] = w.Digest
	labels := w.Route.GetLabels()
	labels[v1beta1.LabelPages] = w.Digest
	w.Route.SetLabels(labels)
	return w
}

// hostLabel is a DNS label that no job of another name or namespace has: of at most 63 characters, since names of jobs have 54.
func hostLabel(job *v1beta1.ElasticTrainingJob) string {
	sum := sha256.Sum256([]byte(job.Namespace + "/" + job.Name))
	return job.Name + "-" + hex.EncodeToString(sum[:4])
}

func newService(job *v1beta1.ElasticTrainingJob) *corev1.Service {
	service := &corev1.Service{
		ObjectMeta: metadata(job),
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{v1beta1.LabelJob: job.Name, v1beta1.LabelWorkerIndex: "0"},
		},
	}
	for i, page := range job.Spec.Pages {
		target := intstr.FromInt32(page.Port)
		if page.PortName != "" {
			target = intstr.FromString(page.PortName)
		}
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
			Name: page.Name, Port: firstPort + int32(i), TargetPort: target, Protocol: corev1.ProtocolTCP,
		})
	}
	return service
}

func metadata(job *v1beta1.ElasticTrainingJob) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: job.Namespace, Name: ObjectName(job.Name), Labels: map[string]string{v1beta1.LabelJob: job.Name},
		OwnerReferences: []metav1.OwnerReference{
			v1beta1.ControllerReference(job, v1beta1.ElasticTrainingJobKind),
		},
	}
}

func newRoute(job *v1beta1.ElasticTrainingJob, c config.Pages, spec map[string]any) *unstructured.Unstructured {
	route, m := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}, metadata(job)
	route.SetGroupVersionKind(ChooseKind(c))
	route.SetNamespace(m.Namespace)
	route.SetName(m.Name)
	route.SetLabels(m.Labels)
	route.SetOwnerReferences(m.OwnerReferences)
	if len(c.Annotations) > 0 {
		route.SetAnnotations(c.Annotations)
	}
	return route
}

// routeSpec is the spec of an HTTPRoute. Paths are matched by whole elements, and are not rewritten.
func routeSpec(job *v1beta1.ElasticTrainingJob, c config.Pages, host string, paths []string) map[string]any {
	rules := make([]any, len(paths))
	for i, path := range paths {
		rules[i] = map[string]any{
			"matches": []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": path}}},
			"backendRefs": []any{map[string]any{
				"kind": "Service", "name": ObjectName(job.Name), "port": int64(firstPort + i),
			}},
		}
	}
	return map[string]any{
		"parentRefs": []any{map[string]any{
			"group": HTTPRouteKind.Group, "kind": "Gateway", "namespace": c.Gateway.Namespace, "name": c.Gateway.Name,
		}},
		"hostnames": []any{host},
		"rules":     rules,
	}
}

// ingressSpec is the spec of an Ingress, which says the same. With https it names no certificate: the controller's own is for
// all jobs.
func ingressSpec(job *v1beta1.ElasticTrainingJob, c config.Pages, host string, paths []string) map[string]any {
	all := make([]any, len(paths))
	for i, path := range paths {
		all[i] = map[string]any{
			"path": path, "pathType": string(networkingv1.PathTypePrefix),
			"backend": map[string]any{"service": map[string]any{
				"name": ObjectName(job.Name), "port": map[string]any{"number": int64(firstPort + i)},
			}},
		}
	}
	spec := map[string]any{
		"ingressClassName": c.IngressClass,
		"rules":            []any{map[string]any{"host": host, "http": map[string]any{"paths": all}}},
	}
	if c.Scheme == config.SchemeHTTPS {
		spec["tls"] = []any{map[string]any{"hosts": []any{host}}}
	}
	return spec
}

// digestOf is a digest of objects, the same for the same content.
func digestOf(service *corev1.Service, route *unstructured.Unstructured) string {
	written, err := json.Marshal([]any{service, route.Object})
	if err != nil {
		panic(err) // Both are made here of what JSON has words for.
	}
	sum := sha256.Sum256(written)
	return hex.EncodeToString(sum[:8])
}

// describeRoute names a route and what it is reached by.
func describeRoute(job *v1beta1.ElasticTrainingJob, c config.Pages) string {
	route := ChooseKind(c).Kind + " " + ObjectName(job.Name)
	if c.UsesGateway() {
		return fmt.Sprintf("%s of Gateway %s/%s", route, c.Gateway.Namespace, c.Gateway.Name)
	}
	return fmt.Sprintf("%s of class %s", route, c.IngressClass)
}

// listPages lists pages with their URLs.
func listPages(pages []v1beta1.PageStatus) string {
	all := make([]string, len(pages))
	for i, p := range pages {
		all[i] = p.Name + " at " + p.URL
	}
	return strings.Join(all, ", ")
}
