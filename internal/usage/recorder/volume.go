package recorder

import (
	"context"
	"fmt"
	"os"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/platform/config"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=get

// Keeping is whether the ledger outlives the operator's pod.
type Keeping struct {
	// Known is false outside the cluster, where nothing says what becomes of a folder, and where the pod cannot be read.
	Known bool
	// Volatile is in one sentence why it is lost with the pod; empty if it is not.
	Volatile string
}

// FindKeeping asks of the operator's own pod where the ledger is. Namespace is empty outside the cluster. A database elsewhere
// outlives the pod.
func FindKeeping(ctx context.Context, reader client.Reader, namespace string, at config.Ledger) (Keeping, error) {
	switch {
	case !at.IsConfigured():
		return Keeping{}, nil
	case at.File == "":
		return Keeping{Known: true}, nil
	case namespace == "":
		return Keeping{}, nil
	}
	name, err := os.Hostname() // of the pod: kubelets set it
	if err != nil {
		return Keeping{}, fmt.Errorf("find the name of the operator's pod: %w", err)
	}
	pod := &corev1.Pod{}
	if err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod); err != nil {
		return Keeping{}, fmt.Errorf("read the operator's pod to see where the ledger is: %w", err)
	}
	return Keeping{Known: true, Volatile: whyVolatile(&pod.Spec, at.File)}, nil
}

// whyVolatile says why a file goes with the pod; empty if it does not. It is in the volume that is mounted nearest above it, in
// whichever container that is, because only the operator's mounts its folder.
func whyVolatile(pod *corev1.PodSpec, file string) string {
	nearest := corev1.VolumeMount{}
	for i := range pod.Containers {
		for _, mount := range pod.Containers[i].VolumeMounts {
			if isBelow(file, mount.MountPath) && len(mount.MountPath) > len(nearest.MountPath) {
				nearest = mount
			}
		}
	}
	for i := range pod.Volumes {
		v := &pod.Volumes[i]
		if v.Name != nearest.Name {
			continue
		}
		var kind string
		switch {
		case v.EmptyDir != nil:
			kind = "an emptyDir"
		case v.Ephemeral != nil:
			kind = "an ephemeral volume"
		case v.CSI != nil:
			kind = "a CSI volume of the pod's own"
		default:
			return ""
		}
		return fmt.Sprintf("The ledger (ledger.file) is lost with the operator's pod: its volume %s is %s.", v.Name, kind)
	}
	return "The ledger (ledger.file) is lost with the operator's container: no volume is mounted at its folder."
}

func isBelow(file, folder string) bool {
	return strings.HasPrefix(path.Clean(file), strings.TrimSuffix(path.Clean(folder), "/")+"/")
}
