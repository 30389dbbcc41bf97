package convert

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
	batch "volcano.sh/apis/pkg/apis/batch/v1alpha1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// input is an object of a file, or why it could not be read.
type input struct {
	// where names it to people: by its file, and by its kind and name once they are known.
	where string
	// object is what it holds: a job, or what jobs refer to. Nil if why is set.
	object runtime.Object
	why    string
}

// kind is a kind of objects that is read.
type kind struct {
	schema.GroupVersionKind
	// make returns an empty object.
	make func() runtime.Object
	// convert returns the ElasticTrainingJob of an object of the kind, or nil, and what is said of it. A kind without it is only
	// referred to.
	convert func(runtime.Object, *references) (*v1beta1.ElasticTrainingJob, []Note)
}

// kinds are those that are read, in the order in which people read them.
var kinds = []kind{
	{
		kubeflowv1.SchemeGroupVersion.WithKind(kubeflowv1.PyTorchJobKind),
		func() runtime.Object { return &kubeflowv1.PyTorchJob{} },
		func(o runtime.Object, _ *references) (*v1beta1.ElasticTrainingJob, []Note) {
			return FromPyTorchJob(o.(*kubeflowv1.PyTorchJob))
		},
	},
	{
		batch.SchemeGroupVersion.WithKind("Job"),
		func() runtime.Object { return &batch.Job{} },
		func(o runtime.Object, _ *references) (*v1beta1.ElasticTrainingJob, []Note) {
			return FromVolcanoJob(o.(*batch.Job))
		},
	},
	{
		mpiVersion.WithKind(mpiKind),
		func() runtime.Object { return &MPIJob{} },
		func(o runtime.Object, _ *references) (*v1beta1.ElasticTrainingJob, []Note) {
			return FromMPIJob(o.(*MPIJob))
		},
	},
	{
		trainerVersion.WithKind(trainJobKind),
		func() runtime.Object { return &TrainJob{} },
		func(o runtime.Object, refs *references) (*v1beta1.ElasticTrainingJob, []Note) {
			job := o.(*TrainJob)
			used, missing := refs.runtimeOf(job)
			if missing != nil {
				return nil, []Note{*missing}
			}
			return FromTrainJob(job, used)
		},
	},
	{trainerVersion.WithKind(runtimeKind), func() runtime.Object { return &TrainingRuntime{} }, nil},
	{trainerVersion.WithKind(clusterRuntimeKind), func() runtime.Object { return &TrainingRuntime{} }, nil},
}

// convertible lists the kinds that are converted, as in "A (a/v1), B (b/v1) and C (c/v1)".
func convertible() string {
	var names []string
	for _, k := range kinds {
		if k.convert != nil {
			names = append(names, k.name())
		}
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

func (k kind) name() string { return k.Kind + " (" + k.GroupVersion().String() + ")" }

// reader reads documents from files.
type reader struct {
	documents []input
}

func (r *reader) fail(where, why string) {
	r.documents = append(r.documents, input{where: where, why: why})
}

// file reads every document of a file; - is stdin.
func (r *reader) file(name string, stdin io.Reader) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			r.fail(name, err.Error())
			return
		}
		defer func() { _ = f.Close() }()
		in = f
	} else {
		name = "standard input"
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(in))
	for found := 0; ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			if found == 0 {
				r.fail(name, "it holds no document")
			}
			return
		}
		if err != nil {
			r.fail(name, err.Error())
			return
		}
		if isBlank(document) {
			continue
		}
		found++
		r.document(fmt.Sprintf("%s: document %d", name, found), name, document)
	}
}

// isBlank is whether a document has comments and separators only.
func isBlank(document []byte) bool {
	for line := range bytes.Lines(document) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) {
			return false
		}
	}
	return true
}

// head is what tells documents apart.
type head struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Items []runtime.RawExtension `json:"items"`
}

// document reads an object, or each of a list. It is called by its number until its name is known.
func (r *reader) document(where, file string, content []byte) {
	var h head
	if err := yaml.Unmarshal(content, &h); err != nil {
		r.fail(where, err.Error())
		return
	}
	isList := h.APIVersion == "v1" && h.Kind == "List" || slices.ContainsFunc(kinds, func(k kind) bool {
		return h.APIVersion == k.GroupVersion().String() && h.Kind == k.Kind+"List"
	})
	if isList {
		for i, item := range h.Items {
			r.document(fmt.Sprintf("%s: item %d", where, i+1), file, item.Raw)
		}
		return
	}
	i := slices.IndexFunc(kinds, func(k kind) bool { return h.APIVersion == k.GroupVersion().String() && h.Kind == k.Kind })
	if i < 0 {
		r.fail(where, unknownKind(&h))
		return
	}
	if name := h.fullName(); name != "" {
		where = file + ": " + h.Kind + " " + plainOrQuoted(name)
	}
	object := kinds[i].make()
	if err := decode(content, object); err != nil {
		r.fail(where, err.Error())
		return
	}
	r.documents = append(r.documents, input{where: where, object: object})
}

// fullName is namespace and name; empty without a name.
func (h *head) fullName() string {
	if h.Metadata.Namespace != "" && h.Metadata.Name != "" {
		return h.Metadata.Namespace + "/" + h.Metadata.Name
	}
	return h.Metadata.Name
}

// unknownKind says why a document is not converted that is of no kind that is read, and what to do.
func unknownKind(h *head) string {
	is := fmt.Sprintf("it is %s %s (%s), and only ", show(h.Kind), show(h.Metadata.Name), show(h.APIVersion))
	group := schema.FromAPIVersionAndKind(h.APIVersion, h.Kind).Group
	for _, k := range kinds {
		if k.Kind == h.Kind && k.Group == group {
			return is + k.name() + " is converted; write it in that version"
		}
	}
	return is + convertible() + " are converted; leave it out"
}

// decode reads an object and refuses fields that its kind does not have, by name.
func decode(content []byte, into runtime.Object) error {
	scheme := runtime.NewScheme()
	for _, k := range kinds {
		scheme.AddKnownTypeWithName(k.GroupVersionKind, k.make())
	}
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme,
		json.SerializerOptions{Yaml: true, Strict: true})
	_, _, err := strict.Decode(content, nil, into)
	return err
}
