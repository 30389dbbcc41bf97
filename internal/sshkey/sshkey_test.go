package sshkey

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestPairBelongsTogether(t *testing.T) {
	g := NewWithT(t)
	private, public, err := New("ads/ctr")
	g.Expect(err).NotTo(HaveOccurred())
	words := strings.Fields(string(public))
	g.Expect(words).To(HaveLen(3))
	g.Expect([]string{words[0], words[2]}).To(Equal([]string{"ssh-ed25519", "ads/ctr"}))
	blob, err := base64.StdEncoding.DecodeString(words[1])
	g.Expect(err).NotTo(HaveOccurred())
	publicKey := ed25519.PublicKey(blob[len(blob)-ed25519.PublicKeySize:])

	block, rest := pem.Decode(private)
	g.Expect(rest).To(BeEmpty())
	g.Expect(block.Type).To(Equal("OPENSSH PRIVATE KEY"))
	g.Expect(block.Bytes).To(HavePrefix("openssh-key-v1\x00"))
	// The private part has the public key, and after it the private key, which ends with the public key again.
	at := bytes.LastIndex(block.Bytes, publicKey)
	privateKey := ed25519.PrivateKey(block.Bytes[at-ed25519.SeedSize : at+ed25519.PublicKeySize])
	g.Expect(ed25519.Verify(publicKey, []byte("x"), ed25519.Sign(privateKey, []byte("x")))).To(BeTrue())

	another, _, err := New("ads/ctr")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(another).NotTo(Equal(private))
}

func TestCommentIsOneLine(t *testing.T) {
	_, _, err := New("a\nssh-ed25519 AAAA")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("not one line")))
}

func TestOpenSSHReadsIt(t *testing.T) {
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skip("not run: ssh-keygen is not on PATH: install openssh-client")
	}
	g := NewWithT(t)
	private, public, err := New("ads/ctr")
	g.Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(t.TempDir(), "id_ed25519")
	g.Expect(os.WriteFile(path, private, 0o600)).To(Succeed())
	read, err := exec.CommandContext(t.Context(), keygen, "-y", "-f", path).CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(read))
	g.Expect(strings.TrimSpace(string(read))).To(Equal(strings.TrimSpace(string(public))))
}
