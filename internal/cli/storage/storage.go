// Package storage is the command by which an administrator has every object stored in the version of the API that the definitions
// name for it, so that a release without the versions before can be installed.
package storage

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/cli"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// timeout bounds each request.
const timeout = 30 * time.Second

// most is how many objects that could not be rewritten are named for each kind.
const most = 10

const long = `Rewrites all objects of Tideline's kinds that may be stored in an earlier version of the API, without a change, and
then takes the earlier versions off the lists of stored versions (status.storedVersions of the CustomResourceDefinitions).
Needed where "tideline doctor" says so, before a release that does not have the earlier version. Jobs train on. Run it as a
user who may list and patch all objects of the kinds, and update customresourcedefinitions/status.

Exit code: 0 when all objects are stored in the current version; 1 when not, and why is on standard error; 2 when the
command is wrong.`

// Command is `tideline migrate-storage`. Definitions are the names of the CustomResourceDefinitions.
func Command(connection *cli.Connection, definitions []string) *cobra.Command {
	var output cli.Output
	cmd := &cobra.Command{
		Use:               "migrate-storage",
		Short:             "Store all objects in the current version of the API",
		Long:              long,
		Example:           "  tideline migrate-storage",
		Args:              cli.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := connection.Client(timeout)
			if err != nil {
				return err
			}
			done := []Migrated{} // An empty list in JSON, and not null.
			failed := false
			for _, name := range definitions {
				m, err := migrate(cmd.Context(), c, name)
				if err != nil {
					failed = true
					cli.Tell(cmd.ErrOrStderr(), text.SingleLine(fmt.Sprintf("%s: %v", name, err))+"\n")
					continue
				}
				done = append(done, m)
			}
			if err := tell(cmd.OutOrStdout(), output, done); err != nil {
				return err
			}
			if failed {
				return cli.Exit(cli.ExitFailed)
			}
			return nil
		},
	}
	connection.AddFlags(cmd)
	output.AddFlag(cmd)
	return cli.ForClusters(cmd)
}

// Migrated is what was done for one kind.
type Migrated struct {
	// Definition is the name of the CustomResourceDefinition.
	Definition string `json:"definition"`
	// Version is the one in which all objects are stored now, and Former those in which some may have been before.
	Version string   `json:"version"`
	Former  []string `json:"former,omitempty"`
	// Objects is how many were rewritten.
	Objects int `json:"objects"`
}

func tell(to io.Writer, output cli.Output, done []Migrated) error {
	if output.JSON() {
		return cli.PrintJSON(to, done)
	}
	for _, m := range done {
		said := "all objects were stored in " + m.Version + " already."
		if len(m.Former) > 0 {
			said = fmt.Sprintf("all %d objects are stored in %s now, and %s is off the list of stored versions.",
				m.Objects, m.Version, strings.Join(m.Former, " and "))
		}
		cli.Tell(to, m.Definition+": "+said+"\n")
	}
	return nil
}

// StoredVersions are the version in which the API server stores objects of a definition, and others in which some may be stored
// still. The definition is a CustomResourceDefinition as the API server has it.
func StoredVersions(definition *unstructured.Unstructured) (current string, former []string, err error) {
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil {
		return "", nil, fmt.Errorf("read the versions of %s: %w", definition.GetName(), err)
	}
	for _, each := range versions {
		if version, ok := each.(map[string]any); ok && version["storage"] == true {
			current, _ = version["name"].(string)
		}
	}
	if current == "" {
		return "", nil, fmt.Errorf("CustomResourceDefinition %s names no version for storage", definition.GetName())
	}
	// Null until the API server has seen the definition.
	list, _, _ := unstructured.NestedFieldNoCopy(definition.Object, "status", "storedVersions")
	stored, _ := list.([]any)
	for _, each := range stored {
		if version, ok := each.(string); ok && version != current {
			former = append(former, version)
		}
	}
	return current, former, nil
}

// definitionKind is that of kinds.
var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// migrate has all objects of one kind stored in its current version.
func migrate(ctx context.Context, c client.Client, name string) (Migrated, error) {
	m := Migrated{Definition: name}
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(definitionKind)
	if err := c.Get(ctx, client.ObjectKey{Name: name}, definition); err != nil {
		return m, err
	}
	var err error
	if m.Version, m.Former, err = StoredVersions(definition); err != nil || len(m.Former) == 0 {
		return m, err
	}
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	if m.Objects, err = rewrite(ctx, c, schema.GroupVersionKind{Group: group, Version: m.Version, Kind: kind}); err != nil {
		return m, fmt.Errorf("the list of stored versions stays as it is: %w", err)
	}
	// With the resource version of before: if the definition has changed meanwhile, what was rewritten may be in another version.
	if err := unstructured.SetNestedStringSlice(definition.Object, []string{m.Version}, "status", "storedVersions"); err != nil {
		return m, err
	}
	if err := c.Status().Update(ctx, definition); err != nil {
		return m, fmt.Errorf("take %s off the list of stored versions: %w", strings.Join(m.Former, " and "), err)
	}
	return m, nil
}

// rewrite has the API server write each object once more, in the version in which it stores them: a patch without a change does
// that where the stored bytes would differ. Objects that are created meanwhile are stored in that version anyway.
func rewrite(ctx context.Context, c client.Client, kind schema.GroupVersionKind) (objects int, err error) {
	// All names first, because the list's pages are forgotten after some minutes.
	var all []metav1.PartialObjectMetadata
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := cli.ListPages(ctx, c, list, func(o client.Object) {
		all = append(all, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()}})
	}); err != nil {
		return 0, fmt.Errorf("list all objects: %w", err)
	}
	var refused []string
	for i := range all {
		o := &all[i]
		o.SetGroupVersionKind(kind)
		key := client.ObjectKeyFromObject(o)
		switch err := c.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte("{}"))); {
		case err == nil:
			objects++
		case !apierrors.IsNotFound(err):
			refused = append(refused, fmt.Sprintf("%s (%v)", strings.TrimPrefix(key.String(), "/"), err))
		}
	}
	if len(refused) > 0 {
		more := ""
		if len(refused) > most {
			more = fmt.Sprintf(" and %d others", len(refused)-most)
		}
		return objects, fmt.Errorf("%d of %d objects were not rewritten: %s%s; mend or delete them, and run this again",
			len(refused), len(all), strings.Join(refused[:min(len(refused), most)], ", "), more)
	}
	return objects, nil
}
