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
	itEndsTheSame("for the operator alone", func(ctx context.Context, count *tally) (string, error) {
		tellings := slices.Concat(each([]*story{losing}, unreachable(0)), each([]*story{scaling, sharing}, unreachable(2)),
			each([]*story{reporting}, unreachable(3)))
		if fullGrid {
			tellings = each(slices.Concat(stories, mergeStories, profileStories, reportStories, rareStories),
				unreachable(0), unreachable(2), unreachable(3), unreachable(4))
		}
		return inWeather(ctx, count, tellings)
	})
	if fullGrid {
		itEndsTheSameAlone("for everybody, because it is killed", func(ctx context.Context, count *tally) (string, error) {
			return killAPIServer(ctx, count, stories)
		})
	}
})

var _ = Describe("when the webhooks do not answer", func() {
	itEndsTheSame("jobs that are there go on", func(ctx context.Context, count *tally) (string, error) {
		told := []*story{suspending}
		if fullGrid {
			told = []*story{givingWay, suspending, losing, failing, finishing, scaling, saving, restarting, ranging, expiring}
		}
		return inWeather(ctx, count, each(told, deaf))
	})
})

// outage is how long the API server is gone.
const outage = 5 * time.Second

// unreachable has the API server refuse and lose every connection of the operator for a while: when the story begins, or when it
// sends its n-th write.
func unreachable(n int) func() weather {
	return func() weather {
		name := "the API server is gone when it happens"
		if n > 0 {
			name = fmt.Sprintf("the API server is gone at write %d", n)
		}
		return weather{
			name: name,
			set: func(s *site) {
				s.isPatient(4 * outage)
				if n == 0 {
					s.loseSight()
					s.proxy.vanish(outage)
				} else {
					s.proxy.inject(at(n, cutOff))
				}
			},
			check: func(s *site) (verdict, string) {
				if s.proxy.downUntil.Load() == 0 {
					return void, fmt.Sprintf("%d writes only", len(s.proxy.counted()))
				}
				return passed, fmt.Sprintf("%d writes", len(s.proxy.counted()))
			},
		}
	}
}

// killAPIServer runs the stories side by side, and kills the API server when what they are about has happened to all.
func killAPIServer(ctx context.Context, count *tally, told []*story) (string, error) {
	const what = "the API server is killed and started again"
	count.plan(what)
	var struck sync.WaitGroup
	down, back := make(chan struct{}), make(chan struct{})
	results := make([]string, len(told))
	var trials []func() error
	for i, st := range told {
		if _, err := st.undisturbed(); err != nil {
			return "", err
		}
		struck.Add(1)
		trials = append(trials, func() error {
			results[i] = fmt.Sprintf("%s: %s", st.name, failed)
			return count.count(what, func() (verdict, error) {
				err := try(ctx, st.name+", "+what, func(t *trial) { st.outlives(t, sync.OnceFunc(struck.Done), down, back) })
				if err == nil {
					results[i] = fmt.Sprintf("%s: %s", st.name, passed)
				}
				return passed, err
			})
		})
	}
	var restarted error
	go func() {
		defer close(back)
		struck.Wait()
		shared.cluster.KillAPIServer()
		close(down)
		restarted = shared.cluster.StartAPIServer(ctx)
	}()
	err := abreast(trials...)
	<-back
	return strings.Join(results, "\n"), errors.Join(err, restarted)
}

// outlives runs the story, whose second part begins when the API server is back. As behind a load balancer, the operator does not
// reach one that is not ready: it would be refused, because its role is not known yet. What an API server carried out and did
// not write into its audit log any more cannot be counted, so that the writes are not compared.
func (st *story) outlives(t *trial, happened func(), down, back <-chan struct{}) {
	t.Cleanup(happened) // if the trial fails before
	s := st.begin(t)
	s.isPatient(time.Minute)
	s.loseSight()
	st.strike(s)
	// What KWOK has not done by then, it may forget.
	s.Eventually(s.leaving).Should(BeEmpty(), "who was told to leave is gone")
	happened()
	<-down
	s.proxy.vanish(time.Hour)
	<-back
	s.proxy.reappear()
	st.sequel(s)
	s.rests(longerThanHeldBack)
	st.looksSame(s)
	st.holds(s)
}

// leaving lists the pods that were told to leave and are still there.
func (s *site) leaving() ([]string, error) {
	pods, err := s.Pods(jobName)
	var names []string
	for i := range pods {
		if pods[i].DeletionTimestamp != nil {
			names = append(names, pods[i].Name)
		}
	}
	return names, err
}

// deaf has the API server call webhooks for the jobs of the namespace that accept the call and never answer.
func deaf() weather {
	return weather{
		name: "the webhooks do not answer",
		set: func(s *site) {
			// Nobody accepts what connects.
			listener, err := (&net.ListenConfig{}).Listen(s.t.Context(), "tcp", "localhost:0")
			s.Expect(err).NotTo(HaveOccurred(), "somebody listens")
			s.t.Cleanup(func() { _ = listener.Close() })
			configurations, err := testutil.Webhooks(s.t.Context())
			s.Expect(err).NotTo(HaveOccurred(), "the webhooks are read")
			for _, o := range configurations {
				cluster.PointWebhooks(o, "https://"+listener.Addr().String(), nil)
				confine(o, s.Namespace)
				o.SetName(o.GetName() + "-" + s.Namespace)
				s.Create(o)
				s.t.Cleanup(func() { s.Delete(o) })
			}
			s.Eventually(s.createAnother).Should(MatchError(And(
				HavePrefix(`Internal error occurred: failed calling webhook "default.elastictrainingjobs.tideline.io": `),
				ContainSubstring(listener.Addr().String()), HaveSuffix("context deadline exceeded"))), "a new job is refused, and says why")
		},
		check: func(s *site) (verdict, string) {
			s.Expect(s.createAnother()).To(MatchError(ContainSubstring("failed calling webhook")), "new jobs are refused to the end")
			return passed, fmt.Sprintf("%d writes", len(s.proxy.counted()))
		},
	}
}

// createAnother tries to create a job, as a user.
func (s *site) createAnother() error {
	return s.Client.Create(s.t.Context(), s.Job("another").Obj(), client.DryRunAll)
}

// confine has a webhook configuration hold for one namespace.
func confine(configuration *unstructured.Unstructured, namespace string) {
	webhooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	for _, w := range webhooks {
		if webhook, ok := w.(map[string]any); ok {
			webhook["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{corev1.LabelMetadataName: namespace}}
		}
	}
	configuration.Object["webhooks"] = webhooks
}
