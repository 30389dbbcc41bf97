package approve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cli"
	"github.com/tideline-io/tideline/internal/quota/approval"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// cluster has jobs, and the webhook unless it is off.
type cluster struct {
	jobs    []client.Object
	off     bool
	refuses error
}

func training(annotations ...string) client.Object {
	job := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "ctr", UID: "7"}}
	if len(annotations) == 2 {
		job.Annotations = map[string]string{annotations[0]: annotations[1]}
	}
	return job
}

func merging() client.Object {
	return &v1beta1.MergeJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "ctr", UID: "8"}}
}

// client connects bob.
func (c cluster) client(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.jobs...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, _ ...client.PatchOption) error {
			if c.refuses != nil {
				return c.refuses
			}
			if patch, err := p.Data(o); err != nil || !bytes.Contains(patch, []byte(`"uid":"`+string(o.GetUID())+`"`)) {
				return fmt.Errorf("another object of the name might be patched by %s (%w)", patch, err)
			}
			before := o.GetAnnotations()[v1beta1.AnnotationApprove]
			if err := w.Patch(ctx, o, p); err != nil || c.off {
				return err
			}
			asked, found := o.GetAnnotations()[v1beta1.AnnotationApprove]
			if !found || asked == before {
				return nil
			}
			lasts, err := approval.ParseDuration(asked)
			if err != nil {
				return err
			}
			o.SetAnnotations(map[string]string{v1beta1.AnnotationApproval: approval.Approval{
				By: "bob@example.com", UID: o.GetUID(), Profile: "team-ads", Tier: "main-traffic", At: metav1.NewTime(noon),
				Until: metav1.NewTime(noon.Add(lasts)),
			}.String()})
			return w.Update(ctx, o)
		},
	}).Build()
}

func TestApprove(t *testing.T) {
	jobs := func(all ...client.Object) cluster { return cluster{jobs: all} }
	const (
		approved = " ads/ctr is approved in tier main-traffic of profile team-ads by bob@example.com: it may begin until "
		aJob     = "ElasticTrainingJob" + approved
		aMerge   = "MergeJob" + approved
		help     = "; -h says more\n"
	)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "tideline.io", Resource: "elastictrainingjobs"}, "ctr",
		errors.New("no\x1b[2J"))
	for name, c := range map[string]struct {
		cluster   cluster
		args      string
		prints    string
		complains string
		code      int
	}{
		"a job":       {cluster: jobs(training()), args: "ads/ctr", prints: aJob + "2026-11-25T12:00:00Z.\n"},
		"for a while": {cluster: jobs(training()), args: "ads/ctr --for 30m", prints: aJob + "2026-11-22T12:30:00Z.\n"},
		"flags first": {cluster: jobs(training()), args: "--for=1h ads/ctr", prints: aJob + "2026-11-22T13:00:00Z.\n"},
		"a merge":     {cluster: jobs(merging()), args: "ads/ctr", prints: aMerge + "2026-11-25T12:00:00Z.\n"},
		"the merge":   {cluster: jobs(training(), merging()), args: "ads/ctr --kind merge", prints: aMerge + "2026-11-25T12:00:00Z.\n"},
		"the job":     {cluster: jobs(training(), merging()), args: "--kind job ads/ctr", prints: aJob + "2026-11-25T12:00:00Z.\n"},
		"asked long since": {cluster: jobs(training(v1beta1.AnnotationApprove, "72h")), args: "ads/ctr",
			prints: aJob + "2026-11-25T12:00:00Z.\n"},
		"either": {cluster: jobs(training(), merging()), args: "ads/ctr", code: 1, complains: "ads/ctr is not approved: there is an " +
			"ElasticTrainingJob and a MergeJob of this name: say which with --kind job or --kind merge\n"},
		"neither": {args: "ads/ctr", code: 1,
			complains: "ads/ctr is not approved: there is no such ElasticTrainingJob or MergeJob\n"},
		"refused": {cluster: cluster{jobs: []client.Object{training()}, refuses: forbidden}, args: "ads/ctr", code: 1,
			complains: `ads/ctr is not approved: elastictrainingjobs.tideline.io "ctr" is forbidden: no\x1b[2J` + "\n"},
		"without webhooks": {cluster: cluster{jobs: []client.Object{training()}, off: true}, args: "ads/ctr", code: 1,
			complains: "ads/ctr is not approved: no webhook recorded it, and without webhooks no approval counts: have them installed " +
				"(config/webhook), and the operator run with them\n"},
		"by flag": {cluster: jobs(training()), args: "ctr -n ads", prints: aJob + "2026-11-25T12:00:00Z.\n"},
		"for programs": {cluster: jobs(training()), args: "ctr -n ads -o json", prints: `{
  "kind": "ElasticTrainingJob",
  "namespace": "ads",
  "name": "ctr",
  "tier": "main-traffic",
  "profile": "team-ads",
  "by": "bob@example.com",
  "until": "2026-11-25T12:00:00Z"
}
`},
		"two namespaces": {args: "ads/ctr -n dev", code: 2,
			complains: `tideline approve: "ads/ctr" is in another namespace than -n dev: leave one out` + help},
		"no name": {args: "ads/", code: 2,
			complains: `tideline approve: "ads/": name one job: NAME with -n NAMESPACE, or NAMESPACE/NAME` + help},
		"nothing": {code: 2, complains: "tideline approve: name one job: NAME with -n NAMESPACE, or NAMESPACE/NAME" + help},
		"two": {args: "ads/a ads/b", code: 2,
			complains: "tideline approve: \"ads/b\" is too much: name one job at a time" + help},
		"another kind": {args: "ads/a --kind pod", code: 2, complains: "tideline approve: --kind \"pod\": it is job or merge" + help},
		"for ever": {args: "ads/a --for ever", code: 2,
			complains: "tideline approve: --for \"ever\": it is not a duration from 1m to " +
				"8760h: write how long the approval counts, for example 72h or 30m" + help},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var stdout, stderr bytes.Buffer
			connected := c.cluster.client(t)
			code := run(t, cli.Connected(connected), strings.Fields(c.args), &stdout, &stderr)
			g.Expect(stdout.String()).To(Equal(c.prints))
			g.Expect(stderr.String()).To(Equal(c.complains))
			g.Expect(code).To(Equal(c.code))
			for _, job := range c.cluster.jobs {
				g.Expect(connected.Get(t.Context(), types.NamespacedName{Namespace: "ads", Name: "ctr"}, job)).To(Succeed())
				g.Expect(job.GetAnnotations()).NotTo(HaveKey(v1beta1.AnnotationApprove), "nothing is left behind")
			}
		})
	}
}

// run runs `tideline approve`.
func run(t *testing.T, connection *cli.Connection, args []string, stdout, stderr *bytes.Buffer) int {
	t.Helper()
	root := cli.Root("tideline", Command(connection))
	return cli.Execute(t.Context(), root, slices.Concat([]string{"approve"}, args), nil, stdout, stderr)
}

func TestHelpAndWrongFlagsAreSaidOnce(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	nowhere := cli.NewConnection(nil)
	var stdout, stderr bytes.Buffer
	g.Expect(run(t, nowhere, []string{"-h"}, &stdout, &stderr)).To(Equal(0))
	g.Expect(stdout.String()).To(And(ContainSubstring("Usage:\n  tideline approve JOB [flags]\n"),
		ContainSubstring("--for duration")))
	stdout.Reset()
	g.Expect(run(t, nowhere, []string{"ads/ctr", "--until=noon"}, &stdout, &stderr)).To(Equal(2))
	g.Expect(stderr.String()).To(Equal("tideline approve: unknown flag: --until; -h says more\n"))
	stderr.Reset()
	g.Expect(run(t, nowhere, []string{"ads/ctr"}, &stdout, &stderr)).To(Equal(1))
	g.Expect(stderr.String()).To(HavePrefix("tideline approve: find a cluster (set KUBECONFIG, or run in one): "))
	g.Expect(stdout.String()).To(BeEmpty())
}
