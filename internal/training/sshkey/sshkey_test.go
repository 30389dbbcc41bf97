package sshkey

import (
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/crypto/ssh"
)

func TestPairBelongsTogether(t *testing.T) {
	g := NewWithT(t)
	private, public, err := New("ads/ctr")
	g.Expect(err).NotTo(HaveOccurred())
	authorized, comment, _, _, err := ssh.ParseAuthorizedKey(public)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(comment).To(Equal("ads/ctr"))
	signer, err := ssh.ParsePrivateKey(private)
	g.Expect(err).NotTo(HaveOccurred(), "it is not enciphered")
	g.Expect(signer.PublicKey().Marshal()).To(Equal(authorized.Marshal()))
	g.Expect(authorized.Type()).To(Equal(ssh.KeyAlgoED25519))

	another, _, err := New("ads/ctr")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(another).NotTo(Equal(private))
}

func TestCommentIsOneLine(t *testing.T) {
	_, _, err := New("a\nssh-ed25519 AAAA")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("not one line")))
}
