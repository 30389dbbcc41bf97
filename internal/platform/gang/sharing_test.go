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
	const own = "\n    arguments:\n      deviceshare.VGPUEnable: true\n      deviceshare.SchedulePolicy: binpack\n" +
		"      deviceshare.ScheduleWeight: 10"
	g.Expect(string(text)).To(ContainSubstring(own))
	g.Expect(lines(strings.Replace(string(text), own, "", 1))).To(Equal(lines(ours(t))))
}
