package trainingpod

import (
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/tideline-io/tideline/api/v1beta1"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// Where workers without torchrun find their files. Images made for Volcano Jobs look in Volcano's folder.
const (
	filesPath   = "/etc/tideline"
	volcanoPath = "/etc/volcano"
	sshPath     = filesPath + "/ssh"

	hostsVolume = "tideline-hosts"
	sshVolume   = "tideline-ssh"
	// sshMode is the mode of a private key that ssh accepts: readable by its owner alone.
	sshMode = 0o400
)

// Keys of the Secret. Their files have the names that ssh and sshd know.
const (
	sshPrivateKey     = corev1.SSHAuthPrivateKey
	sshPublicKey      = "ssh-publickey"
	sshAuthorizedKeys = "authorized_keys"
	sshConfig         = "config"
)

// preparePlain gives all containers of a worker without torchrun the list of hosts, and the training container its key pair.
func (b Blueprint) preparePlain(pod *corev1.Pod, i int32) {
	vars := rendezvous.PlainEnv(b.Job, b.Attempt, i)
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for c := range containers {
			containers[c].Env = append(containers[c].Env, rendezvous.MissingVars(vars, containers[c].Env)...)
			MountVolume(&containers[c], hostsVolume, filesPath)
			MountVolume(&containers[c], hostsVolume, volcanoPath)
		}
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: hostsVolume, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: rendezvous.HostsName(b.Job.Name)}, Items: rendezvous.HostItems(b.Job),
		},
	}})
	if b.Job.Spec.Framework.SSH != v1beta1.SSHKeyPair {
		return
	}
	MountVolume(&pod.Spec.Containers[rendezvous.TrainerIndex(pod.Spec.Containers)], sshVolume, sshPath)
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: sshVolume, VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{
			SecretName: b.sshName(), DefaultMode: ptr.To[int32](sshMode),
			Items: []corev1.KeyToPath{
				{Key: sshPrivateKey, Path: "id_ed25519"}, {Key: sshPublicKey, Path: "id_ed25519.pub"},
				{Key: sshAuthorizedKeys, Path: "authorized_keys"}, {Key: sshConfig, Path: "config"},
			},
		},
	}})
}

// MountVolume mounts a volume read-only, unless the user has mounted something at that path.
func MountVolume(c *corev1.Container, volume, path string) {
	if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == path }) {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: path, ReadOnly: true})
	}
}

// HostFiles is the content of the job's ConfigMap of hosts: the whole core, whose names hold while a worker is created again,
// and the surplus of these rising indices.
func (b Blueprint) HostFiles(surplus []int32) map[string]string {
	indices := make([]int32, 0, int(b.Attempt.MinReplicas)+len(surplus))
	for i := range b.Attempt.MinReplicas {
		indices = append(indices, i)
	}
	slots := func(i int32) int64 {
		containers := WorkerSpec(b.Job, nil, "", i).Containers
		trainer := &containers[rendezvous.TrainerIndex(containers)]
		return rendezvous.ProcessesPerWorker(b.Attempt, trainer, b.Claims.CountFor(trainer).Devices)
	}
	master, others := slots(0), slots(Ordinary)
	return rendezvous.HostFiles(b.Job, append(indices, surplus...), b.Attempt.MaxReplicas, func(i int32) int64 {
		if i == 0 {
			return master
		}
		return others
	})
}

// HostsMap is the ConfigMap with these data.
func (b Blueprint) HostsMap(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: b.objectMeta(rendezvous.HostsName(b.Job.Name)), Data: data}
}

// SSHSecret is the Secret with a key pair, in OpenSSH's formats.
func (b Blueprint) SSHSecret(private, public []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: b.objectMeta(b.sshName()), Type: corev1.SecretTypeSSHAuth, Immutable: ptr.To(true),
		Data: map[string][]byte{
			sshPrivateKey: private, sshPublicKey: public, sshAuthorizedKeys: public,
			// A worker that is created again has a new host key under its old name, so keys are not checked.
			sshConfig: []byte("StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n" +
				"IdentityFile " + sshPath + "/id_ed25519\n"),
		},
	}
}

// sshName is the name of that Secret.
func (b Blueprint) sshName() string { return b.unreadName("ssh") }

// unreadName is the name of an object that the operator may create but not read. It includes a hash of the job's UID, so that an
// object of that name is this job's own.
func (b Blueprint) unreadName(what string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(b.Job.UID)) // A hash cannot fail to be written.
	return fmt.Sprintf("%s-%s-%08x", b.Job.Name, what, h.Sum32())
}

// objectMeta is the metadata of an object of the job.
func (b Blueprint) objectMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: b.Job.Namespace, Name: name, Labels: b.jobLabels(), OwnerReferences: []metav1.OwnerReference{b.ownerReference()},
	}
}
