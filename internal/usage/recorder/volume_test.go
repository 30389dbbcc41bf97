package recorder

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tideline-io/tideline/internal/platform/config"
)

func TestWhetherTheLedgerOutlivesThePod(t *testing.T) {
	name, err := os.Hostname()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	claim := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "tideline-ledger"}}
	scratch := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	file := config.Ledger{File: "/var/lib/tideline/ledger/ledger.db"}
	for words, c := range map[string]struct {
		at     config.Ledger
		mounts map[string]corev1.VolumeSource
		known  bool
		says   string
	}{
		"on a claim":     {at: file, mounts: map[string]corev1.VolumeSource{"/var/lib/tideline": claim}, known: true},
		"in an emptyDir": {file, map[string]corev1.VolumeSource{"/var/lib/tideline": scratch}, true, "is an emptyDir"},
		"an emptyDir on the claim": {
			file, map[string]corev1.VolumeSource{"/var/lib": claim, "/var/lib/tideline/": scratch}, true, "emptyDir",
		},
		"a claim in the emptyDir": {
			at: file, mounts: map[string]corev1.VolumeSource{"/": scratch, "/var/lib/tideline": claim}, known: true,
		},
		"a claim of the pod's own": {
			file, map[string]corev1.VolumeSource{"/var/lib/tideline": {Ephemeral: &corev1.EphemeralVolumeSource{}}}, true, "ephemeral",
		},
		"on the node": {
			at: file, mounts: map[string]corev1.VolumeSource{"/var": {HostPath: &corev1.HostPathVolumeSource{}}}, known: true,
		},
		"beside all volumes": {file, map[string]corev1.VolumeSource{"/var/lib/tide": claim}, true, "no volume"},
		"in PostgreSQL": {
			at: config.Ledger{PostgresDSNFile: "/etc/dsn"}, mounts: map[string]corev1.VolumeSource{"/etc": scratch}, known: true,
		},
		"nowhere": {},
	} {
		t.Run(words, func(t *testing.T) {
			g := NewWithT(t)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "tideline-system", Name: name}}
			pod.Spec.Containers = []corev1.Container{{Name: "proxy"}, {Name: "manager"}}
			for folder, source := range c.mounts {
				volume := "volume-at-" + folder
				pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volume, VolumeSource: source})
				pod.Spec.Containers[1].VolumeMounts = append(pod.Spec.Containers[1].VolumeMounts,
					corev1.VolumeMount{Name: volume, MountPath: folder})
			}
			reader := fake.NewClientBuilder().WithObjects(client.Object(pod)).Build()
			found, err := FindKeeping(t.Context(), reader, "tideline-system", c.at)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.Known).To(Equal(c.known))
			if c.says == "" {
				g.Expect(found.Volatile).To(BeEmpty())
			} else {
				g.Expect(found.Volatile).To(ContainSubstring(c.says))
			}
			g.Expect(FindKeeping(t.Context(), reader, "", file)).To(Equal(Keeping{}), "outside the cluster nothing is known")
			_, err = FindKeeping(t.Context(), reader, "elsewhere", file)
			g.Expect(err).To(MatchError(ContainSubstring("read the operator's pod")))
		})
	}
}
