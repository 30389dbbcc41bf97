package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// Merges that Tideline starts. The bench plays the trainings, which write increments, and the merge programs, which work for
// their time, write the completion marker and end.

// incrementPeriod is how often a training writes an increment, in simulated time.
const incrementPeriod = 10 * time.Minute

// runMergeJobs gives every model a MergeJob whose store is a folder below stores, and plays what Tideline does not do, until the
// context ends.
func (p *pool) runMergeJobs(ctx context.Context, stores string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	for model := range p.models {
		store := filepath.Join(stores, p.name, modelName(model))
		group.Go(func() {
			err := p.firstModel(store)
			if err == nil {
				err = p.Client.Create(ctx, p.mergeJob(model, store))
			}
			if err == nil {
				group.Go(func() { p.writeIncrements(ctx, store) })
				err = p.mergePrograms(ctx, model, store)
			}
			if err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("model %d of pool %s: %w", model, p.name, err))
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

func modelName(model int) string { return fmt.Sprintf("m%02d", model) }

func (p *pool) mergeJob(model int, store string) *v1beta1.MergeJob {
	machines := int32(p.experiment.machines)
	return &v1beta1.MergeJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: modelName(model)},
		Spec: v1beta1.MergeJobSpec{
			Pool:        p.name,
			Schedule:    &v1beta1.MergeSchedule{Interval: &metav1.Duration{Duration: p.clock.real(p.interval)}},
			Store:       v1beta1.ModelStore{Type: v1beta1.StoreFile, File: &v1beta1.FileStore{Path: store}},
			MinReplicas: machines,
			MaxReplicas: machines,
			Template:    p.template(model),
		},
	}
}

// firstModel writes the full model that is there at the beginning.
func (p *pool) firstModel(store string) error {
	marker, err := p.complete(store, "first")
	if err != nil {
		return err
	}
	made := p.clock.began.Add(-p.clock.real(p.firstAge()))
	return os.Chtimes(marker, made, made)
}

// complete writes a full model, and returns the path of its marker.
func (p *pool) complete(store, name string) (string, error) {
	directory := filepath.Join(store, "full", name)
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(directory, "model"), nil, 0o600); err != nil {
		return "", err
	}
	marker := filepath.Join(directory, "_SUCCESS")
	return marker, os.WriteFile(marker, nil, 0o600)
}

// writeIncrements is the training of one model, as far as its store sees it.
func (p *pool) writeIncrements(ctx context.Context, store string) {
	folder := filepath.Join(store, "inc")
	err := os.MkdirAll(folder, 0o700)
	for n := 0; err == nil; n++ {
		if p.clock.until(ctx, time.Duration(n)*incrementPeriod) != nil {
			return
		}
		err = os.WriteFile(filepath.Join(folder, fmt.Sprintf("%06d", n)), nil, 0o600)
	}
}

// mergePrograms are the pods of one model's merges, one merge after another.
func (p *pool) mergePrograms(ctx context.Context, model int, store string) error {
	due := p.interval - p.firstAge()
	for number := 0; ; number++ {
		merge := p.ask(model, due)
		if err := p.await(ctx, model, p.together); err != nil {
			return err
		}
		pods := &corev1.PodList{}
		ofModel := client.MatchingLabels{v1beta1.LabelMerge: modelName(model)}
		if err := p.Client.List(ctx, pods, client.InNamespace(p.name), ofModel); err != nil {
			return err
		}
		if err := p.work(ctx, model, merge, number); err != nil {
			return err
		}
		due = p.clock.now() + p.interval
		if _, err := p.complete(store, pods.Items[0].Labels[v1beta1.LabelRun]); err != nil {
			return err
		}
		if err := p.succeed(ctx, pods.Items); err != nil {
			return err
		}
		if err := p.await(ctx, model, none); err != nil {
			return err
		}
	}
}

// succeed ends pods as their kubelet does when their program has ended with 0. Tideline may have deleted them since.
func (p *pool) succeed(ctx context.Context, pods []corev1.Pod) error {
	for i := range pods {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"phase":"Succeeded"}}`))
		if err := client.IgnoreNotFound(p.Client.Status().Patch(ctx, &pods[i], patch)); err != nil {
			return err
		}
	}
	return nil
}
