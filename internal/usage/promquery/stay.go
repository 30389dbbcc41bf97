// Package promquery asks Prometheus for the use of pods of Tideline's jobs, and computes the usage of a day. The job of a
// pod comes from the ledger, which still has it when the pod is gone, and never from metrics. [Day], which makes the
// questions and reads the answers, is pure. [Client] sends the questions.
package promquery

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// Stay is the time of a pod of ours on its node, by our own record.
type Stay struct {
	Namespace string
	// Kind and Task of what it was made for: see sizing.Key.
	Kind, Task string
	// Pod is its name, which others had before it and have after it.
	Pod string
	// Run is the id of the attempt or run; empty for none.
	Run  string
	Role sizing.Role
	// Begin and End. A stay that is not Final lasts on, whenever it was seen last.
	Begin, End time.Time
	// Final says that it has ended, and Well that all its containers ended well.
	Final, Well bool
	// Accelerators that it holds, in thousandths of a device.
	Accelerators int64
}

// roleKey is that of the pod's role.
func (s Stay) roleKey() sizing.Key {
	return sizing.Key{Namespace: s.Namespace, Kind: s.Kind, Task: s.Task, Role: s.Role}
}

const (
	// slotLength is how long a sample speaks of: usage is kept in samples of five minutes each.
	slotLength  = 5 * time.Minute
	slotSeconds = int64(slotLength / time.Second)
	slotsPerDay = int(24 * time.Hour / slotLength)
)

// slots are some of the five minutes of a day.
type slots [(slotsPerDay + 63) / 64]uint64

func (s *slots) add(slot int) { s[slot/64] |= 1 << (slot % 64) }

func (s *slots) remove(slot int) { s[slot/64] &^= 1 << (slot % 64) }

func (s *slots) has(slot int) bool { return s[slot/64]&(1<<(slot%64)) != 0 }

// end is when the last of them ends, in Unix seconds, of the day that began at a time; 0 if there is none.
func (s *slots) end(day time.Time) int64 {
	for slot := slotsPerDay - 1; slot >= 0; slot-- {
		if s.has(slot) {
			return day.Unix() + int64(slot+1)*slotSeconds
		}
	}
	return 0
}

func (s *slots) addAll(other slots) {
	for i := range s {
		s[i] |= other[i]
	}
}

// intersect are those of the slots that are among others too.
func (s *slots) intersect(others *slots) slots {
	both := slots{}
	for i := range s {
		both[i] = s[i] & others[i]
	}
	return both
}

// totalSeconds is how long they are together.
func (s *slots) totalSeconds() int64 {
	n := 0
	for _, part := range s {
		n += bits.OnesCount64(part)
	}
	return int64(n) * slotSeconds
}

// sortStays puts the stays of one name of a pod in the order in which they began, and ends each when the next begins: two pods of
// one name are never there at a time.
func sortStays(stays []Stay, now time.Time) {
	slices.SortFunc(stays, func(a, b Stay) int {
		return cmp.Or(a.Begin.Compare(b.Begin), a.End.Compare(b.End), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Task, b.Task),
			cmp.Compare(a.Role, b.Role), cmp.Compare(a.Run, b.Run))
	})
	for i := range stays {
		s := &stays[i]
		if !s.Final && now.After(s.End) {
			s.End = now
		}
		if i+1 < len(stays) && stays[i+1].Begin.Before(s.End) {
			s.End = stays[i+1].Begin
		}
	}
}

// ownersBySlot are, by slot, the stay to which a sample belongs that bears the name of the stays' pod: the last one that
// began before the slot was over. It is nil if there is none, or if the slot is shared with another role, because the
// sample may belong to either.
func (d *Day) ownersBySlot(stays []Stay) []*Stay {
	owners := make([]*Stay, d.passed)
	shared := slots{}
	for i := range stays {
		s := &stays[i]
		ran := d.slotsRan(s)
		for slot := range owners {
			switch {
			case !ran.has(slot):
			case owners[slot] != nil && owners[slot].roleKey() != s.roleKey():
				shared.add(slot)
			default:
				owners[slot] = s
			}
		}
	}
	for slot := range owners {
		// Only now, or a later stay would take a slot that two have shared.
		if shared.has(slot) {
			owners[slot] = nil
		}
	}
	return owners
}

// slotsRan are the slots of the day, as far as it has passed, in which a pod was there for some time.
func (d *Day) slotsRan(s *Stay) slots {
	ran := slots{}
	for slot := range d.passed {
		begin := d.begin.Add(time.Duration(slot) * slotLength)
		if s.Begin.Before(begin.Add(slotLength)) && s.End.After(begin) {
			ran.add(slot)
		}
	}
	return ran
}
