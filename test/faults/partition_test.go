package faults

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

var _ = Describe("when packets vanish and connections stay", func() {
	itEndsTheSame("between the operator and the API server", func(ctx context.Context, res *results) (string, error) {
		combinations := slices.Concat(combine([]*story{losing, growing, handingOver}, silent(0)),
			combine([]*story{suspending, scaling, reporting}, silent(2)))
		if fullGrid {
			combinations = combine(slices.Concat(stories, mergeStories, profileStories, reportStories, rareStories),
				silent(0), silent(2), silent(4))
		}
		return runCombinations(ctx, res, combinations)
	})
	itEndsTheSameAlone("between the API server and all others, or between it and etcd",
		func(ctx context.Context, res *results) (string, error) {
			var tables []byte
			for _, o := range spots([]commonOutage{
				hung("the API server hangs", func() { shared.cluster.PauseAPIServer() }, func() { shared.cluster.ResumeAPIServer() }),
				hung("etcd hangs", func() { shared.cluster.PauseEtcd() }, func() { shared.cluster.ResumeEtcd() }),
			}, 2) {
				told, err := befallAll(ctx, res, spots(stories, 3), o)
				tables = append(tables, told+"\n"...)
				if err != nil {
					return string(tables), err
				}
			}
			return string(tables), nil
		})
})

// partition is how long no packet passes, or a process hangs: longer than anybody waits for the next word, and shorter than
// after what nodes count as lost.
const partition = 10 * time.Second

// hung holds a process of the cluster where it is for some time, which to others is as if the network were cut.
func hung(what string, pause, resume func()) commonOutage {
	return commonOutage{what: what, hit: pause, mend: func(ctx context.Context) error {
		defer resume()
		select {
		case <-time.After(partition):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
}

// silent has no packet pass between the operator and the API server for a while: when the story begins, or once its n-th write is
// carried out.
func silent(n int) func() lastingFault {
	return func() lastingFault {
		name := "no packet passes when it happens"
		if n > 0 {
			name = fmt.Sprintf("no packet passes after write %d", n)
		}
		return lastingFault{
			name: name,
			set: func(env *environment) {
				env.isPatient(4 * partition)
				if n == 0 {
					env.loseSight()
					env.proxy.fallSilent(partition)
				} else {
					env.proxy.inject(at(n, silenced))
				}
			},
			check: func(env *environment) (verdict, string) {
				if env.proxy.silence.Load() == nil {
					return void, fmt.Sprintf("%d writes only", len(env.proxy.counted()))
				}
				return passed, fmt.Sprintf("%d writes", len(env.proxy.counted()))
			},
		}
	}
}

// fallSilent has nothing pass for some time. What was sent meanwhile arrives then, as it does by TCP.
func (p *proxy) fallSilent(d time.Duration) {
	over := make(chan struct{})
	p.silence.Store(&over)
	time.AfterFunc(d, func() { close(over) })
}

// awaitSound returns when something passes.
func (p *proxy) awaitSound() {
	if over := p.silence.Load(); over != nil {
		<-*over
	}
}

func (p *proxy) silenceWatch(response *http.Response, info *apirequest.RequestInfo) {
	if info.Verb == "watch" {
		response.Body = heldBack{response.Body, p}
	}
}

// heldBack is a stream of which nothing passes while nothing passes.
type heldBack struct {
	io.ReadCloser

	proxy *proxy
}

// Read implements io.Reader.
func (h heldBack) Read(into []byte) (int, error) {
	n, err := h.ReadCloser.Read(into)
	h.proxy.awaitSound()
	return n, err
}
