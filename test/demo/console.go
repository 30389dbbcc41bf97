package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/test/testutil"
)

// reader is the ServiceAccount, in namespace default, that may open the console of a demo and list what it shows.
const reader = "reader"

// consoleParts are the roles of components monitoring and console, as they are installed.
var consoleParts = []string{"components/monitoring/rbac.yaml", "components/console/role.yaml"}

// installConsole gives the operator the right to ask who reads its console, and an account all that the console shows.
func installConsole(ctx context.Context, w *testutil.World) error {
	roles, err := testutil.Manifests(ctx, consoleParts...)
	if err != nil {
		return err
	}
	var all []client.Object
	for _, role := range roles {
		all = append(all, role)
	}
	named := metav1.ObjectMeta{Name: reader}
	all = append(all,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: reader}},
		&rbacv1.ClusterRole{ObjectMeta: named, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}},
		}})
	for _, role := range []string{"tideline-console", "tideline-view", reader} {
		all = append(all, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: reader + "-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: reader}},
		})
	}
	for _, o := range all {
		if err := w.Client.Create(ctx, o); err != nil {
			return fmt.Errorf("install what the console needs: %w", err)
		}
	}
	return nil
}

// console is the address of the pages that the operator serves.
func (s *stage) console() string { return "https://" + s.served + "/console/" }

// signIn is the command that prints a token for the console, in any folder.
func (s *stage) signIn() string {
	return fmt.Sprintf("KUBECONFIG=%s %s create token %s", s.cluster.KubeconfigPath(), s.kubectl, reader)
}

// showConsole says where the console is and how to get in, before the story begins.
func (s *stage) showConsole(out *printer) {
	out.quoting = true
	out.lines("", "Console: "+s.console())
	out.quoting = false
	out.note("It shows in a browser what follows, as it happens. Its certificate is its own, of which the browser warns. Sign in " +
		"with the token that this prints in another terminal:")
	out.lines("", "  "+s.signIn())
}
