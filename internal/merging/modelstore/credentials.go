package modelstore

import (
	"fmt"
	"strings"
)

// The keys of a Secret with credentials: the environment variables of AWS's own tools, so that pods can take them as such.
//
//nolint:gosec // these are names of keys, not keys
const (
	secretAccessKeyID     = "AWS_ACCESS_KEY_ID"
	secretSecretAccessKey = "AWS_SECRET_ACCESS_KEY"
	secretSessionToken    = "AWS_SESSION_TOKEN"
)

// Credentials sign requests. They print as a word that tells nothing. The zero value has none.
type Credentials struct {
	// A function, because fmt calls no method of a field that is not exported, and prints what stands or is pointed to there.
	reveal func() keys
}

type keys struct{ id, secret, token string }

// CredentialsOf takes credentials from the data of a Secret: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, for temporary ones,
// AWS_SESSION_TOKEN. White space around them is dropped: it comes from files that end with a line break. The error names the keys
// that are missing or empty.
func CredentialsOf(secret map[string][]byte) (Credentials, error) {
	value := func(key string) string { return strings.TrimSpace(string(secret[key])) }
	k := keys{id: value(secretAccessKeyID), secret: value(secretSecretAccessKey), token: value(secretSessionToken)}
	var missing []string
	if k.id == "" {
		missing = append(missing, secretAccessKeyID)
	}
	if k.secret == "" {
		missing = append(missing, secretSecretAccessKey)
	}
	if len(missing) > 0 {
		return Credentials{}, fmt.Errorf("the Secret has no %s: give it the keys %s and %s, and %s if they are temporary",
			strings.Join(missing, " and no "), secretAccessKeyID, secretSecretAccessKey, secretSessionToken)
	}
	return Credentials{reveal: func() keys { return k }}, nil
}

const redacted = "redacted"

// String tells nothing, so that no message has a key.
func (Credentials) String() string { return redacted }

// GoString tells nothing either, for %#v.
func (Credentials) GoString() string { return redacted }

// MarshalLog tells nothing to a logger (logr.Marshaler).
func (Credentials) MarshalLog() any { return redacted }
