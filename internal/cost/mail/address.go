package mail

import (
	"fmt"
	"net/mail"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
	"k8s.io/apimachinery/pkg/util/validation"
)

// longestAddress is that of RFC 5321, section 4.5.3.1.3, in bytes.
const longestAddress = 254

// ParseAddress returns the one form of an address: its domain in lower case, as DNS writes it. It takes plain addresses only, as
// in ann@example.com: no name before it, no quotes, nothing that could become another command or header.
func ParseAddress(s string) (string, error) {
	if _, err := mail.ParseAddress(s); err != nil || strings.ContainsFunc(s, isUnfit) {
		return "", fmt.Errorf("%q is not an address: write it like ann@example.com", clip(s))
	}
	at := strings.LastIndexByte(s, '@')
	domain, err := idna.Lookup.ToASCII(s[at+1:])
	if err != nil || len(validation.IsDNS1123Subdomain(domain)) > 0 {
		return "", fmt.Errorf("%q is not an address: the part after @ is not a domain", clip(s))
	}
	if s = s[:at+1] + domain; len(s) > longestAddress {
		return "", fmt.Errorf("%q is not an address: it has more than %d characters", clip(s), longestAddress)
	}
	return s, nil
}

// isUnfit is true for characters that no address in use has, and that mean something in SMTP or a header.
func isUnfit(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(" <>()[]\\,;:\"", r) }
