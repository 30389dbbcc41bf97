package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil/markdown"
)

// The jobs of the story. The node has as many GPUs as the first can use.
const (
	sampleA = "config/samples/job-a.yaml"
	sampleB = "config/samples/job-b.yaml"
)

// elasticPlay is the story of two elastic training jobs.
type elasticPlay struct {
	a, b sample
	// page is the file that gets what README shows of the story, unless it is empty.
	page string
}

func (p *elasticPlay) cast(root string) (_ cluster.Options, err error) {
	if p.a, err = readSample(root, sampleA); err != nil {
		return cluster.Options{}, err
	}
	if p.b, err = readSample(root, sampleB); err != nil {
		return cluster.Options{}, err
	}
	return cluster.Options{GPUNodes: 1, GPUsPerNode: int(p.a.maximum)}, nil
}

func (*elasticPlay) prepare(context.Context, *stage) ([]string, error) { return nil, nil }

func (p *elasticPlay) tell(ctx context.Context, s *stage, out *printer, sh *shell, told func() bool) error {
	w := newWatcher(timeline{host: p.a, newcomer: p.b})
	if err := w.watch(ctx, s.world.Config, s.world.Client.Scheme(), p.a.namespace); err != nil {
		return err
	}
	if err := (&story{printer: out, shell: sh, watcher: w, a: p.a, b: p.b}).tell(ctx); err != nil {
		return err
	}
	if p.page != "" {
		if err := writeQuotes(p.page, out.quotes.String()); err != nil {
			return err
		}
	}
	if told() {
		<-ctx.Done()
	}
	return nil
}

// pageTarget is the make target that writes README's excerpt of the story.
const pageTarget = "make demo-readme"

// writeQuotes puts what was quoted between the marks of pageTarget in a page.
func writeQuotes(page, quotes string) error {
	before, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	after, err := markdown.ReplaceMarked(string(before), pageTarget, "```\n"+strings.TrimSpace(quotes)+"\n```\n")
	if err != nil {
		return fmt.Errorf("write %s: %w", page, err)
	}
	return os.WriteFile(page, []byte(after), 0o644)
}

func (p *elasticPlay) suggestions() string {
	return fmt.Sprintf(`  kubectl scale etj %[1]s --replicas=4               # the highest workers leave at once
  kubectl delete pod %[1]s-worker-0 --wait=false     # counts as one restart; the others keep their pods
  kubectl apply -f config/samples/smallest.yaml
  kubectl patch etj %[1]s --type=merge -p '{"spec":{"minReplicas":9}}'     # is refused, with the reason
  kubectl describe etj %[1]s`, p.a.name)
}
