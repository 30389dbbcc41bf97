package submit

import (
	"context"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cli"
	"github.com/tideline-io/tideline/internal/platform/text"
)

const (
	// lookEvery is how often the job is looked at, and repeatEvery how often a sentence is told again of which only figures change.
	lookEvery, repeatEvery = time.Second, 30 * time.Second
	// drain is how long the log of a job that ended is awaited.
	drain = 5 * time.Second
	// interrupted is the exit code after Ctrl-C, as shells have it.
	interrupted = 130
)

// follower tells the story of a job until it ends.
type follower struct {
	api client.Client
	log *logReader
	// story is where it is told.
	story io.Writer
	clock func() time.Time
	every time.Duration
}

// follow follows a job, whose end is the command's: nil if it succeeded.
func (f *follower) follow(ctx context.Context, job *v1beta1.ElasticTrainingJob) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	ended, read := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(read)
		f.log.follow(reading, ended)
	}()
	last, err := f.look(ctx, job)
	close(ended)
	if err == nil && last != nil {
		select {
		case <-read:
		case <-time.After(drain):
		case <-ctx.Done():
		}
	}
	stop()
	<-read
	switch {
	case ctx.Err() != nil:
		f.tell("left: " + job.Name + " goes on by itself; tideline why " + job.Namespace + "/" + job.Name + " says what it does, and " +
			"kubectl delete etj " + job.Name + " -n " + job.Namespace + " ends it")
		return cli.Exit(interrupted)
	case err != nil:
		return err
	case last == nil:
		return fmt.Errorf("%s was deleted", job.Name)
	case last.Status.Phase == v1beta1.PhaseSucceeded:
		return nil
	}
	return cli.Exit(cli.ExitFailed)
}

// look tells of each change until the job ends, and returns it then; nil if it was deleted.
func (f *follower) look(ctx context.Context, job *v1beta1.ElasticTrainingJob) (*v1beta1.ElasticTrainingJob, error) {
	var teller teller
	failures := 0
	for {
		now := &v1beta1.ElasticTrainingJob{}
		switch err := f.api.Get(ctx, client.ObjectKeyFromObject(job), now); {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case apierrors.IsNotFound(err) || err == nil && now.UID != job.UID:
			return nil, nil //nolint:nilnil // that it is gone is an answer
		case err != nil:
			// An API server that restarts is back soon.
			if failures++; failures > mostFailures {
				return nil, fmt.Errorf("%s goes on, but it cannot be followed: %w", job.Name, err)
			}
		default:
			failures = 0
			if words := teller.next(now, f.clock()); words != "" {
				f.tell(words)
			}
			if p := now.Status.Phase; p == v1beta1.PhaseSucceeded || p == v1beta1.PhaseFailed {
				return now, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(f.every):
		}
	}
}

// mostFailures is how many looks in a row may fail.
const mostFailures = 60

// tell tells a line of the story. What others wrote steers no terminal.
func (f *follower) tell(words string) {
	cli.Tell(f.story, f.clock().Format("15:04:05 ")+text.SingleLine(words)+"\n")
}

// teller knows what was told last.
type teller struct {
	state, words string
	at           time.Time
}

// next is what is new about a job; empty for nothing.
func (t *teller) next(job *v1beta1.ElasticTrainingJob, now time.Time) string {
	st := &job.Status
	if st.Reason == "" {
		return ""
	}
	state := fmt.Sprintf("%s, %s", st.Phase, st.Reason)
	if st.Phase == v1beta1.PhaseRunning {
		state += ", " + st.Summary
	}
	if st.Place > 0 {
		state += fmt.Sprintf(", place %d in queue %s", st.Place, st.Queue)
	}
	words := state + ": " + st.Message
	if state == t.state && (words == t.words || now.Sub(t.at) < repeatEvery) {
		return ""
	}
	t.state, t.words, t.at = state, words, now
	return words
}
