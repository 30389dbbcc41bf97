// Package serverurl compares addresses of servers, and says what is wrong with the way to one.
package serverurl

import (
	"net/url"
	"strings"
)

// Parse returns a server's URL in the one form by which it is compared: scheme and host in lower case, without the scheme's own
// port and a slash at its end. It is false for what has anything but scheme, host and port in it.
func Parse(server string) (string, bool) {
	if strings.ContainsAny(server, "@?#%\\") {
		return "", false
	}
	u, err := url.Parse(strings.ToLower(strings.TrimSuffix(server, "/")))
	if err != nil || u.Hostname() == "" || u.Opaque != "" || u.Path != "" || strings.HasSuffix(u.Host, ":") {
		return "", false
	}
	switch u.Scheme {
	case "http":
		return "http://" + strings.TrimSuffix(u.Host, ":80"), true
	case "https":
		return "https://" + strings.TrimSuffix(u.Host, ":443"), true
	}
	return "", false
}

// NormalizeURL is Parse for a server that may be none: that is returned as it is.
func NormalizeURL(server string) string {
	if parsed, ok := Parse(server); ok {
		return parsed
	}
	return server
}
