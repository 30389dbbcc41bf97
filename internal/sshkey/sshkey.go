// Package sshkey makes key pairs for workers that log in to each other.
package sshkey

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"fmt"
)

const (
	keyType = "ssh-ed25519"
	// magic opens a private key in OpenSSH's own format (PROTOCOL.key), the only one that all versions of ssh read for this type.
	magic = "openssh-key-v1\x00"
	// blockSize is what the private part is padded to where nothing enciphers it.
	blockSize = 8
)

// New returns a new Ed25519 key pair, in the formats of OpenSSH: the private key not enciphered, and the public key as a line of
// authorized_keys with the comment. It fails only if the comment is not one line.
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
	blob := fields([]byte(keyType), publicKey)
	block := &pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: encode(blob, publicKey, privateKey, comment)}
	line := keyType + " " + base64.StdEncoding.EncodeToString(blob) + " " + comment + "\n"
	return pem.EncodeToMemory(block), []byte(line), nil
}

// encode writes one key pair without cipher and key derivation.
func encode(blob, publicKey, privateKey []byte, comment string) []byte {
	// Two equal numbers tell, after deciphering, that the passphrase was right. There is none.
	secret := make([]byte, 8)
	secret = append(secret, fields([]byte(keyType), publicKey, privateKey, []byte(comment))...)
	for padding := byte(1); len(secret)%blockSize != 0; padding++ {
		secret = append(secret, padding)
	}
	out := append([]byte(magic), fields([]byte("none"), []byte("none"), nil)...)
	out = binary.BigEndian.AppendUint32(out, 1)
	return append(out, fields(blob, secret)...)
}

// fields writes each value after its length, as SSH does.
func fields(values ...[]byte) []byte {
	var out []byte
	for _, v := range values {
		out = binary.BigEndian.AppendUint32(out, uint32(len(v)))
		out = append(out, v...)
	}
	return out
}
