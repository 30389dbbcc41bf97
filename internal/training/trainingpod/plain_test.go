package trainingpod

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

func plain() Blueprint {
	b := blueprint()
	b.Job.Spec.Framework.Type = v1beta1.FrameworkCustom
	b.Job.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "wait", Image: "w"}}
	return b
}

func names(env []corev1.EnvVar) []string {
	var all []string
	for _, v := range env {
		all = append(all, v.Name)
	}
	return all
}

func TestPlainPodKnowsNothingOfTorchrun(t *testing.T) {
	g := NewWithT(t)
	pod := plain().NewPod(1)
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		for _, name := range names(c.Env) {
			g.Expect(strings.HasPrefix(name, "PET_") || strings.HasPrefix(name, "TORCH")).To(BeFalse(), name)
		}
		g.Expect(names(c.Env)).To(ContainElements("VC_TASK_INDEX", "VC_MASTER_HOSTS", "VC_WORKER_NUM"), c.Name)
		g.Expect(c.VolumeMounts).To(ConsistOf(
			corev1.VolumeMount{Name: "tideline-hosts", MountPath: "/etc/tideline", ReadOnly: true},
			corev1.VolumeMount{Name: "tideline-hosts", MountPath: "/etc/volcano", ReadOnly: true},
		), c.Name)
	}
	g.Expect(pod.Spec.ShareProcessNamespace).To(BeNil(), "only torchrun needs it")
	g.Expect(pod.Spec.Volumes).To(HaveLen(1))
	g.Expect(pod.Spec.Volumes[0].ConfigMap.Name).To(Equal("ctr-hosts"))
}

func TestPlainPodKeepsWhatTheUserSet(t *testing.T) {
	g := NewWithT(t)
	b := plain()
	trainer := &b.Job.Spec.Template.Spec.Containers[1]
	trainer.Env = []corev1.EnvVar{{Name: "RANK", Value: "7"}, {Name: "JAX_NUM_PROCESSES", Value: "9"}}
	trainer.VolumeMounts = []corev1.VolumeMount{{Name: "mine", MountPath: "/etc/volcano"}}
	made := b.NewPod(0).Spec.Containers[1]
	g.Expect(made.Env[:2]).To(Equal(trainer.Env))
	g.Expect(names(made.Env[2:])).NotTo(ContainElement("JAX_NUM_PROCESSES"))
	g.Expect(made.VolumeMounts).To(Equal([]corev1.VolumeMount{
		trainer.VolumeMounts[0], {Name: "tideline-hosts", MountPath: "/etc/tideline", ReadOnly: true},
	}))
}

func TestHostsCountSlotsOfEachWorker(t *testing.T) {
	g := NewWithT(t)
	b := plain()
	own := limits("nvidia.com/gpu", "4")
	b.Job.Spec.Master = &v1beta1.Master{Resources: &own}
	g.Expect(b.HostFiles([]int32{3})["hostfile"]).To(Equal("ctr-worker-0.ctr-workers slots=4\nctr-worker-1.ctr-workers slots=1\n" +
		"ctr-worker-3.ctr-workers slots=1\n"))
	b.Attempt.NprocPerNode = 2
	g.Expect(b.HostFiles(nil)["hostfile"]).To(Equal("ctr-worker-0.ctr-workers slots=2\nctr-worker-1.ctr-workers slots=2\n"))
	m := b.HostsMap(b.HostFiles(nil))
	g.Expect(m.Name).To(Equal("ctr-hosts"))
	g.Expect(m.Labels).To(HaveKeyWithValue("tideline.io/job", "ctr"))
	g.Expect(m.OwnerReferences[0].UID).To(BeEquivalentTo("u-1"))
}

func TestSSHKeysAreMountedForTheTrainingAlone(t *testing.T) {
	g := NewWithT(t)
	b := plain()
	b.Job.Spec.Framework.SSH = v1beta1.SSHKeyPair
	pod, secret := b.NewPod(0), b.SSHSecret([]byte("private"), []byte("public"))
	volume := pod.Spec.Volumes[1].Secret
	g.Expect(volume.SecretName).To(Equal(secret.Name))
	g.Expect(*volume.DefaultMode).To(Equal(int32(0o400)))
	for _, item := range volume.Items {
		g.Expect(secret.Data).To(HaveKey(item.Key))
	}
	g.Expect(pod.Spec.Containers[1].VolumeMounts).To(ContainElement(
		corev1.VolumeMount{Name: "tideline-ssh", MountPath: "/etc/tideline/ssh", ReadOnly: true}))
	g.Expect(pod.Spec.Containers[0].VolumeMounts).To(HaveLen(2), "a sidecar logs in nowhere")
	g.Expect(secret.Type).To(Equal(corev1.SecretTypeSSHAuth))
	g.Expect(secret.OwnerReferences[0].UID).To(BeEquivalentTo("u-1"))
	b.Job.UID = "u-2"
	g.Expect(b.SSHSecret(nil, nil).Name).NotTo(Equal(secret.Name), "another job of the name has a Secret of its own")
}
