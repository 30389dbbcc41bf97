package olm

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/tideline-io/tideline/test/testutil"
)

// thisRoot is the source tree that is tested.
const thisRoot = "../.."

// csvFile is where a bundle has its ClusterServiceVersion.
const csvFile = "manifests/tideline.clusterserviceversion.yaml"

// bundle is a bundle of Tideline.
type bundle struct {
	folder  string
	csv     string // the name of its ClusterServiceVersion
	version string
	objects []*unstructured.Unstructured
}

// bundleOf reads the bundle of a source tree.
func bundleOf(root string) bundle {
	GinkgoHelper()
	folder, err := filepath.Abs(filepath.Join(root, "bundle"))
	Expect(err).NotTo(HaveOccurred(), "the bundle has a path")
	return readBundle(folder)
}

func readBundle(folder string) bundle {
	GinkgoHelper()
	b := bundle{folder: folder}
	files, err := filepath.Glob(filepath.Join(folder, "manifests", "*.yaml"))
	Expect(err).NotTo(HaveOccurred(), "the bundle is read")
	for _, file := range files {
		content, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred(), "%s is read", file)
		objects, err := testutil.ParseObjects(content)
		Expect(err).NotTo(HaveOccurred(), "%s has objects", file)
		b.objects = append(b.objects, objects...)
	}
	for _, o := range b.objects {
		if o.GetKind() == "ClusterServiceVersion" {
			b.csv = o.GetName()
			b.version, _, err = unstructured.NestedString(o.Object, "spec", "version")
			Expect(err).NotTo(HaveOccurred(), "%s has a version", b.csv)
		}
	}
	Expect(b.csv).To(Equal(packageName+".v"+b.version), "the bundle says which version it is")
	return b
}

// above is the bundle as `make bundle VERSION=...` makes it for the next minor version above that of another bundle: between
// releases both have the same.
func (b bundle) above(other bundle) bundle {
	GinkgoHelper()
	newest, err := version.ParseSemantic(other.version)
	Expect(err).NotTo(HaveOccurred(), "%s is a version", other.version)
	next := newest.WithMinor(newest.Minor() + 1).String()
	folder := GinkgoT().TempDir()
	Expect(os.CopyFS(folder, os.DirFS(b.folder))).To(Succeed(), "the bundle is copied")
	content, err := os.ReadFile(filepath.Join(folder, csvFile))
	Expect(err).NotTo(HaveOccurred(), "its ClusterServiceVersion is read")
	// Its name, the operator's image, and the version itself.
	changed := strings.NewReplacer("v"+b.version, "v"+next, "\n  version: "+b.version, "\n  version: "+next).Replace(string(content))
	Expect(os.WriteFile(filepath.Join(folder, csvFile), []byte(changed), 0o600)).To(Succeed(), "and written")
	renamed := readBundle(folder)
	Expect(renamed.version).To(Equal(next), "it is the next version")
	return renamed
}
