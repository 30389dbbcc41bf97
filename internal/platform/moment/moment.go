// Package moment compares times.
package moment

import "time"

// LaterOf is the later of two times; the first if both are the same.
func LaterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// EarlierOf is the earlier of two times; the first if both are the same.
func EarlierOf(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
