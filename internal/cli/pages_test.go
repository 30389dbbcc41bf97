package cli_test

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/cli"
)

// paged answers as the API server does in JSON: what an answer does not name stays in the list that it is read into.
type paged struct {
	client.Client

	tokens []string
}

func (p *paged) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	asked := &client.ListOptions{}
	asked.ApplyOptions(opts)
	p.tokens = append(p.tokens, asked.Continue)
	list, ok := into.(*corev1.PodList)
	if !ok {
		return fmt.Errorf("a list of %T", into)
	}
	page := len(p.tokens)
	if len(list.Items) == 0 {
		list.Items = make([]corev1.Pod, 1)
	}
	list.Items[0].Name = fmt.Sprint("pod-", page)
	if page == 1 {
		list.Items[0].Labels = map[string]string{"only": "of the first"}
	}
	if page < 3 {
		list.Continue = fmt.Sprint("after-", page)
	}
	return nil
}

func TestAllPagesAreShownOnceAndByThemselves(t *testing.T) {
	g := NewWithT(t)
	p := &paged{}
	var names []string
	list := &corev1.PodList{}
	g.Expect(cli.ListPages(t.Context(), p, list, func(o client.Object) {
		names = append(names, fmt.Sprint(o.GetName(), len(o.GetLabels())))
	})).To(Succeed())
	g.Expect(names).To(Equal([]string{"pod-11", "pod-20", "pod-30"}))
	g.Expect(p.tokens).To(Equal([]string{"", "after-1", "after-2"}))
	g.Expect(list.Items).To(BeEmpty())
}
