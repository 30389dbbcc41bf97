package mail

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestServerOfASecret(t *testing.T) {
	g := NewWithT(t)
	parse := func(allowPlain bool, pairs ...string) (Server, error) {
		data := map[string][]byte{}
		for i := 0; i < len(pairs); i += 2 {
			data[pairs[i]] = []byte(pairs[i+1])
		}
		return ParseServer(data, allowPlain)
	}
	s, err := parse(false, "host", "smtp.example.com\n", "username", "tideline\n", "password", secret+" \n")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s).To(Equal(Server{
		host: "smtp.example.com", port: 587, username: "tideline", password: secret + " ", encryption: startTLS,
	}))
	g.Expect(fmt.Sprintf("%v %+v %#v %s", s, s, s, s)).NotTo(ContainSubstring(secret[:4]))
	s, err = parse(true, "host", "::1", "port", "25", "tls", "None")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.String()).To(Equal("[::1]:25"))
	for _, c := range []struct {
		says  string
		pairs []string
	}{
		{"key host of the Secret is not the name", nil},
		{"key host of the Secret is not the name", []string{"host", "unix:///run/smtp"}},
		{"key host of the Secret is not the name", []string{"host", "smtp.example.com:587"}},
		{"key port of the Secret is not a port", []string{"host", "a", "port", "587x"}},
		{"key port of the Secret is not a port", []string{"host", "a", "port", "65536"}},
		{"key tls of the Secret must be STARTTLS, TLS or None", []string{"host", "a", "tls", "starttls"}},
		{"key tls of the Secret is None, which the operator's configuration does not allow", []string{"host", "a", "tls", "None"}},
		{"key password of the Secret and key username belong together", []string{"host", "a", "username", "me"}},
		{"key password of the Secret and key username belong together", []string{"host", "a", "password", secret}},
		{"key password of the Secret or key username has a control character",
			[]string{"host", "a", "username", "me", "password", secret + "\n" + secret}},
		{"key caCertificate of the Secret has no certificate", []string{"host", "a", "caCertificate", secret}},
	} {
		_, err := parse(false, c.pairs...)
		g.Expect(err).To(MatchError(And(HavePrefix(c.says), Not(ContainSubstring(secret[:4])), Not(ContainSubstring("\n")))))
	}
	_, err = parse(true, "host", "a", "tls", "None", "username", "me", "password", secret)
	g.Expect(err).To(MatchError(ContainSubstring("which would send the password unencrypted")))
	_, err = parse(true, "port", "x", "tls", "x")
	g.Expect(strings.Split(err.Error(), "\n")).To(HaveLen(3), "each key that is wrong")
}

func TestAddresses(t *testing.T) {
	g := NewWithT(t)
	for address, form := range map[string]string{
		"ann@example.com": ann, "Ann.B+c@EXAMPLE.com": "Ann.B+c@example.com", "安@例え.jp": "安@xn--r8jz45g.jp",
		"a@localhost": "a@localhost",
	} {
		parsed, err := ParseAddress(address)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(parsed).To(Equal(form))
		g.Expect(ParseAddress(form)).To(Equal(form), "the form is its own form")
	}
	for _, address := range []string{
		"", "ann", "ann@", "@example.com", "Ann <ann@example.com>", "<ann@example.com>", " ann@example.com",
		"ann@example.com,bob@x.com",
		`"a b"@example.com`, `">"@example.com`, "a@[127.0.0.1]", "ann@exa mple.com", "ann@example.com\r\nBcc: eve@example.com",
		"ann@-example.com", "ann@example..com", "ann\u202e@example.com", strings.Repeat("a", 250) + "@b.co", "ann@exam\x00ple.com",
	} {
		_, err := ParseAddress(address)
		g.Expect(err).To(MatchError(ContainSubstring("is not an address: ")), "%q", address)
	}
}

func FuzzAddress(f *testing.F) {
	f.Add("ann@example.com")
	f.Fuzz(func(t *testing.T, s string) {
		address, err := ParseAddress(s)
		if err == nil && (strings.ContainsAny(address, "<>\r\n \"") || strings.Count(address, "@") == 0) {
			t.Errorf("ParseAddress(%q) = %q", s, address)
		}
	})
}

func TestDirectory(t *testing.T) {
	g := NewWithT(t)
	d, bad, err := ParseDirectory([]byte(`
ann: {mail: ann@Example.com, team: ads, leader: zoe}
zoe: {mail: zoe@example.com}
bob: {mail: "bob@example.com\r\nBcc: eve@example.com"}
"carol@example.com": {team: rec}
`))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(d).To(Equal(Directory{
		"ann": {Mail: ann, Team: "ads", Leader: "zoe"}, "bob": {}, "zoe": {Mail: zoe}, "carol@example.com": {Team: "rec"},
	}))
	g.Expect(bad).To(HaveExactElements(
		HavePrefix(`user "bob": mail `), HavePrefix(`user "carol@example.com": mail "" is not an address`)))
	d, bad, err = ParseDirectory(nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(bad).To(BeEmpty())
	g.Expect(d).To(BeEmpty())
	for content, says := range map[string]string{
		"- ann":                             "the directory is not a mapping: ",
		"ann: {mail: a@b.co}\nann: {}":      "the directory is not YAML: ",
		"ann: [":                            "the directory is not YAML: ",
		"ann: a@b.co":                       `the directory: user "ann": is not a mapping: `,
		"ann: {mial: a@b.co}":               `the directory: user "ann": unknown field "mial": `,
		"ann: {mail: a@b.co, team: 7}":      `the directory: user "ann": field team is not a text: `,
		"\"a\\e[2J\": {leader: [x], y: {}}": "the directory: user \"a\\\\x1b[2J\": field leader is not a text: ",
	} {
		_, _, err := ParseDirectory([]byte(content))
		g.Expect(err).To(MatchError(HavePrefix(says)), content)
	}
}
