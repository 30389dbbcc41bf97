package storage

import (
	"context"
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/config/crd"
	"github.com/tideline-io/tideline/internal/cli"
)

const merges = "mergejobs.tideline.io"

// definitionOf is a definition that stores objects in v1beta1.
func definitionOf(stored ...string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: merges},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "tideline.io", Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "MergeJob"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1beta1", Served: true, Storage: true}, {Name: "v1alpha1", Served: true},
			},
		},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: stored},
	}
}

// run runs the command on a cluster with these objects, and returns what it printed, what it said of failures, and which versions
// may still be in store.
func run(t *testing.T, patch func(name string) error, objects ...client.Object) (out, failed string, code int, stored []string) {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1beta1.AddToScheme(scheme)).To(Succeed())
	g.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&apiextensionsv1.CustomResourceDefinition{}).
		WithInterceptorFuncs(interceptor.Funcs{Patch: func(
			ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption,
		) error {
			content, err := p.Data(o)
			g.Expect(string(content), err).To(Equal("{}"), "nothing is changed")
			if patch != nil {
				if err := patch(o.GetName()); err != nil {
					return err
				}
			}
			return c.Patch(ctx, o, p, opts...)
		}}).Build()
	var stdout, stderr strings.Builder
	root := cli.Root("tideline", Command(cli.Connected(c), []string{merges}))
	code = cli.Execute(t.Context(), root, []string{"migrate-storage"}, strings.NewReader(""), &stdout, &stderr)
	is := definitionOf()
	if c.Get(t.Context(), client.ObjectKey{Name: merges}, is) == nil {
		stored = is.Status.StoredVersions
	}
	return stdout.String(), stderr.String(), code, stored
}

func mergeOf(name string) *v1beta1.MergeJob {
	return &v1beta1.MergeJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: name}}
}

func TestAllObjectsAreRewrittenOnceAndTheEarlierVersionIsStruck(t *testing.T) {
	g := NewWithT(t)
	var patched []string
	out, failed, code, stored := run(t, func(name string) error { patched = append(patched, name); return nil },
		definitionOf("v1alpha1", "v1beta1"), mergeOf("a"), mergeOf("b"))
	g.Expect(failed).To(BeEmpty())
	g.Expect(code).To(BeZero())
	g.Expect(out).To(Equal(merges + ": all 2 objects are stored in v1beta1 now, and v1alpha1 is off the list of stored versions.\n"))
	g.Expect(patched).To(ConsistOf("a", "b"))
	g.Expect(stored).To(Equal([]string{"v1beta1"}))
}

func TestWhatIsStoredAsItShouldBeIsLeftAlone(t *testing.T) {
	g := NewWithT(t)
	out, failed, code, _ := run(t, func(string) error { return errors.New("a write") }, definitionOf("v1beta1"), mergeOf("a"))
	g.Expect(failed).To(BeEmpty())
	g.Expect(code).To(BeZero())
	g.Expect(out).To(Equal(merges + ": all objects were stored in v1beta1 already.\n"))
}

// Otherwise the next definition, without the earlier version, would make the object unreadable.
func TestAVersionStaysOnTheListWhileOneObjectWasNotRewritten(t *testing.T) {
	g := NewWithT(t)
	_, failed, code, stored := run(t, func(name string) error {
		if name == "b" {
			return errors.New("webhook is down")
		}
		return nil
	}, definitionOf("v1alpha1", "v1beta1"), mergeOf("a"), mergeOf("b"))
	g.Expect(code).To(Equal(cli.ExitFailed))
	g.Expect(failed).To(Equal(merges + ": the list of stored versions stays as it is: 1 of 2 objects were not rewritten: " +
		"ads/b (webhook is down); mend or delete them, and run this again\n"))
	g.Expect(stored).To(Equal([]string{"v1alpha1", "v1beta1"}))
}

func TestAKindThatIsNotInstalledIsNamed(t *testing.T) {
	g := NewWithT(t)
	_, failed, code, _ := run(t, nil)
	g.Expect(code).To(Equal(cli.ExitFailed))
	g.Expect(failed).To(HavePrefix(merges + ": "))
	g.Expect(failed).To(ContainSubstring("not found"))
}

func TestEachDefinitionIsMigrated(t *testing.T) {
	g := NewWithT(t)
	for _, content := range [][]byte{crd.ElasticTrainingJob, crd.MergeJob, crd.ResourceQuotaProfile, crd.CostReport} {
		g.Expect(crd.Names).To(ContainElement(WithTransform(func(name string) bool {
			return strings.Contains(string(content), "\n  name: "+name+"\n")
		}, BeTrue())))
	}
	g.Expect(crd.Names).To(HaveLen(4))
}
