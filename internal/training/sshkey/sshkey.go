// Package sshkey makes key pairs for workers that log in to each other.
package sshkey

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// New returns a new Ed25519 key pair in the formats of OpenSSH: the private key without a passphrase, and the public key as a
// line of authorized_keys with the comment. It fails if the comment is not one line.
func New(comment string) (private, public []byte, err error) {
	for _, c := range comment {
		if c < ' ' {
			return nil, nil, fmt.Errorf("the comment %q is not one line", comment)
		}
	}
	publicKey, privateKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key pair: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(privateKey, comment)
	if err != nil {
		return nil, nil, fmt.Errorf("write the private key: %w", err)
	}
	line, err := ssh.NewPublicKey(publicKey)
	if err != nil {
		return nil, nil, fmt.Errorf("write the public key: %w", err)
	}
	authorized := bytes.TrimSpace(ssh.MarshalAuthorizedKey(line))
	return pem.EncodeToMemory(block), fmt.Appendf(nil, "%s %s\n", authorized, comment), nil
}
