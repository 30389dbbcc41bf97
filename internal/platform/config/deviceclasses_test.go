package config

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestDeviceClasses(t *testing.T) {
	g := NewWithT(t)
	load := func(lines string) (*Configuration, error) {
		return Load("c.yaml", []byte("apiVersion: config.tideline.io/v1alpha1\nkind: Configuration\n"+lines))
	}
	cfg, err := load("deviceClasses: {gpu.amd.com: amd.com/gpu, nic.example.com: '', mig.nvidia.com: nvidia.com/mig-1g.10gb}\n" +
		"sharing: [{resource: nvidia.com/mig-1g.10gb, countsAs: nvidia.com/gpu, whole: 7}]\n")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cfg.DeviceClasses).To(Equal(DeviceClasses{
		"gpu.nvidia.com": "nvidia.com/gpu", "gpu.amd.com": "amd.com/gpu", "nic.example.com": "",
		"mig.nvidia.com": "nvidia.com/mig-1g.10gb",
	}), "they are added to the built-in ones")
	_, err = load("deviceClasses: {Gpu_1: nvidia.com/gpu, gpu.example.com: example.com/gpu}\n")
	g.Expect(err).To(MatchError(And(
		ContainSubstring(`deviceClasses["Gpu_1"] does not name a DeviceClass: write it as the cluster does, `+
			`for example npu.example.com`),
		ContainSubstring(`deviceClasses["gpu.example.com"]`),
		ContainSubstring("it must be empty, for devices that are no accelerators, or one of accelerators or sharing: amd.com/gpu, "+
			"nvidia.com/gpu"),
	)))
}
