package webhook

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity/arbiter"
	"github.com/tideline-io/tideline/internal/capacity/outlook"
	"github.com/tideline-io/tideline/internal/platform/config"
)

// foreteller answers with an outlook or an error, and notes the queue that it is asked about.
type foreteller struct {
	outlook arbiter.Outlook
	err     error
	queues  []string
}

func (f *foreteller) ForetellStart(
	_ context.Context, _ *v1beta1.ElasticTrainingJob, queue string,
) (*arbiter.Outlook, error) {
	f.queues = append(f.queues, queue)
	return &f.outlook, f.err
}

func TestOnlyADryRunThatWouldSucceedIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		dry  *bool
		job  string
		told int
	}{
		"a dry run":     {ptr.To(true), `{"spec":{"owner":"alice"}}`, 1},
		"a creation":    {ptr.To(false), `{"spec":{"owner":"alice"}}`, 0},
		"an older API":  {nil, `{"spec":{"owner":"alice"}}`, 0},
		"a refused one": {ptr.To(true), `{"spec":{"owner":"alice","tier":"gold"}}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := &foreteller{err: arbiter.ErrNotJudging}
			req := creation(c.job)
			req.DryRun = c.dry
			v := newJobValidator(&reviewer{}, config.DefaultConfiguration(), nil, outlook.Tellers{Start: f})
			response := v.Handle(t.Context(), req)
			g.Expect(response.Warnings).To(HaveLen(c.told))
			g.Expect(f.queues).To(HaveLen(c.told), "nothing is simulated that is not told")
		})
	}
}
