package gang

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// Who shares GPUs has all of config/volcano but for what switches that on.
func TestConfigurationForSharedGPUsIsOurs(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile("../../../config/volcano-vgpu/volcano-scheduler.conf")
	g.Expect(err).NotTo(HaveOccurred())
	lines := func(conf string) (kept []string) {
		for _, line := range strings.Split(conf, "\n") {
			if words := strings.TrimSpace(line); words != "" && !strings.HasPrefix(words, "#") {
				kept = append(kept, line)
			}
		}
		return kept
	}
	whole := string(text)
	for _, own := range []string{
		"\n    arguments:\n      deviceshare.VGPUEnable: true\n      deviceshare.SchedulePolicy: binpack",
		", volcano.sh/vgpu-memory",
		"\n      binpack.resources.volcano.sh/vgpu-memory: 10",
	} {
		g.Expect(whole).To(ContainSubstring(own))
		whole = strings.Replace(whole, own, "", 1)
	}
	g.Expect(lines(whole)).To(Equal(lines(ours(t))))
}
