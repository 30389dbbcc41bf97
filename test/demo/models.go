package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
)

const (
	// bucket has one folder a model.
	bucket = "models"
	// incrementEvery is between two increments of a model.
	incrementEvery = 10 * time.Minute / scale
	// pollEvery is between two looks at the pool.
	pollEvery = 200 * time.Millisecond
)

// model is a model, the tier of its merges, and how old its full model is at the beginning, in life.
type model struct {
	name, tier string
	age        time.Duration
}

// models are in a store to which trainings and the programs of merges write. The demo plays both.
type models struct {
	store     *cluster.ObjectStore
	s3        *s3.Client
	client    client.Client
	namespace string
	board     *board[*poolView]
}

func newModels(store *cluster.ObjectStore, c client.Client, namespace string, b *board[*poolView]) *models {
	return &models{store: store, s3: store.Client(), client: c, namespace: namespace, board: b}
}

// put writes an object.
func (m *models) put(ctx context.Context, key string) error {
	_, err := m.s3.PutObject(ctx, &s3.PutObjectInput{
		Bucket: aws.String(bucket), Key: aws.String(key), Body: bytes.NewReader([]byte("x")),
	})
	return err
}

// complete writes a full model into a directory, its marker last.
func (m *models) complete(ctx context.Context, directory, marker string) error {
	if err := m.put(ctx, directory+"model"); err != nil {
		return err
	}
	return m.put(ctx, directory+marker)
}

// seed writes a full model as if it were as old as it is to be, and a first increment.
func (m *models) seed(ctx context.Context, model model) error {
	full := model.name + "/full/first/_SUCCESS"
	if err := m.complete(ctx, model.name+"/full/first/", "_SUCCESS"); err != nil {
		return err
	}
	at := time.Now().Add(-model.age / scale)
	if err := os.Chtimes(filepath.Join(m.store.Directory, bucket, filepath.FromSlash(full)), at, at); err != nil {
		return err
	}
	m.board.change(func(v *poolView) { v.fulls[model.name] = at })
	return m.increment(ctx, model.name, 0)
}

func (m *models) increment(ctx context.Context, model string, n int) error {
	if err := m.put(ctx, fmt.Sprintf("%s/inc/%09d", model, n)); err != nil {
		return err
	}
	m.board.change(func(v *poolView) { v.increments[model] = time.Now() })
	return nil
}

// play has trainings and merges write until ctx ends or one of them fails.
func (m *models) play(ctx context.Context, group *errgroup.Group, all []model) {
	for _, model := range all {
		group.Go(func() error { return m.train(ctx, model.name) })
	}
	group.Go(func() error { return m.poll(ctx) })
	group.Go(func() error { return m.merge(ctx, group, all) })
}

// train writes increments of a model, as its training does.
func (m *models) train(ctx context.Context, model string) error {
	ticker := time.NewTicker(incrementEvery)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := m.increment(ctx, model, n); err != nil && ctx.Err() == nil {
			return fmt.Errorf("write an increment of %s: %w", model, err)
		}
	}
}

// poll looks at the pool again and again: watches of several kinds do not tell what came first.
func (m *models) poll(ctx context.Context) error {
	gangs := &testutil.Gangs{}
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		asked := time.Now()
		groups, pods, merges := &schedulingv1beta1.PodGroupList{}, &corev1.PodList{}, &v1beta1.MergeJobList{}
		for _, list := range []client.ObjectList{groups, pods, merges} {
			if err := m.client.List(ctx, list, client.InNamespace(m.namespace)); err != nil && ctx.Err() == nil {
				return fmt.Errorf("look at the pool: %w", err)
			}
		}
		m.board.change(func(v *poolView) {
			v.asked = asked
			clear(v.merges)
			for i := range merges.Items {
				v.merges[merges.Items[i].Name] = &merges.Items[i]
			}
			v.pods, v.waiting = pods.Items, gangs.Waiting(groups.Items, pods.Items)
		})
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// merge runs the program of each merge as soon as all its pods run.
func (m *models) merge(ctx context.Context, group *errgroup.Group, all []model) error {
	times := map[string]*rand.Rand{}
	for i, model := range all {
		times[model.name] = rand.New(rand.NewPCG(1, uint64(i)))
	}
	begun := map[string]bool{}
	for {
		view, changed := m.board.watched()
		for attempt, pods := range view.gangs() {
			name := pods[0].Labels[v1beta1.LabelMerge]
			if begun[attempt] || times[name] == nil {
				continue
			}
			begun[attempt] = true
			took := mergeTime(times[name])
			group.Go(func() error { return m.program(ctx, attempt, pods, took) })
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// mergeTime is how long a merge takes: 25 ± 10 minutes.
func mergeTime(r *rand.Rand) time.Duration {
	return time.Duration((15 + 20*r.Float64()) * float64(time.Minute) / scale)
}

// program does what the program of a merge does: it takes its time, writes the full model and ends well.
func (m *models) program(ctx context.Context, attempt string, pods []corev1.Pod, took time.Duration) error {
	timer := time.NewTimer(took)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil
	case <-timer.C:
	}
	if len(m.board.look().gangs()[attempt]) == 0 {
		return nil // It lost a pod meanwhile.
	}
	full, marker := variable(&pods[0], "TIDELINE_OUTPUT_PATH"), variable(&pods[0], "TIDELINE_COMPLETION_MARKER")
	if err := m.complete(ctx, full, marker); err != nil && ctx.Err() == nil {
		return fmt.Errorf("write %s: %w", full, err)
	}
	m.board.change(func(v *poolView) { v.fulls[pods[0].Labels[v1beta1.LabelMerge]] = time.Now() })
	for i := range pods {
		succeeded := client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`))
		// Tideline may have stopped a pod by now, because the full model is there.
		if err := m.client.Status().Patch(ctx, &pods[i], succeeded); client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
			return fmt.Errorf("have pod %s succeed: %w", pods[i].Name, err)
		}
	}
	return nil
}
