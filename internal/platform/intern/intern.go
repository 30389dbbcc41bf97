// Package intern lets objects that stay in memory for long have one copy of what they have alike.
package intern

import "sync"

const (
	// mostKept is how many copies a table keeps for those that come later. What is alike comes mostly together: the pods of a job,
	// or the jobs of a person.
	mostKept = 4 << 10
	// longestKey is the longest key, in bytes, of what is kept. Users write what keys are made of.
	longestKey = 512
)

// Table has the copies that objects share. What is shared must never be changed. Its zero value is ready, and may be used by
// several goroutines at a time.
type Table[T any] struct {
	mu   sync.Mutex
	kept map[string]T
}

// Intern returns the copy that was kept under a key; if there is none, it keeps the one that build returns. Two values of one key
// must be equal. A full table begins anew: what is shared already stays so, and what comes later shares a second copy.
func (t *Table[T]) Intern(key string, build func() T) T {
	if len(key) > longestKey {
		return build()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if kept, ok := t.kept[key]; ok {
		return kept
	}
	if t.kept == nil || len(t.kept) >= mostKept {
		t.kept = map[string]T{}
	}
	own := build()
	t.kept[key] = own
	return own
}
