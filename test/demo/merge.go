package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
)

const (
	// machines are in the pool, each with one GPU, and machinesPerMerge of them are what a merge takes.
	machines, machinesPerMerge = 12, 4
	places                     = machines / machinesPerMerge
	// rowEvery is between two rows.
	rowEvery = 3 * time.Second
	// mergesWithin is how long a model may take from one merge to the next, on a machine that does other things too.
	mergesWithin = 4 * interval
)

// rush is how old the full models are, in life, that are due together soon after the beginning.
const rush = 8*time.Hour + 36*time.Minute

// cast are the models of the story: most are due together, and the others between two times of those.
var cast = []model{
	{"ctr", "main-traffic", rush},
	{"ranker", "main-traffic", rush},
	{"search", "main-traffic", rush - 2*time.Hour},
	{"feed", "small-traffic", rush},
	{"mail", "small-traffic", rush},
	{"maps", "small-traffic", rush},
	{"music", "small-traffic", rush - 4*time.Hour},
	{"news", "exploratory", rush},
	{"photos", "exploratory", rush},
	{"shop", "exploratory", rush - 6*time.Hour},
	{"video", "exploratory", rush},
	{"weather", "exploratory", rush - 8*time.Hour},
}

// together counts the models that are due together.
func together() int {
	return len(slices.DeleteFunc(slices.Clone(cast), func(m model) bool { return m.age != rush }))
}

// mergePlay is the story of a dozen models whose merges take turns.
type mergePlay struct {
	models *models
	tally  *tally
}

func newMergePlay() *mergePlay { return &mergePlay{tally: newTally()} }

func (*mergePlay) cast(string) (cluster.Options, error) {
	return cluster.Options{GPUNodes: machines, GPUsPerNode: 1, SchedulePeriod: 200 * time.Millisecond}, nil
}

// prepare starts the store, and allows it.
func (p *mergePlay) prepare(ctx context.Context, s *stage) ([]string, error) {
	store, err := s.cluster.StartObjectStore(ctx)
	if err != nil {
		return nil, err
	}
	if err := store.CreateBucket(ctx, bucket); err != nil {
		return nil, err
	}
	p.models = newModels(store, s.world.Client, metav1.NamespaceDefault, newBoard(newPoolView(), (*poolView).clone, p.tally.note))
	configuration := filepath.Join(s.dir, "configuration.yaml")
	return []string{"--config=" + configuration}, os.WriteFile(configuration, fmt.Appendf(nil, `
apiVersion: config.tideline.io/v1alpha1
kind: Configuration
merges:
  endpoints: [%q]
  waitingIntervalSeconds: 2
  runningIntervalSeconds: 1
`, store.Endpoint), 0o600)
}

// tell tells the story. Trainings and merges go on until it returns.
func (p *mergePlay) tell(ctx context.Context, _ *stage, out *printer, sh *shell, told func() bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	story := &mergeStory{mergePlay: p, printer: out, shell: sh, group: group}
	err := story.tell(ctx)
	if err == nil && told() {
		story.goOn(ctx)
	}
	cancel()
	if failed := group.Wait(); failed != nil {
		return failed
	}
	return err
}

func (*mergePlay) suggestions() string {
	return `  kubectl get mj --watch
  kubectl describe mj ctr
  kubectl annotate mj weather tideline.io/run-now=1    # merges it now; another value does it again
  kubectl patch mj maps --type=merge -p '{"spec":{"suspend":true}}'
  kubectl get pods,podgroups`
}

// job is the MergeJob of a model.
func (p *mergePlay) job(m model) *v1beta1.MergeJob {
	each := testutil.Merge(m.name).In(p.models.namespace).Pods(machinesPerMerge, machinesPerMerge).GPUs(1).Asks("1", "1Gi")
	return each.With(func(s *v1beta1.MergeJobSpec) {
		s.Tier, s.Schedule.Interval.Duration = m.tier, interval
		s.Store = v1beta1.ModelStore{
			Type: v1beta1.StoreS3, Prefix: m.name, S3: &v1beta1.S3Store{
				Endpoint: p.models.store.Endpoint, Bucket: bucket, CredentialsRef: v1beta1.ObjectRef{Name: testutil.StoreSecret},
			},
		}
	}).Obj()
}

// create creates the MergeJobs, the Secret that they name, and a full model for each.
func (p *mergePlay) create(ctx context.Context) error {
	store := p.models.store
	if err := p.models.client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.models.namespace, Name: testutil.StoreSecret},
		StringData: map[string]string{"AWS_ACCESS_KEY_ID": store.AccessKey, "AWS_SECRET_ACCESS_KEY": store.SecretKey},
	}); err != nil {
		return err
	}
	for _, m := range cast {
		if err := p.models.seed(ctx, m); err != nil {
			return fmt.Errorf("write the first models of %s: %w", m.name, err)
		}
	}
	for _, m := range cast {
		if err := p.models.client.Create(ctx, p.job(m)); err != nil {
			return fmt.Errorf("create MergeJob %s: %w", m.name, err)
		}
	}
	return nil
}

// mergeStory is what the demo tells of merges.
type mergeStory struct {
	*mergePlay
	*printer
	shell *shell
	// group are trainings and merges.
	group *errgroup.Group
	began time.Time
}

// poolGoal is something that the story waits for.
type poolGoal = goalOf[*poolView]

// tell goes through the steps and stops at the first that does not happen.
func (s *mergeStory) tell(ctx context.Context) error {
	return do(ctx, s.scenery, s.allDue, s.allMerged, s.allMergedAgain, s.summarize)
}

func (s *mergeStory) show(command string) act {
	return func(ctx context.Context) error { return s.shell.show(ctx, command) }
}

func (s *mergeStory) scenery(ctx context.Context) error {
	s.step("%d trainings write an increment each every 10 minutes, and every 10 hours the increments of a model are merged into "+
		"its full model, which takes %d machines for 25 ± 10 minutes. The pool has %d machines: room for %d merges at a time. "+
		"API server, Volcano, operator and the S3 server are real. KWOK plays the machines, and the demo the trainings and "+
		"the merge programs.",
		len(cast), machinesPerMerge, machines, places)
	s.note("10 hours are shown as one minute: in rows of the demo a second counts as 10 minutes; kubectl tells real seconds.")
	return do(ctx,
		s.create,
		func(ctx context.Context) error {
			s.began = time.Now()
			s.models.play(ctx, s.group, cast)
			return nil
		},
		s.wait(known(len(cast))),
		s.show("kubectl get mj | cut -c1-91"),
	)
}

func (s *mergeStory) allDue(ctx context.Context) error {
	s.step("%d full models are equally old, so as many merges are due at the same moment. Started by themselves they would ask for "+
		"%d machines at once; each would get a part of what it needs, and none would finish. In Tideline's line only the head asks. "+
		"In the rows, i is the age of the newest increment and F that of the full model, each of the model where it is oldest.",
		together(), together()*machinesPerMerge)
	s.lines("", rowHeader("TIME", "POOL"))
	return do(ctx, s.follow(queued(together()/2)), s.show("kubectl get mj --sort-by=.status.position | cut -c1-91"), s.pool)
}

func (s *mergeStory) allMerged(ctx context.Context) error {
	s.step("One after another asks, is placed whole, and merges; main-traffic weighs more in the line than small-traffic, and " +
		"that more than exploratory. As long as both lines stand where they are, every model is fresh.")
	s.lines("", rowHeader("TIME", "POOL"))
	return do(ctx, s.follow(s.mergedTimes(1)), s.pool)
}

func (s *mergeStory) allMergedAgain(ctx context.Context) error {
	s.step("Every model has a new full model. It goes on: each is due again 10 hours after its own.")
	s.lines("", rowHeader("TIME", "POOL"))
	return do(ctx, s.follow(s.mergedTimes(2)), s.show("kubectl get mj | cut -c1-91"), s.pool)
}

func (s *mergeStory) summarize(context.Context) error {
	var words string
	var err error
	s.models.board.hold(func() { words, err = s.tally.String(), s.tally.held() })
	s.note("That is the story: %s", words)
	return err
}

// pool shows each model, and where its merge stands now.
func (s *mergeStory) pool(ctx context.Context) error {
	now := time.Now()
	if err := s.wait(poolGoal{"the pool is looked at", func(v *poolView) (bool, string) {
		return v.asked.After(now), "it was last looked at " + v.asked.String()
	}})(ctx); err != nil {
		return err
	}
	s.lines("", rowHeader("MODEL", "MERGE"), strings.Join(modelRows(s.models.board.look(), time.Now()), "\n"))
	return nil
}

func (s *mergeStory) row(v *poolView) {
	now := time.Now()
	s.lines(row(v, now.Sub(s.began), now))
}

func (s *mergeStory) wait(g poolGoal) act {
	return func(ctx context.Context) error { return s.models.board.await(ctx, within, g) }
}

// follow waits until a goal is met, with a row every now and then.
func (s *mergeStory) follow(g poolGoal) act {
	return func(ctx context.Context) error {
		beat := time.NewTicker(rowEvery)
		defer beat.Stop()
		return s.models.board.follow(ctx, mergesWithin, g, beat.C, s.row)
	}
}

// goOn shows rows until ctx ends.
func (s *mergeStory) goOn(ctx context.Context) {
	s.lines("", rowHeader("TIME", "POOL"))
	beat := time.NewTicker(3 * rowEvery)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			s.row(s.models.board.look())
		}
	}
}

// known is the goal that the weight of so many merges is known.
func known(n int) poolGoal {
	return poolGoal{"all stores are read", func(v *poolView) (bool, string) {
		read := 0
		for _, m := range v.merges {
			if m.Status.Weight != nil {
				read++
			}
		}
		return read >= n, fmt.Sprintf("%d of %d are", read, n)
	}}
}

// queued is the goal that so many merges are in the line.
func queued(n int) poolGoal {
	return poolGoal{fmt.Sprintf("%d merges are in the line", n), func(v *poolView) (bool, string) {
		return len(v.line()) >= n, fmt.Sprintf("%d are", len(v.line()))
	}}
}

// mergedTimes is the goal that every model was merged so often.
func (s *mergeStory) mergedTimes(n int) poolGoal {
	return poolGoal{fmt.Sprintf("every model was merged %d times", n), func(*poolView) (met bool, stand string) {
		s.models.board.hold(func() { met, stand = s.tally.least(len(cast)) >= n, s.tally.String() })
		return met, stand
	}}
}
