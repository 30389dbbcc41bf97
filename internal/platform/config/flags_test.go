package config

import (
	"flag"
	"io"
	"testing"

	. "github.com/onsi/gomega"
)

// started is the configuration of a process with arguments, over that of a file.
func started(t *testing.T, file *Configuration, arguments ...string) (*Configuration, error) {
	t.Helper()
	flags := flag.NewFlagSet("tideline", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.String("kubeconfig", "", "a flag of somebody else")
	DefaultConfiguration().AddFlags(flags)
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	return file, file.OverrideByFlags(flags)
}

func TestFlagsGoBeforeTheFileAndTheFileBeforeDefaults(t *testing.T) {
	g := NewWithT(t)
	c, err := started(t, other(), "--kubeconfig=x")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c).To(Equal(other()), "no flag says otherwise")

	c, err = started(t, other(), "--metrics-bind-address=0", "--health-probe-bind-address=:1", "--leader-elect",
		"--leader-election-namespace=", "--leader-election-lease-duration=8s", "--leader-election-renew-deadline=6s",
		"--leader-election-retry-period=2s", "--resync-period=5s", "--webhooks", "--webhook-bind-address=:2", "--webhook-certs=rotate",
		"--webhook-cert-dir=/mine", "--allow-local-stores=/tmp/stores")
	g.Expect(err).NotTo(HaveOccurred())
	want := other()
	want.Metrics.BindAddress, want.Health.BindAddress, want.ResyncPeriodSeconds = "0", ":1", 5
	want.Merges.LocalStores = "/tmp/stores"
	want.LeaderElection = LeaderElection{Enabled: true, LeaseDurationSeconds: 8, RenewDeadlineSeconds: 6, RetryPeriodSeconds: 2}
	want.Webhooks = Webhooks{
		Enabled: true, BindAddress: ":2", Certificates: Certificates{Mode: "rotate", Directory: "/mine"}, ClientCAFile: "/callers.crt",
	}
	g.Expect(c).To(Equal(want))
}

func TestWrongFlagsEndWithSentences(t *testing.T) {
	for argument, says := range map[string]string{
		"--resync-period=0s": "--resync-period: resyncPeriodSeconds is 0: it must be from 1 to 604800.",
		"--resync-period=1500ms": `invalid value "1500ms" for flag -resync-period: it must be a number of whole seconds, at most ` +
			`604800 s`,
		"--resync-period=1000000h": `invalid value "1000000h" for flag -resync-period: it must be a number of whole seconds, at most ` +
			`604800 s`,
		"--resync-period=5": `invalid value "5" for flag -resync-period: time: missing unit in duration "5"`,
		"--allow-local-stores=stores": `--allow-local-stores: merges.localStores is "stores": it must be the absolute path of a ` +
			`folder, or empty for none.`,
		"--webhook-certs=olm": `--webhook-certs: webhooks.certificates.mode is "olm": it must be rotate or files.`,
		"--webhook-bind-address=9443": `--webhook-bind-address: webhooks.bindAddress is "9443": it must be HOST:PORT or :PORT, ` +
			`with a port from 1 to 65535.`,
		"--leader-election-lease-duration=1000000h": `invalid value "1000000h" for flag -leader-election-lease-duration: it must be ` +
			`a number of whole seconds, at most 3600 s`,
		"--leader-election-lease-duration=8s": "--leader-election-renew-deadline: leaderElection.renewDeadlineSeconds is 10: it must " +
			"be less than leaseDurationSeconds (8), so that a leader ends before another begins.",
		"--leader-election-namespace=A": `--leader-election-namespace: leaderElection.namespace is "A": it must be the name of a ` +
			`namespace, or empty for the operator's own.`,
	} {
		_, err := started(t, DefaultConfiguration(), argument)
		NewWithT(t).Expect(err).To(MatchError(says), argument)
	}
}

// Each field that a flag overrides is named with the flag, and each flag has a field.
func TestEveryFlagHasItsField(t *testing.T) {
	g := NewWithT(t)
	flags := flag.NewFlagSet("tideline", flag.ContinueOnError)
	DefaultConfiguration().AddFlags(flags)
	var names []string
	flags.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	var named []string
	for _, name := range flagOf {
		named = append(named, name)
	}
	g.Expect(names).To(ConsistOf(named))
}

func TestAddresses(t *testing.T) {
	g := NewWithT(t)
	for address, port := range map[string]int{
		":9443": 9443, "localhost:65535": 65535, "[::1]:1": 1, "9443": 0, ":0": 0, ":70000": 0, ":https": 0, "": 0,
	} {
		_, got, err := SplitAddress(address)
		g.Expect(got).To(Equal(port), address)
		g.Expect(err != nil).To(Equal(port == 0), address)
	}
}
