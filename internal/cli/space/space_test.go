package space

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cli"
)

var present = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func before(d time.Duration) string { return present.Add(-d).Format(time.RFC3339) }

// claimed is a claim of namespace ads, with a rule and a mark, which was seen an hour ago, unless they are empty.
func claimed(name, rule, since string) *corev1.PersistentVolumeClaim {
	p := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ads", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(present.Add(-1000 * day)),
		Annotations: map[string]string{},
	}}
	if since != "" {
		p.Annotations[v1beta1.AnnotationUnusedSeen] = before(time.Hour)
	}
	p.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Ti")}
	for annotation, value := range map[string]string{v1beta1.AnnotationPruneAfter: rule, v1beta1.AnnotationUnusedSince: since} {
		if value != "" {
			p.Annotations[annotation] = value
		}
	}
	return p
}

// training mounts a claim by its template.
func training(name, claim string) *v1beta1.ElasticTrainingJob {
	job := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: name}}
	job.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "out", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}}}
	return job
}

func ended(job *v1beta1.ElasticTrainingJob, ago time.Duration) *v1beta1.ElasticTrainingJob {
	job.Status.CompletionTime = &metav1.Time{Time: present.Add(-ago)}
	return job
}

// other is an object of another kind that names a claim somewhere.
func other(apiVersion, kind, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"namespace": "ads", "name": name}, "spec": spec,
	}}
}

// profile of namespaces that are labelled with team=ads lists clicks in a claim.
func profile() *v1beta1.ResourceQuotaProfile {
	p := &v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: "ads", UID: "profile"}}
	p.Spec.NamespaceSelector.MatchLabels = map[string]string{"team": "ads"}
	p.Spec.DataSets = []v1beta1.ProfileDataSet{{Name: "clicks", Versions: []v1beta1.DataVersion{
		{Version: "1", Claim: "clicks-1"}, {Version: "2", Claim: "clicks-2"},
	}}}
	return p
}

// world is a cluster for the commands.
type world struct {
	client.Client

	t *testing.T
	// denied are kinds that the user may not list, and refused is what comes of every deletion; nil for what should.
	denied  string
	refused error
	// meanwhile is done just before a claim is deleted.
	meanwhile func()
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1beta1.AddToScheme(scheme)).To(Succeed())
	g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	w := &world{t: t}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ads", Labels: map[string]string{"team": "ads"}}}
	versions := scheme.PreferredVersionAllGroups()
	for _, kind := range holders {
		versions = append(versions, kind.WithVersion(versionOf(kind)).GroupVersion())
	}
	mapper := meta.NewDefaultRESTMapper(versions)
	for _, kind := range holders {
		mapper.Add(kind.WithVersion(versionOf(kind)), meta.RESTScopeNamespace)
	}
	for kind := range scheme.AllKnownTypes() {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(append(objects, namespace)...)
	w.Client = builder.WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			kind, err := c.GroupVersionKindFor(list)
			if err == nil && w.denied != "" && strings.HasPrefix(kind.Kind, w.denied) {
				return apierrors.NewForbidden(schema.GroupResource{Resource: w.denied}, "", errors.New("not yours"))
			}
			return c.List(ctx, list, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if w.refused != nil {
				return w.refused
			}
			if w.meanwhile != nil {
				w.meanwhile()
			}
			return c.Delete(ctx, o, opts...)
		},
	}).Build()
	return w
}

// versionOf is the version in which the tests' cluster serves a kind.
func versionOf(kind schema.GroupKind) string {
	if strings.HasSuffix(kind.Group, "volcano.sh") {
		return "v1alpha1"
	}
	return "v1"
}

// run runs a command and returns what it printed, what it said of failures, and its exit code.
func (w *world) run(args ...string) (out, failed string, code int) {
	w.t.Helper()
	var stdout, stderr strings.Builder
	clock := func() time.Time { return present }
	connection := cli.Connected(w)
	root := cli.Root("tideline", AskSpace(connection, clock), PruneClaims(connection, clock), &cobra.Command{Use: "run"})
	code = cli.Execute(w.t.Context(), root, args, strings.NewReader(""), &stdout, &stderr)
	return stdout.String(), stderr.String(), code
}

// mark is a claim's note since when it is unused; gone without a claim.
func (w *world) mark(name string) string {
	w.t.Helper()
	p := &corev1.PersistentVolumeClaim{}
	err := w.Get(w.t.Context(), client.ObjectKey{Namespace: "ads", Name: name}, p)
	if apierrors.IsNotFound(err) {
		return "gone"
	}
	NewWithT(w.t).Expect(err).NotTo(HaveOccurred())
	return p.Annotations[v1beta1.AnnotationUnusedSince]
}

func TestSpaceIsListedWithItsUsers(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, profile(), claimed("clicks-1", "", ""), claimed("out", "30d", ""), claimed("old", "30d", before(31*day)),
		training("ctr", "out"), training("cvr", "out"), training("ctr2", "out"), ended(training("done", "old"), 60*day))
	out, failed, code := w.run("space", "-n", "ads")
	g.Expect([]any{failed, code}).To(Equal([]any{"", 0}))
	g.Expect(out).To(Equal("" +
		"CLAIM          SIZE   DATA       USED BY                                                   RULE   PRUNE\n" +
		"ads/clicks-1   1Ti    clicks:1   -                                                         -      keep: is unused, and " +
		"has no rule\n" +
		"ads/old        1Ti    -          -                                                         30d    delete: " +
		"is unused since 2026-10-30 12:00 UTC\n" +
		"ads/out        1Ti    -          ElasticTrainingJob ctr, ElasticTrainingJob ctr2, 1 more   30d    keep: is used\n" +
		"3 claims of 3Ti; 1 of them, of 1Ti, are used, and 1 unused ones, of 1Ti, have no rule that counts.\n"))
}

func TestClaimsOfWhateverNamesThemAreKept(t *testing.T) {
	long := before(100 * day)
	naming := func(claim string) map[string]any {
		return map[string]any{"template": map[string]any{"spec": map[string]any{"volumes": []any{
			map[string]any{"name": "v", "persistentVolumeClaim": map[string]any{"claimName": claim}},
		}}}}
	}
	suspended := training("ctr", "kept")
	suspended.Spec.Suspend = true
	data := training("data", "elsewhere")
	data.Spec.DataSets = []v1beta1.JobDataSet{{Name: "clicks", Version: "2"}}
	began := training("began", "elsewhere")
	began.Status.Attempt = &v1beta1.AttemptStatus{DataSets: []v1beta1.DataPlace{{Name: "gone", Version: "1", Claim: "kept"}}}
	merge := &v1beta1.MergeJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "m"}}
	merge.Spec.Store = v1beta1.ModelStore{Type: v1beta1.StoreClaim, Claim: &v1beta1.ClaimStore{Name: "kept"}}
	mounts := &v1beta1.MergeJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "mounts"}}
	mounts.Spec.Template.Spec.Volumes = suspended.Spec.Template.Spec.Volumes
	copying := claimed("copy", "", "")
	copying.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "kept"}
	copied := copying.DeepCopy()
	copied.Status.Phase = corev1.ClaimBound
	waits := training("waits", "elsewhere")
	waits.Spec.DataSets = []v1beta1.JobDataSet{{Name: "clicks", Version: "gone"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "p"}}
	pod.Spec.Volumes = suspended.Spec.Template.Spec.Volumes
	over := pod.DeepCopy()
	over.Status.Phase, over.CreationTimestamp = corev1.PodSucceeded, metav1.NewTime(present.Add(-200*day))
	lately := over.DeepCopy()
	lately.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(present.Add(-day))},
	}}}
	volumes := map[string]any{"volumes": []any{map[string]any{"volumeClaimName": "kept"}}}
	templates := map[string]any{"volumeClaimTemplates": []any{map[string]any{"metadata": map[string]any{"name": "data"}}}}
	for name, c := range map[string]struct {
		user  client.Object
		claim string
		want  string
	}{
		"a training that is suspended":      {suspended, "kept", ""},
		"a training with a data set":        {data, "clicks-2", ""},
		"a training whose attempt has it":   {began, "kept", ""},
		"a merge":                           {merge, "kept", ""},
		"a merge whose template mounts it":  {mounts, "kept", ""},
		"a claim that is made a copy of it": {copying, "kept", ""},
		"a claim that is a copy of it":      {copied, "kept", "gone"},
		"a job whose version is not listed": {waits, "kept", long},
		"a pod":                             {pod, "kept", ""},
		"a pod that has ended":              {over, "kept", "gone"},
		"a Deployment":                      {other("apps/v1", "Deployment", "d", naming("kept")), "kept", ""},
		"a suspended Job of Volcano":        {other("batch.volcano.sh/v1alpha1", "Job", "v", volumes), "kept", ""},
		"a PyTorchJob":                      {other("kubeflow.org/v1", "PyTorchJob", "p", naming("kept")), "kept", ""},
		"a StatefulSet that makes it":       {other("apps/v1", "StatefulSet", "db", templates), "data-db-0", ""},
		"a training of another claim":       {training("other", "another"), "kept", "gone"},
		"a training that ended last month":  {ended(training("old", "kept"), 100*day), "kept", "gone"},
		"a training that ended yesterday":   {ended(training("new", "kept"), day), "kept", before(day)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, profile(), c.user, claimed(c.claim, "30d", long))
			_, failed, code := w.run("prune", "-n", "ads")
			g.Expect([]any{failed, code}).To(Equal([]any{"", 0}))
			g.Expect(w.mark(c.claim)).To(Equal(c.want))
		})
	}
}

func TestAClaimIsMarkedAndDeletedWhenItsTimeIsOver(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, claimed("new", "30d", ""), claimed("old", "30d", before(30*day)), claimed("mine", "", ""))
	out, _, code := w.run("prune", "-n", "ads", "--dry-run")
	g.Expect(code).To(Equal(0))
	g.Expect(out).To(Equal("ads/new: would note that it is unused as of now.\n" +
		"ads/old: would delete 1Ti, because it is unused since 2026-10-31 12:00 UTC.\n"))
	g.Expect(w.mark("new")+w.mark("old")).To(Equal(before(30*day)), "nothing was done")

	out, _, code = w.run("prune", "-n", "ads")
	g.Expect(code).To(Equal(0))
	g.Expect(out).To(ContainSubstring("ads/old: deleted 1Ti"))
	g.Expect([]string{w.mark("new"), w.mark("old"), w.mark("mine")}).To(Equal([]string{before(0), "gone", ""}))
	out, _, _ = w.run("prune", "-n", "ads")
	g.Expect(out).To(Equal("No claim is due to be deleted.\n"))
}

func TestAVersionLeavesTheProfileBeforeItsClaimIsDeleted(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, profile(), claimed("clicks-1", "30d", before(31*day)), claimed("clicks-2", "30d", ""))
	versions := func() (all []string) {
		p := &v1beta1.ResourceQuotaProfile{}
		g.Expect(w.Get(t.Context(), client.ObjectKey{Name: "ads"}, p)).To(Succeed())
		for _, set := range p.Spec.DataSets {
			for _, v := range set.Versions {
				all = append(all, set.Name+":"+v.Version)
			}
		}
		return all
	}
	_, _, code := w.run("prune", "-n", "ads")
	g.Expect(code).To(Equal(0))
	g.Expect(versions()).To(ConsistOf("clicks:1", "clicks:2"), "the team may have other namespaces")

	out, _, code := w.run("prune", "--profile", "ads")
	g.Expect(code).To(Equal(0))
	g.Expect(out).To(ContainSubstring("ads/clicks-1: took clicks:1 out of the profile, because it is unused since"))
	g.Expect(versions()).To(ConsistOf("clicks:2"))
	g.Expect(w.mark("clicks-1")).To(Equal(before(31*day)), "and it is there still")

	w.run("prune", "--profile", "ads")
	g.Expect(w.mark("clicks-1")).To(Equal("gone"))
}

func TestNothingIsPrunedWhereUsersAreNotKnown(t *testing.T) {
	for _, kind := range []string{"PyTorchJob", "ElasticTrainingJob", "StatefulSet"} {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, claimed("old", "30d", before(31*day)))
			w.denied = kind
			out, failed, code := w.run("prune", "-n", "ads")
			g.Expect([]any{out, code}).To(Equal([]any{"", 1}))
			g.Expect(failed).To(And(ContainSubstring(fmt.Sprintf("what objects of kind %s in namespace ads use is not known", kind)),
				ContainSubstring("nothing is done")))
			g.Expect(w.mark("old")).NotTo(Equal("gone"))
			out, failed, code = w.run("space", "-n", "ads")
			g.Expect(out).To(ContainSubstring("ads/old"))
			g.Expect(failed).To(ContainSubstring("is not known"))
			g.Expect(code).To(Equal(1))
		})
	}
}

// The example's account may list all that may name a claim, and writes nothing but claims.
func TestTheExampleMayListEachKind(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile("../../../docs/examples/prune.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var rules []rbacv1.PolicyRule
	for _, document := range strings.Split(string(content), "\n---\n") {
		role := &rbacv1.Role{}
		g.Expect(yaml.Unmarshal([]byte(document), role)).To(Succeed())
		if role.Kind == "Role" {
			rules = append(rules, role.Rules...)
		}
	}
	may := func(verb, group, resource string) bool {
		return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.Verbs, verb) && slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource)
		})
	}
	own := []schema.GroupKind{
		{Group: v1beta1.GroupVersion.Group, Kind: v1beta1.ElasticTrainingJobKind},
		{Group: v1beta1.GroupVersion.Group, Kind: v1beta1.MergeJobKind}, {Kind: "PersistentVolumeClaim"},
	}
	for _, kind := range slices.Concat(own, holders) {
		g.Expect(may("list", kind.Group, strings.ToLower(kind.Kind)+"s")).To(BeTrue(), "it may list %s", kind)
	}
	for _, r := range rules {
		if !slices.Equal(r.Resources, []string{"persistentvolumeclaims"}) {
			g.Expect(r.Verbs).To(HaveExactElements("list"))
		}
	}
}

// Claims of ephemeral volumes are named by no pod: they belong to theirs.
func TestAClaimWithAnOwnerIsItsOwners(t *testing.T) {
	g := NewWithT(t)
	of := claimed("scratch", "1h", before(day))
	of.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "p", Controller: ptr.To(true)}}
	w := newWorld(t, of)
	_, _, code := w.run("prune", "-n", "ads")
	g.Expect(code).To(Equal(0))
	g.Expect(w.mark("scratch")).To(BeEmpty())
}

// Whoever may write claims may write any owner.
func TestOwnersSteerNoTerminal(t *testing.T) {
	g := NewWithT(t)
	of := claimed("scratch", "1h", before(day))
	of.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "\x1b[2J", UID: "p",
		Name: "y\nads/other   1Ti\t-   -   -   delete: is unused" + strings.Repeat("!", 1000),
	}}
	out, _, code := newWorld(t, of).run("space", "-n", "ads")
	g.Expect(code).To(Equal(0))
	g.Expect(strings.Split(strings.TrimSpace(out), "\n")).To(HaveLen(3), out)
	g.Expect(out).NotTo(ContainSubstring("\x1b"))
	g.Expect(len(out)).To(BeNumerically("<", 600))
}

func TestWhatCannotBeDoneIsTold(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, claimed("old", "30d", before(31*day)), claimed("wrong", strings.Repeat("soon", 100), before(31*day)))
	w.refused = errors.New("the webhook is down")
	out, failed, code := w.run("prune", "-n", "ads")
	g.Expect([]any{out, code}).To(Equal([]any{"No claim is due to be deleted.\n", 1}))
	g.Expect(failed).To(And(ContainSubstring("ads/old is unused since 2026-10-30 12:00 UTC; delete: the webhook is down\n"),
		ContainSubstring(`ads/wrong is unused, and its rule is wrong: tideline.io/prune-unused-after is "soonsoon`)))
	g.Expect(len(failed)).To(BeNumerically("<", 400), "the value is not told whole")
}

// A claim of which somebody changed anything since it was read may be another's now.
func TestAClaimThatChangedMeanwhileStays(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, claimed("old", "30d", before(31*day)))
	w.meanwhile = func() {
		p := claimed("old", "30d", before(31*day))
		g.Expect(w.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"ads"}}}`)))).
			To(Succeed())
	}
	_, failed, code := w.run("prune", "-n", "ads")
	g.Expect(code).To(Equal(1))
	g.Expect(failed).To(HaveSuffix("delete: it was changed meanwhile; the next run looks again\n"))
	g.Expect(w.mark("old")).To(Equal(before(31 * day)))
}

func TestAClaimOfEachNamespaceOfATeamIsDue(t *testing.T) {
	g := NewWithT(t)
	there := func(namespace string) *corev1.PersistentVolumeClaim {
		p := claimed("clicks-1", "30d", before(31*day))
		p.Namespace, p.UID = namespace, types.UID(namespace)
		return p
	}
	namespace := func(name, team string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team}}}
	}
	job := training("ctr", "other")
	job.Namespace, job.Spec.DataSets = "ads-dev", []v1beta1.JobDataSet{{Name: "clicks", Version: "1"}}
	w := newWorld(t, profile(), namespace("ads-dev", "ads"), namespace("search", "search"), there("ads"), there("ads-dev"),
		there("search"), job)
	out, _, code := w.run("prune", "--profile", "ads")
	g.Expect(code).To(Equal(0))
	g.Expect(out).To(Equal("ads-dev/clicks-1: took off the note that it is unused; it is used.\nNo claim is due to be deleted.\n"),
		"one that is used keeps the version for all, and other teams are left alone")
	g.Expect(w.Delete(t.Context(), job)).To(Succeed())
	g.Expect(w.Delete(t.Context(), there("ads-dev"))).To(Succeed())
	g.Expect(w.Create(t.Context(), there("ads-dev"))).To(Succeed())
	out, _, _ = w.run("prune", "--profile", "ads")
	g.Expect(strings.Count(out, "took clicks:1 out of the profile")).To(Equal(1), "it is taken out once")
	out, _, _ = w.run("prune", "--profile", "ads")
	g.Expect(out).To(And(ContainSubstring("ads/clicks-1: deleted"), ContainSubstring("ads-dev/clicks-1: deleted")))
}

func TestOneScopeIsNamed(t *testing.T) {
	g := NewWithT(t)
	_, failed, code := newWorld(t).run("prune", "--profile", "ads", "-n", "ads")
	g.Expect(code).To(Equal(cli.ExitUsage))
	g.Expect(failed).To(Equal("tideline prune: --profile ads is of all its namespaces: leave out -n, or --profile; -h says more\n"))
}
