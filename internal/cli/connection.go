package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// completionTimeout bounds what a shell waits for names of jobs and namespaces.
const completionTimeout = 3 * time.Second

// Connection is how a command finds the cluster, the user and the namespace: by kubectl's flags, and without them as kubectl
// does.
// All commands share one, as one of them runs.
type Connection struct {
	scheme                         func() (*runtime.Scheme, error)
	kubeconfig, context, namespace string
	// connected is used instead of a cluster of a kubeconfig, by tests.
	connected client.Client
}

// NewConnection returns the connection of clients that know the kinds of a scheme.
func NewConnection(scheme func() (*runtime.Scheme, error)) *Connection {
	return &Connection{scheme: scheme}
}

// Connected is a connection to what a test has instead of a cluster.
func Connected(c client.Client) *Connection { return &Connection{connected: c} }

// AddFlags adds --kubeconfig and --context.
func (c *Connection) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.kubeconfig, "kubeconfig", "", "`file` with the cluster and who you are; default: KUBECONFIG, "+
		"~/.kube/config, or the pod's own account")
	cmd.Flags().StringVar(&c.context, "context", "", "`name` of a context of the kubeconfig; default: its current one")
	_ = cmd.RegisterFlagCompletionFunc("context", c.completeContexts)
}

// AddNamespaceFlag adds -n.
func (c *Connection) AddNamespaceFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&c.namespace, "namespace", "n", "", "`name` of the namespace; default: that of the context")
	_ = cmd.RegisterFlagCompletionFunc("namespace", c.completeNamespaces)
}

func (c *Connection) load() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath, rules.WarnIfAllMissing = c.kubeconfig, false
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.context}
	overrides.Context.Namespace = c.namespace
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
}

// Config says where the cluster is and who asks it. Requests are not limited on this side: the API server does that.
func (c *Connection) Config() (*rest.Config, error) {
	config, err := c.load().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find a cluster (set KUBECONFIG, or run in one): %w", err)
	}
	if config.QPS == 0 {
		config.QPS = -1
	}
	return config, nil
}

// Client connects to the cluster; no request takes longer than the timeout.
func (c *Connection) Client(timeout time.Duration) (client.Client, error) {
	return c.ClientThatHears(timeout, nil)
}

// ClientThatHears is Client, where heard gets the warnings of the API server; nil for standard error.
func (c *Connection) ClientThatHears(timeout time.Duration, heard rest.WarningHandler) (client.Client, error) {
	if c.connected != nil {
		return c.connected, nil
	}
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	config.Timeout, config.WarningHandler = timeout, heard
	scheme, err := c.scheme()
	if err != nil {
		return nil, err
	}
	connected, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the API server at %s: %w", config.Host, err)
	}
	return connected, nil
}

// Name reads the one argument of a command, the name of a job or task: NAME in the namespace of -n or of the context, or
// NAMESPACE/NAME.
func (c *Connection) Name(what string, args []string) (types.NamespacedName, error) {
	switch {
	case len(args) == 0:
		return types.NamespacedName{}, Usagef("name one %s: NAME with -n NAMESPACE, or NAMESPACE/NAME", what)
	case len(args) > 1:
		return types.NamespacedName{}, Usagef("%q is too much: name one %s at a time", args[1], what)
	}
	namespace, name, qualified := strings.Cut(args[0], "/")
	if !qualified {
		namespace, name = c.namespace, args[0]
	}
	if name == "" || strings.Contains(name, "/") || qualified && namespace == "" {
		return types.NamespacedName{}, Usagef("%q: name one %s: NAME with -n NAMESPACE, or NAMESPACE/NAME", args[0], what)
	}
	if qualified && c.namespace != "" && c.namespace != namespace {
		return types.NamespacedName{}, Usagef("%q is in another namespace than -n %s: leave one out", args[0], c.namespace)
	}
	if namespace == "" {
		var err error
		if namespace, err = c.FindNamespace(); err != nil {
			return types.NamespacedName{}, err
		}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// FindNamespace is that of -n or of the context.
func (c *Connection) FindNamespace() (string, error) {
	if c.namespace != "" {
		return c.namespace, nil
	}
	namespace, _, err := c.load().Namespace()
	if err != nil {
		return "", fmt.Errorf("find your namespace (name it by -n): %w", err)
	}
	return namespace, nil
}

// NamespaceOf is the namespace of an object that a file names: that of -n, which must not differ from its own, or that of the
// context.
func (c *Connection) NamespaceOf(o client.Object) (string, error) {
	own := o.GetNamespace()
	switch {
	case own != "" && c.namespace != "" && own != c.namespace:
		return own, fmt.Errorf("it is in another namespace than -n %s: leave one out", c.namespace)
	case own != "":
		return own, nil
	}
	return c.FindNamespace()
}

// CompleteJobs offers a shell the trainings and merges of the namespace.
func (c *Connection) CompleteJobs(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	namespace, _, err := c.load().Namespace()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	kinds := []schema.GroupVersionKind{
		v1beta1.GroupVersion.WithKind(v1beta1.ElasticTrainingJobKind), v1beta1.GroupVersion.WithKind(v1beta1.MergeJobKind),
	}
	return c.names(cmd.Context(), kinds, client.InNamespace(namespace))
}

func (c *Connection) completeNamespaces(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return c.names(cmd.Context(), []schema.GroupVersionKind{{Version: "v1", Kind: "Namespace"}})
}

func (c *Connection) completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	config, err := c.load().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return slices.Sorted(maps.Keys(config.Contexts)), cobra.ShellCompDirectiveNoFileComp
}

// names lists the objects of some kinds. It gives up after the timeout: the client asks first what the API server serves, and
// each of these requests has a timeout of its own.
func (c *Connection) names(
	ctx context.Context, kinds []schema.GroupVersionKind, in ...client.ListOption,
) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	var names []string
	var directive cobra.ShellCompDirective
	listed := make(chan struct{})
	go func() {
		defer close(listed)
		names, directive = c.list(ctx, kinds, in...)
	}()
	select {
	case <-listed:
		return names, directive
	case <-ctx.Done():
		return nil, cobra.ShellCompDirectiveError
	}
}

func (c *Connection) list(
	ctx context.Context, kinds []schema.GroupVersionKind, in ...client.ListOption,
) ([]string, cobra.ShellCompDirective) {
	connected, err := c.Client(completionTimeout)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if connected.List(ctx, list, in...) != nil {
			continue // A user may be allowed to list one kind and not the other.
		}
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}

// pageSize is how many objects a list asks for at a time. Some weigh half a megabyte.
const pageSize = 100

// ListPages lists all objects of a list's kind, page by page, and shows each. The API server forgets pages after some minutes, so
// that each must be quick. The list itself stays as it is.
func ListPages(
	ctx context.Context, c client.Client, list client.ObjectList, show func(client.Object), in ...client.ListOption,
) error {
	for token, more := "", true; more; more = token != "" {
		// JSON leaves what it does not name as the page before had it: the token after the last page, and fields of objects.
		page, ok := list.DeepCopyObject().(client.ObjectList)
		if !ok {
			return fmt.Errorf("%T is no list", list)
		}
		options := slices.Concat([]client.ListOption{client.Limit(pageSize), client.Continue(token)}, in)
		if err := c.List(ctx, page, options...); err != nil {
			return err
		}
		token = page.GetContinue()
		if err := meta.EachListItem(page, func(o runtime.Object) error {
			object, ok := o.(client.Object)
			if !ok {
				return fmt.Errorf("%T is no object", o)
			}
			show(object)
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}
