package modelstore

import (
	"encoding/json"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func TestCredentialsOf(t *testing.T) {
	g := NewWithT(t)
	c, err := CredentialsOf(map[string][]byte{secretAccessKeyID: []byte("id\n"), secretSecretAccessKey: []byte("key")})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.reveal()).To(Equal(keys{id: "id", secret: "key"}))

	c, err = CredentialsOf(map[string][]byte{
		secretAccessKeyID: []byte("id"), secretSecretAccessKey: []byte("key"), secretSessionToken: []byte("token"),
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.reveal()).To(Equal(keys{id: "id", secret: "key", token: "token"}))
}

func TestCredentialsMissing(t *testing.T) {
	id, secret := map[string][]byte{secretAccessKeyID: []byte("id")}, map[string][]byte{secretSecretAccessKey: []byte("very secret")}
	for _, c := range []struct {
		name    string
		data    map[string][]byte
		missing string
	}{
		{"nothing", nil, "has no AWS_ACCESS_KEY_ID and no AWS_SECRET_ACCESS_KEY:"},
		{"no secret", id, "has no AWS_SECRET_ACCESS_KEY:"},
		{"no id", secret, "has no AWS_ACCESS_KEY_ID:"},
		{"blank", map[string][]byte{secretAccessKeyID: []byte("id"), secretSecretAccessKey: []byte(" \n")},
			"has no AWS_SECRET_ACCESS_KEY:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := CredentialsOf(c.data)
			g.Expect(err).To(MatchError(ContainSubstring(c.missing)))
			g.Expect(err).NotTo(MatchError(ContainSubstring("very secret")))
		})
	}
}

func TestCredentialsNeverPrint(t *testing.T) {
	g := NewWithT(t)
	c, err := CredentialsOf(map[string][]byte{
		secretAccessKeyID: []byte("HIDDEN"), secretSecretAccessKey: []byte("HIDDEN"), secretSessionToken: []byte("HIDDEN"),
	})
	g.Expect(err).NotTo(HaveOccurred())
	wrapped := struct {
		private Credentials
		Public  Credentials
	}{c, c}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		g.Expect(fmt.Sprintf(verb, c)).NotTo(ContainSubstring("HIDDEN"), verb)
		g.Expect(fmt.Sprintf(verb, &c)).NotTo(ContainSubstring("HIDDEN"), verb)
		g.Expect(fmt.Sprintf(verb, wrapped)).NotTo(ContainSubstring("HIDDEN"), verb)
	}
	g.Expect(c.MarshalLog()).To(Equal("redacted"))
	encoded, err := json.Marshal(wrapped)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(encoded).NotTo(ContainSubstring("HIDDEN"))
	line, err := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()).
		EncodeEntry(zapcore.Entry{}, []zapcore.Field{zap.Any("credentials", c), zap.Any("both", wrapped)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(line.String()).NotTo(ContainSubstring("HIDDEN"))
}
