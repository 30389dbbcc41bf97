package text

import (
	"crypto/sha256"
	"encoding/hex"
)

// Digest stands for a text where it is only compared: 64 characters.
func Digest(of string) string {
	sum := sha256.Sum256([]byte(of))
	return hex.EncodeToString(sum[:])
}
