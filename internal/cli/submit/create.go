package submit

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/config/crd"
	"github.com/tideline-io/tideline/internal/platform/specvalidation"
)

// check says what the API server's own rules say against a training, before it is asked.
func check(ctx context.Context, job *v1beta1.ElasticTrainingJob) error {
	words, err := specvalidation.New(crd.ElasticTrainingJob, v1beta1.GroupVersion.Version).CheckSpec(ctx, job)
	if err != nil {
		return err
	}
	if words != "" {
		return errors.New(words)
	}
	return nil
}

// try has the API server and its webhooks judge both objects, and changes nothing.
func try(ctx context.Context, c client.Client, job *v1beta1.ElasticTrainingJob, scripts *corev1.ConfigMap) error {
	for _, o := range []client.Object{job.DeepCopy(), scripts.DeepCopy()} {
		if err := c.Create(ctx, o, client.DryRunAll); err != nil {
			return explain(err, job.Name)
		}
	}
	return nil
}

// create creates the training, and then the ConfigMap, which goes with it. Its pods wait for the ConfigMap. If that cannot be
// created, the training is taken back.
func create(ctx context.Context, c client.Client, job *v1beta1.ElasticTrainingJob, scripts *corev1.ConfigMap) error {
	if err := try(ctx, c, job, scripts); err != nil {
		return err
	}
	if err := c.Create(ctx, job); err != nil {
		if leavesOpen(err) {
			err = fmt.Errorf("%s may have been created all the same, without its script, and would hold what it is placed on: "+
				"see whether it is there, and delete it: %w", job.Name, err)
		}
		return explain(err, job.Name)
	}
	scripts.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1beta1.OwnerVersion.String(), Kind: v1beta1.ElasticTrainingJobKind, Name: job.Name, UID: job.UID,
	}}
	err := c.Create(ctx, scripts)
	if err == nil {
		return nil
	}
	// Also after an interrupt, which may be why it failed.
	undo := c.Delete(context.WithoutCancel(ctx), job, client.Preconditions{UID: &job.UID},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if undo != nil {
		return errors.Join(explain(err, job.Name), fmt.Errorf("and %s is left without its script, delete it: %w", job.Name, undo))
	}
	return explain(err, job.Name)
}

// leavesOpen is true for an error that does not say whether the API server has carried out what was asked.
func leavesOpen(err error) bool {
	return apierrors.ReasonForError(err) == metav1.StatusReasonUnknown || apierrors.IsTimeout(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsInternalError(err)
}

// explain adds what to do to an error of the API server.
func explain(err error, name string) error {
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("there is a job %s, or what is left of one: choose another --name, or delete it: %w", name, err)
	}
	return err
}

// write writes both objects as people write them, without status and what is empty.
func write(job *v1beta1.ElasticTrainingJob, scripts *corev1.ConfigMap, asJSON bool) ([]byte, error) {
	var items []any
	for _, o := range []any{scripts, job} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return nil, err
		}
		delete(content, "status")
		prune(content)
		items = append(items, content)
	}
	if asJSON {
		return printJSON(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	}
	first, errFirst := yaml.Marshal(items[0])
	second, errSecond := yaml.Marshal(items[1])
	return append(append(first, "---\n"...), second...), errors.Join(errFirst, errSecond)
}

// prune drops fields without a value, at every depth.
func prune(content map[string]any) {
	for name, value := range content {
		switch v := value.(type) {
		case nil:
			delete(content, name)
		case map[string]any:
			if prune(v); len(v) == 0 {
				delete(content, name)
			}
		case []any:
			for _, item := range v {
				if fields, ok := item.(map[string]any); ok {
					prune(fields)
				}
			}
		}
	}
}
