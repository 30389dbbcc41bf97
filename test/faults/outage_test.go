package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
)

var _ = Describe("when the API server is gone", func() {
	itEndsTheSame("for the operator alone", func(ctx context.Context, res *results) (string, error) {
		combinations := slices.Concat(combine([]*story{losing}, unreachable(0)), combine([]*story{scaling, sharing}, unreachable(2)),
			combine([]*story{reporting}, unreachable(3)))
		if fullGrid {
			combinations = combine(slices.Concat(stories, mergeStories, profileStories, reportStories, rareStories),
				unreachable(0), unreachable(2), unreachable(3), unreachable(4))
		}
		return runCombinations(ctx, res, combinations)
	})
	if fullGrid {
		itEndsTheSameAlone("for everybody, because it is killed", func(ctx context.Context, res *results) (string, error) {
			return befallAll(ctx, res, stories, commonOutage{
				what: "the API server is killed and started again", killed: true,
				hit: func() { shared.cluster.KillAPIServer() }, mend: func(ctx context.Context) error {
					return shared.cluster.StartAPIServer(ctx)
				},
			})
		})
	}
})

var _ = Describe("when the webhooks do not answer", func() {
	itEndsTheSame("jobs that are there go on", func(ctx context.Context, res *results) (string, error) {
		told := []*story{suspending}
		if fullGrid {
			told = []*story{givingWay, suspending, losing, failing, finishing, scaling, saving, restarting, ranging, expiring}
		}
		return runCombinations(ctx, res, combine(told, deaf))
	})
})

// outage is how long the API server is gone.
const outage = 5 * time.Second

// unreachable has the API server refuse and lose every connection of the operator for a while: when the story begins, or when it
// sends its n-th write.
func unreachable(n int) func() lastingFault {
	return func() lastingFault {
		name := "the API server is gone when it happens"
		if n > 0 {
			name = fmt.Sprintf("the API server is gone at write %d", n)
		}
		return lastingFault{
			name: name,
			set: func(env *environment) {
				env.isPatient(4 * outage)
				if n == 0 {
					env.loseSight()
					env.proxy.vanish(outage)
				} else {
					env.proxy.inject(at(n, cutOff))
				}
			},
			check: func(env *environment) (verdict, string) {
				if env.proxy.downUntil.Load() == 0 {
					return void, fmt.Sprintf("%d writes only", len(env.proxy.counted()))
				}
				return passed, fmt.Sprintf("%d writes", len(env.proxy.counted()))
			},
		}
	}
}

// commonOutage is something that befalls the whole cluster for a while.
type commonOutage struct {
	what string
	// killed is true where the API server has ended meanwhile.
	killed bool
	// hit has it happen, and mend returns when it is over.
	hit  func()
	mend func(context.Context) error
}

// befallAll runs the stories side by side, and has the outage happen when what they are about has happened to all.
func befallAll(ctx context.Context, res *results, told []*story, o commonOutage) (string, error) {
	res.plan(o.what, byChance)
	var undisturbed, acted sync.WaitGroup
	for _, st := range told {
		undisturbed.Go(func() { _, _ = st.undisturbed() })
	}
	undisturbed.Wait()
	down, back := make(chan struct{}), make(chan struct{})
	lines := make([]string, len(told))
	var runs []func() error
	for i, st := range told {
		if _, err := st.undisturbed(); err != nil {
			return "", err
		}
		acted.Add(1)
		runs = append(runs, func() error {
			lines[i] = fmt.Sprintf("%s: %s", st.name, failed)
			return res.record(o.what, func() (verdict, error) {
				err := try(ctx, st.name+", "+o.what, func(t *storyRun) {
					st.outlives(t, o, sync.OnceFunc(acted.Done), down, back)
				})
				if err == nil {
					lines[i] = fmt.Sprintf("%s: %s", st.name, passed)
				}
				return passed, err
			})
		})
	}
	var mended error
	go func() {
		defer close(back)
		acted.Wait()
		o.hit()
		close(down)
		mended = o.mend(ctx)
	}()
	err := abreast(runs...)
	<-back
	return strings.Join(lines, "\n"), errors.Join(err, mended)
}

// outlives runs the story, whose second part begins when the outage is over. As behind a load balancer, the operator does not
// reach an API server that is not ready: it would be refused, because its role is not known yet. What an API server carried out
// and did not write into its audit log any more cannot be counted, so that the writes are not compared.
func (st *story) outlives(t *storyRun, o commonOutage, happened func(), down, back <-chan struct{}) {
	t.Cleanup(happened) // if the run fails before
	env := st.begin(t)
	env.isPatient(time.Minute)
	env.loseSight()
	st.action(env)
	// What KWOK has not done by then, it may forget.
	env.Eventually(env.leaving).Should(BeEmpty(), "who was told to leave is gone")
	happened()
	<-down
	if o.killed {
		env.proxy.vanish(time.Hour)
	}
	<-back
	if o.killed {
		env.proxy.reappear()
	}
	st.sequel(env)
	env.rests(longerThanHeldBack)
	st.looksSame(env)
	st.holds(env)
}

// leaving lists the pods that were told to leave and are still there.
func (env *environment) leaving() ([]string, error) {
	pods, err := env.Pods(jobName)
	var names []string
	for i := range pods {
		if pods[i].DeletionTimestamp != nil {
			names = append(names, pods[i].Name)
		}
	}
	return names, err
}

// deaf has the API server call webhooks for the jobs of the namespace that accept the call and never answer.
func deaf() lastingFault {
	return lastingFault{
		name: "the webhooks do not answer",
		set: func(env *environment) {
			// Nobody accepts what connects.
			listener, err := (&net.ListenConfig{}).Listen(env.t.Context(), "tcp", "localhost:0")
			env.Expect(err).NotTo(HaveOccurred(), "somebody listens")
			env.t.Cleanup(func() { _ = listener.Close() })
			configurations, err := testutil.Webhooks(env.t.Context())
			env.Expect(err).NotTo(HaveOccurred(), "the webhooks are read")
			for _, o := range configurations {
				cluster.PointWebhooks(o, "https://"+listener.Addr().String(), nil)
				confine(o, env.Namespace)
				o.SetName(o.GetName() + "-" + env.Namespace)
				env.Create(o)
				env.t.Cleanup(func() { env.Delete(o) })
			}
			env.Eventually(env.createAnother).Should(MatchError(And(
				HavePrefix(`Internal error occurred: failed calling webhook "default.elastictrainingjobs.tideline.io": `),
				ContainSubstring(listener.Addr().String()), HaveSuffix("context deadline exceeded"))), "a new job is refused, and says why")
		},
		check: func(env *environment) (verdict, string) {
			env.Expect(env.createAnother()).To(MatchError(ContainSubstring("failed calling webhook")), "new jobs are refused to the end")
			return passed, fmt.Sprintf("%d writes", len(env.proxy.counted()))
		},
	}
}

// createAnother tries to create a job, as a user.
func (env *environment) createAnother() error {
	return env.Client.Create(env.t.Context(), env.Job("another").Obj(), client.DryRunAll)
}

// confine has a webhook configuration hold for one namespace, without the webhook for profiles, which are in none.
func confine(configuration *unstructured.Unstructured, namespace string) {
	webhooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	var confined []any
	for _, w := range webhooks {
		if webhook, ok := w.(map[string]any); ok && webhook["name"] != "validate.resourcequotaprofiles.tideline.io" {
			webhook["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{corev1.LabelMetadataName: namespace}}
			confined = append(confined, webhook)
		}
	}
	configuration.Object["webhooks"] = confined
}
