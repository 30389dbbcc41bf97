package promquery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// ErrUnavailable is wrapped by all errors about missing answers of Prometheus. Their messages are for users. They contain
// no token, no password, and of URLs only the server.
var ErrUnavailable = errors.New("the use of pods is unknown")

// mostFailures is how many failed batches in a row end the collection: each may take the whole timeout.
const mostFailures = 3

// Collect returns the usage, by what it is of, of the part of a day of UTC that has passed; none for a day that has not
// begun. Roles with pods whose answers are incomplete or have warnings are left out. Then the error wraps ErrUnavailable
// and has the number of these pods. With an error of ctx there is no usage.
func (c *Client) Collect(ctx context.Context, day time.Time, stays []Stay, now time.Time) (map[sizing.Key]sizing.Usage, error) {
	d := NewDay(day, stays, now)
	failed := failures{}
	batches := d.PendingBatches()
	for _, b := range batches {
		failed.of += len(b.Pods)
	}
	for _, b := range batches {
		if failed.inARow == mostFailures {
			// Not asked: so many in a row tell that Prometheus does not answer.
			failed.add(b, nil)
			d.ForgetBatch(b)
			continue
		}
		answers, err := c.askBatch(ctx, d, b)
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("collect what pods used: %w", context.Cause(ctx))
		case err != nil:
			failed.add(b, err)
			d.ForgetBatch(b)
		default:
			failed.inARow = 0
			d.FoldAnswers(b, answers)
		}
	}
	return d.UsageByKey(), failed.err()
}

// askBatch asks all questions about a batch. It stops at the first failure, because a part of the answers is of no use.
func (c *Client) askBatch(ctx context.Context, d *Day, b Batch) (Answers, error) {
	answers := Answers{}
	from, to, _ := d.TimeRange()
	for _, q := range BatchQueries(b, c.trusted) {
		series, err := c.queryRange(ctx, q, from, to)
		if err != nil {
			return nil, err
		}
		// Devices are asked for under two labels, and each names some.
		answers[q.Metric] = append(answers[q.Metric], series...)
	}
	return answers, nil
}

// failures are the batches that failed.
type failures struct {
	inARow, pods, of int
	first            Batch
	why              error
}

func (f *failures) add(b Batch, why error) {
	if f.why == nil {
		f.first, f.why = b, why
	}
	f.pods += len(b.Pods)
	if why != nil {
		f.inARow++
	}
}

// err is nil if there are none.
func (f *failures) err() error {
	if f.why == nil {
		return nil
	}
	return fmt.Errorf("%w (%d of %d pods, first those from %q to %q in namespace %q): %w", ErrUnavailable, f.pods, f.of,
		f.first.Pods[0], f.first.Pods[len(f.first.Pods)-1], f.first.Namespace, f.why)
}
