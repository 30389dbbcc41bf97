package report

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/config/rbac"
)

// say matches a report whose status says so.
func say(reason string, words ...string) OmegaMatcher {
	matchers := []OmegaMatcher{HaveField("Status.Reason", reason)}
	for _, word := range words {
		matchers = append(matchers, HaveField("Status.Message", ContainSubstring(word)))
	}
	return And(matchers...)
}

// sayOfMail matches a report whose condition Mailed says so.
func sayOfMail(reason string, words ...string) OmegaMatcher {
	matchers := []OmegaMatcher{HaveField("Type", v1beta1.ConditionMailed), HaveField("Reason", reason)}
	for _, word := range words {
		matchers = append(matchers, HaveField("Message", ContainSubstring(word)))
	}
	return HaveField("Status.Conditions", ContainElement(And(matchers...)))
}

// read reads a CostReport.
func (f *fixture) read(ctx context.Context, name string) func() (*v1beta1.CostReport, error) {
	return func() (*v1beta1.CostReport, error) {
		r := &v1beta1.CostReport{}
		return r, f.Client.Get(ctx, client.ObjectKey{Name: name}, r)
	}
}

// make creates a CostReport, and returns its JSON file once it is made.
func (f *fixture) make(ctx context.Context, r *v1beta1.CostReport) document {
	GinkgoHelper()
	Expect(f.Client.Create(ctx, r)).To(Succeed())
	Eventually(f.read(ctx, r.Name)).Should(say(v1beta1.ReasonReportMade))
	return f.document(ctx, r.Name)
}

// annotate sets an annotation of a CostReport; nil removes it.
func (f *fixture) annotate(ctx context.Context, r *v1beta1.CostReport, key string, value any) {
	GinkgoHelper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
	Expect(err).NotTo(HaveOccurred())
	Expect(f.Client.Patch(ctx, r, client.RawPatch("application/merge-patch+json", patch))).To(Succeed())
}

// document is what the specs look at in a report's JSON file.
type document struct {
	From, To time.Time
	Total    entry
	Rows     []entry
	Outcomes []struct {
		Name, Cost string
		Pods       int
	}
	Days []struct {
		From        time.Time
		Cost        string
		Utilization *float64
	}
	Notes []string
}

// entry is a row of it.
type entry struct {
	Dimension, Team, User, Task, Cost, AcceleratorHours string
	Utilization, Uncertain                              *float64
	Runs, Pods                                          int
}

// document reads the JSON file of the last report.
func (f *fixture) document(ctx context.Context, name string) document {
	GinkgoHelper()
	d := document{}
	Expect(json.Unmarshal([]byte(f.get(ctx, name+"/latest/report.json")), &d)).To(Succeed())
	return d
}

// costs are those of the rows of a dimension, by their name.
func (d *document) costs(dimension string) map[string]string {
	costs := map[string]string{}
	for _, row := range d.Rows {
		if row.Dimension == dimension {
			costs[map[string]string{"user": row.User, "team": row.Team, "task": row.Task}[dimension]] = row.Cost
		}
	}
	return costs
}

// status is that of the answer to a request for a file of a report, with a token.
func (f *fixture) status(ctx context.Context, g Gomega, path, token string) int {
	GinkgoHelper()
	response := f.ask(ctx, g, "reports/"+path, token)
	g.Expect(response.Body.Close()).To(Succeed())
	return response.StatusCode
}

// get reads a file of a report as somebody who may.
func (f *fixture) get(ctx context.Context, path string) string {
	GinkgoHelper()
	return f.getAs(ctx, "tideline-reports", "reports/"+path)
}

// getAs reads what the operator serves as somebody who has a role.
func (f *fixture) getAs(ctx context.Context, role, path string) string {
	GinkgoHelper()
	reader := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: "reader"}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader-" + role}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: rbac.Namespace, Name: "reader"}},
	}
	for _, o := range []client.Object{reader, binding} {
		Expect(client.IgnoreAlreadyExists(f.Client.Create(ctx, o))).To(Succeed())
	}
	token := &authenticationv1.TokenRequest{}
	Expect(f.Client.SubResource("token").Create(ctx, reader, token)).To(Succeed(), "there is a token")
	return f.download(ctx, path, token.Status.Token)
}

// download is what is served at a path to the bearer of a token, once it is.
func (f *fixture) download(ctx context.Context, path, token string) string {
	GinkgoHelper()
	var content []byte
	Eventually(func(g Gomega) {
		response := f.ask(ctx, g, path, token)
		var err error
		content, err = io.ReadAll(response.Body)
		g.Expect(response.Body.Close()).To(Succeed())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.StatusCode).To(Equal(http.StatusOK), "%s", content)
	}).Should(Succeed())
	return string(content)
}

// tokenOf makes an account that may read some paths, and is a token of it.
func (f *fixture) tokenOf(ctx context.Context, name string, paths ...string) string {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: name}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reads-" + name}}
	if len(paths) > 0 {
		role.Rules = []rbacv1.PolicyRule{{NonResourceURLs: paths, Verbs: []string{"get"}}}
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: rbac.Namespace, Name: name}},
	}
	for _, o := range []client.Object{account, role, binding} {
		Expect(f.Client.Create(ctx, o)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(f.Client.Delete(ctx, o)).To(Succeed()) })
	}
	token := &authenticationv1.TokenRequest{}
	Expect(f.Client.SubResource("token").Create(ctx, account, token)).To(Succeed(), "there is a token")
	return token.Status.Token
}

// ask asks the operator for what it serves. Its certificate is signed by nobody.
func (f *fixture) ask(ctx context.Context, g Gomega, path, token string) *http.Response {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+f.metrics+"/"+path, http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	insecure := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // the operator makes its certificate itself
	}}
	response, err := insecure.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	return response
}

// columns are those that `kubectl get` shows of a CostReport.
func (f *fixture) columns(ctx context.Context, name string) map[string]any {
	GinkgoHelper()
	asked, err := rest.HTTPClientFor(f.Config)
	Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.Config.Host+"/apis/tideline.io/v1beta1/costreports/"+name,
		http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := asked.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	table := &metav1.Table{}
	Expect(json.NewDecoder(response.Body).Decode(table)).To(Succeed())
	cells := map[string]any{}
	for i, column := range table.ColumnDefinitions {
		cells[column.Name] = table.Rows[0].Cells[i]
	}
	return cells
}
