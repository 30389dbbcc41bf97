package testutil

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/cluster"
)

// FreeAddress is an address of this machine at which nobody listens now. It has a name, because the operator's certificate is
// for names.
func FreeAddress() (string, error) {
	ports, err := cluster.FreePorts(1)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort("localhost", strconv.Itoa(ports[0])), nil
}

// Webhooks are the webhook configurations as the kustomization of config/webhook makes them.
func Webhooks(ctx context.Context) ([]*unstructured.Unstructured, error) {
	configurations, err := Manifests(ctx, "webhook/manifests.yaml")
	if err != nil {
		return nil, err
	}
	patches, err := Manifests(ctx, "webhook/conditions.yaml")
	if err != nil {
		return nil, err
	}
	for _, o := range configurations {
		for _, patch := range patches {
			if patch.GetKind() != o.GetKind() {
				continue
			}
			// The lists of both kinds merge by the same key.
			o.Object, err = strategicpatch.StrategicMergeMapPatch(o.Object, patch.Object,
				admissionregistrationv1.MutatingWebhookConfiguration{})
			if err != nil {
				return nil, fmt.Errorf("patch %s %s: %w", o.GetKind(), o.GetName(), err)
			}
		}
	}
	return configurations, nil
}

// InstallWebhooks has the API server call the operator's webhooks at an address, and waits until they answer.
func (in *Installation) InstallWebhooks(ctx context.Context, address string) error {
	configurations, err := Webhooks(ctx)
	if err != nil {
		return err
	}
	for _, o := range configurations {
		cluster.PointWebhooks(o, "https://"+address, nil)
		if err := in.Client.Create(ctx, o); err != nil {
			return fmt.Errorf("install %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return in.AwaitWebhooks(ctx)
}

// AwaitWebhooks waits until the API server has the operator set the owner of a job.
func (w *World) AwaitWebhooks(ctx context.Context) error {
	last := errors.New("nobody was asked")
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		probe, err := probeOf(Job("webhook-probe").Obj(), w.version)
		if err != nil {
			return false, err
		}
		last = w.Client.Create(ctx, probe, client.DryRunAll)
		owner, _, err := unstructured.NestedString(probe.Object, "spec", "owner")
		return last == nil && err == nil && owner != "", nil
	})
	if err != nil {
		return fmt.Errorf("wait until the webhooks answer (the last answer: %w): %w", last, err)
	}
	return nil
}

// probeOf is a job with what every version of Tideline has in a job, and no more: the version before may give the rest
// another type.
func probeOf(job *v1beta1.ElasticTrainingJob, version schema.GroupVersion) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		return nil, fmt.Errorf("write a job: %w", err)
	}
	spec, _ := content["spec"].(map[string]any)
	probe := &unstructured.Unstructured{Object: map[string]any{
		"metadata": content["metadata"],
		"spec": map[string]any{
			"minReplicas": spec["minReplicas"], "maxReplicas": spec["maxReplicas"], "template": spec["template"],
		},
	}}
	probe.SetGroupVersionKind(version.WithKind(v1beta1.ElasticTrainingJobKind))
	return probe, nil
}
