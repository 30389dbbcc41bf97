package cluster

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
)

const (
	volcanoNamespace       = "volcano-system"
	schedulerConfKey       = "volcano-scheduler.conf"
	schedulerConfConfigMap = "volcano-scheduler-configmap"
	fieldManager           = "local-cluster"

	// The names of Volcano's programs in a cluster, and so in its audit log.
	schedulerUser   = "system:serviceaccount:volcano-system:volcano-scheduler"
	controllersUser = "system:serviceaccount:volcano-system:volcano-controllers"
	webhookUser     = "system:serviceaccount:volcano-system:volcano-admission"
)

var (
	queues    = schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "queues"}
	podGroups = schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "podgroups"}
)

// InstallVolcano adds Volcano to a cluster that was started without: its
// resource definitions, webhooks, scheduler and controllers. It returns when the
// webhooks answer and the Queue default is Open.
func (c *Cluster) InstallVolcano(ctx context.Context) error { return volcano{c}.install(ctx) }

// volcano is a cluster while Volcano is installed and started on it.
type volcano struct{ *Cluster }

func (v volcano) install(ctx context.Context) error {
	objects, err := v.objects()
	if err != nil {
		return err
	}
	// Definitions first: a missing one blocks the caches of all three programs.
	if err := v.InstallDefinitions(ctx, objects["CustomResourceDefinition"]); err != nil {
		return err
	}
	namespace := applycorev1.Namespace(volcanoNamespace)
	if _, err := v.client.CoreV1().Namespaces().Apply(ctx, namespace, applyOptions); err != nil {
		return err
	}
	conf, err := os.ReadFile(v.options.SchedulerConf)
	if err != nil {
		return err
	}
	if err := v.SetSchedulerConf(ctx, string(conf)); err != nil {
		return err
	}
	webhooks := slices.Concat(objects["MutatingWebhookConfiguration"], objects["ValidatingWebhookConfiguration"])
	return parallel(ctx,
		func(ctx context.Context) error { return v.startWebhooks(ctx, webhooks) },
		v.startScheduling,
	)
}

// SetSchedulerConf gives Volcano's scheduler another configuration, the text of
// a volcano-scheduler.conf, and publishes it where a cluster keeps it: in the
// ConfigMap volcano-scheduler-configmap. The scheduler follows within a cycle.
func (c *Cluster) SetSchedulerConf(ctx context.Context, conf string) error {
	if err := writeFile(c.schedulerConfPath(), []byte(conf), 0o600); err != nil {
		return err
	}
	configMap := applycorev1.ConfigMap(schedulerConfConfigMap, volcanoNamespace).
		WithData(map[string]string{schedulerConfKey: conf})
	_, err := c.client.CoreV1().ConfigMaps(volcanoNamespace).Apply(ctx, configMap, applyOptions)
	return err
}

func (c *Cluster) schedulerConfPath() string {
	return filepath.Join(c.state.path, schedulerConfKey)
}

// objects returns the objects of Volcano's own installation by kind.
func (v volcano) objects() (map[string][]*unstructured.Unstructured, error) {
	objects, err := v.parts[volcanoPart.name].Objects(volcanoManifest)
	byKind := map[string][]*unstructured.Unstructured{}
	for _, o := range objects {
		byKind[o.GetKind()] = append(byKind[o.GetKind()], o)
	}
	return byKind, err
}

var applyOptions = metav1.ApplyOptions{FieldManager: fieldManager, Force: true}

// Apply creates or updates cluster-wide objects.
func (c *Cluster) Apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	var tasks []func(context.Context) error
	for _, o := range objects {
		tasks = append(tasks, func(ctx context.Context) error {
			resource, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
			_, err := c.dynamic.Resource(resource).Apply(ctx, o.GetName(), o, applyOptions)
			if err != nil {
				return fmt.Errorf("applying %s %s: %w", o.GetKind(), o.GetName(), err)
			}
			return nil
		})
	}
	return parallel(ctx, tasks...)
}

// InstallDefinitions applies resource definitions and waits until their
// resources are served.
func (c *Cluster) InstallDefinitions(ctx context.Context, definitions []*unstructured.Unstructured) error {
	if err := c.Apply(ctx, definitions); err != nil {
		return err
	}
	for _, d := range definitions {
		group, _, _ := unstructured.NestedString(d.Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(d.Object, "spec", "names", "plural")
		versions, _, _ := unstructured.NestedSlice(d.Object, "spec", "versions")
		version, _ := versions[0].(map[string]any)["name"].(string)
		resource := schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
		if err := c.WaitFor(ctx, d.GetName()+" to be served", func(ctx context.Context) error {
			_, err := c.dynamic.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// startWebhooks registers Volcano's admission webhooks, starts the program that
// serves them and waits until the API server asks it.
func (v volcano) startWebhooks(ctx context.Context, configurations []*unstructured.Unstructured) error {
	kubeconfig, err := v.WriteKubeconfig(webhookUser)
	if err != nil {
		return err
	}
	p, err := v.startServer(ctx, Server{
		Name:    "vc-webhook-manager",
		Program: v.parts[volcanoPart.name].Program("vc-webhook-manager"),
		Ports:   1,
		Prepare: func(ctx context.Context, ports []int) ([]string, error) {
			url := "https://" + Address(ports[0])
			pointed, paths := v.webhooksAt(url, configurations)
			return []string{
				"--kubeconfig=" + kubeconfig,
				"--enabled-admission=" + strings.Join(paths, ","),
				"--webhook-url=" + url,
				"--listen-address=127.0.0.1",
				"--port=" + strconv.Itoa(ports[0]),
				"--tls-cert-file=" + v.keys.webhookCert,
				"--tls-private-key-file=" + v.keys.webhookKey,
				"--ca-cert-file=" + v.keys.ca,
			}, v.Apply(ctx, pointed)
		},
		Ready: v.webhooksAnswer,
	})
	if err == nil {
		v.addClient(p)
	}
	return err
}

// webhooksAt returns copies of the configurations that call url instead of a
// Service, and the paths they call.
func (v volcano) webhooksAt(url string, configurations []*unstructured.Unstructured) (
	pointed []*unstructured.Unstructured, paths []string) {
	for _, o := range configurations {
		o = o.DeepCopy()
		paths = append(paths, PointWebhooks(o, url, v.authority.pem)...)
		pointed = append(pointed, o)
	}
	return pointed, paths
}

// PointWebhooks has a webhook configuration call url instead of a Service, and
// trust an authority in PEM, if any. It returns the paths that are called.
func PointWebhooks(configuration *unstructured.Unstructured, url string, authority []byte) (paths []string) {
	webhooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	for _, w := range webhooks {
		webhook := w.(map[string]any)
		path, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "path")
		paths = append(paths, path)
		called := map[string]any{"url": url + path}
		if authority != nil {
			called["caBundle"] = base64.StdEncoding.EncodeToString(authority)
		}
		webhook["clientConfig"] = called
	}
	configuration.Object["webhooks"] = webhooks
	return paths
}

// webhooksAnswer tries a Queue: Volcano's webhook sets its field reclaimable.
func (v volcano) webhooksAnswer(ctx context.Context) error {
	probe := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": queues.GroupVersion().String(),
		"kind":       "Queue",
		"metadata":   map[string]any{"name": "webhook-probe"},
		"spec":       map[string]any{},
	}}
	answer, err := v.dynamic.Resource(queues).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return err
	}
	if _, set, _ := unstructured.NestedBool(answer.Object, "spec", "reclaimable"); !set {
		return errors.New("the API server does not call Volcano's webhooks yet")
	}
	return nil
}

// startScheduling starts Volcano's scheduler, which makes the Queue default, and
// its controllers, without which that Queue never becomes Open.
func (v volcano) startScheduling(ctx context.Context) error {
	var limits []string
	if qps := strconv.Itoa(v.options.ClientQPS); v.options.ClientQPS > 0 {
		limits = []string{"--kube-api-qps=" + qps, "--kube-api-burst=" + qps}
	}
	controllers, err := v.startClient(volcanoPart, "vc-controller-manager", controllersUser, append(limits,
		"--leader-elect=false",
		"--enable-healthz=false",
	)...)
	if err != nil {
		return err
	}
	if v.options.NoScheduler {
		return v.makeDefaultQueue(ctx, controllers)
	}
	scheduler, err := v.startClient(volcanoPart, "vc-scheduler", schedulerUser, append(limits,
		"--scheduler-conf="+v.schedulerConfPath(),
		"--disable-default-scheduler-config", // a mistake in the file ends the scheduler instead of being hidden
		"--schedule-period="+v.options.SchedulePeriod.String(),
		"--leader-elect=false",
		"--enable-healthz=false",
	)...)
	if err != nil {
		return err
	}
	if err := v.awaitDefaultQueue(ctx, scheduler, controllers); err != nil {
		return err
	}
	return v.probeScheduler(ctx, scheduler)
}

// makeDefaultQueue does what the scheduler does when it starts.
func (v volcano) makeDefaultQueue(ctx context.Context, controllers *Process) error {
	queue := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": queues.GroupVersion().String(),
		"kind":       "Queue",
		"metadata":   map[string]any{"name": "default"},
		"spec":       map[string]any{"weight": int64(1), "reclaimable": true},
	}}
	// Volcano's webhooks may not answer yet.
	err := v.WaitFor(ctx, "the Queue default", func(ctx context.Context) error {
		return v.Apply(ctx, []*unstructured.Unstructured{queue})
	}, controllers)
	if err != nil {
		return err
	}
	return v.awaitDefaultQueue(ctx, controllers)
}

func (v volcano) awaitDefaultQueue(ctx context.Context, needs ...*Process) error {
	return v.WaitFor(ctx, "the Queue default to be Open", func(ctx context.Context) error {
		queue, err := v.dynamic.Resource(queues).Get(ctx, "default", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if state, _, _ := unstructured.NestedString(queue.Object, "status", "state"); state != "Open" {
			return fmt.Errorf("its state is %q", state)
		}
		return nil
	}, needs...)
}

// probeScheduler waits until the scheduler admits a PodGroup. It makes the Queue
// default before it has read its configuration, so that Queue proves nothing.
func (v volcano) probeScheduler(ctx context.Context, scheduler *Process) error {
	const name = "scheduler-probe"
	groups := v.dynamic.Resource(podGroups).Namespace(volcanoNamespace)
	probe := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": podGroups.GroupVersion().String(),
		"kind":       "PodGroup",
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"minMember": int64(1), "queue": "default"},
	}}
	if _, err := groups.Create(ctx, probe, metav1.CreateOptions{}); err != nil {
		return err
	}
	err := v.WaitFor(ctx, "Volcano's scheduler to work", func(ctx context.Context) error {
		group, err := groups.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if phase, _, _ := unstructured.NestedString(group.Object, "status", "phase"); phase != "Inqueue" {
			return fmt.Errorf("the phase of a new PodGroup is %q", phase)
		}
		return nil
	}, scheduler)
	if err != nil {
		return err
	}
	return groups.Delete(ctx, name, metav1.DeleteOptions{})
}
