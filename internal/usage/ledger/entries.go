package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"
)

const (
	// MaxAmount bounds what a pod has of a resource: ten million devices or processors, or ten petabytes. More counts as this much,
	// so that no sum of a range of days overflows.
	MaxAmount = 10_000_000_000
	// MaxDays is the longest stay.
	MaxDays = 3660
)

// earliest is before anything ran. A time before it was not set, or is of a clock that was not.
var earliest = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// Resources are amounts by the name of the resource: in MiB for memory, ephemeral-storage and hugepages, in thousandths for all
// others. So cpu is in millicores, and shares of a GPU count. From 1 to MaxAmount; smaller amounts are left out.
type Resources map[string]int64

// Pod is what a pod is. A day of it keeps what was said when that day was recorded first.
type Pod struct {
	UID             string
	Namespace, Name string
	Node            string
	// Profile and Queue that it counts for; empty for none.
	Profile, Queue string
	// User who owns it; empty if unknown.
	User string
	// Tier of its priority; empty for none.
	Tier string
	// Kind and Task it is of: a kind of Tideline's and the task, or kind and name of another controller.
	Kind, Task string
	// Run is the id of the attempt or run; empty for none.
	Run string
	// Role in its gang: that of spec.roles, else core or surplus; empty for other workloads.
	Role string
	// Model of its accelerators; empty for none.
	Model string
	// Resources that it holds. A pod without any counts for no totals.
	Resources Resources
}

// Outcome is how a pod ended.
type Outcome string

const (
	// Succeeded: all its containers ended well.
	Succeeded Outcome = "Succeeded"
	// Failed: a container ended badly, or the pod was evicted.
	Failed Outcome = "Failed"
	// Deleted: it was deleted while it ran.
	Deleted Outcome = "Deleted"
	// Lost: it is gone, and no operator saw how it ended.
	Lost Outcome = "Lost"
)

// Stay is the time for which a pod held its resources, as far as it is known. Times count in whole seconds.
type Stay struct {
	Pod
	// Begin is when it was bound to its node. What was said first stays.
	Begin time.Time
	// End is when it ended, or was seen last. One before Begin counts as Begin.
	End time.Time
	// Final says that it has ended, and End is known for good.
	Final bool
	// Outcome, if Final.
	Outcome Outcome
	// Uncertain tells, if Final, that End is a guess, because no operator was running when it ended. The last day of the stay
	// is marked.
	Uncertain bool
}

// Decision is something that was decided about an object, and why. The same one is recorded once.
type Decision struct {
	// ID tells it from others of its kind about the object of the UID: of two with one ID the first stays, whatever the second one
	// says. Empty for one that is known by all that it says. It is not read again.
	ID string
	// At is when it was decided. It counts in microseconds.
	At time.Time
	// Kind of decision: Waited, GaveWay, Preempted, Capped, Approved and the like.
	Kind string
	// Namespace, Name and UID of the object.
	Namespace, Name, UID string
	// Attempt or run that it is about; empty for none.
	Attempt string
	// Reason in one word, and Message in a sentence.
	Reason, Message string
	// Other is the other party: who was made way for, who approved; empty for none.
	Other string
	// Figures it was decided by.
	Figures map[string]string
}

// Entries are recorded together, or none of them.
type Entries struct {
	Stays     []Stay
	Decisions []Decision
	PartDays  []PartDay
	OOMKills  []OOMKill
	Collected []Collected
	Rooms     []FreeRoom
	Trained   []Trained
}

func (e Entries) isEmpty() bool {
	return len(e.Stays)+len(e.Decisions)+len(e.PartDays)+len(e.OOMKills)+len(e.Collected)+len(e.Rooms)+len(e.Trained) == 0
}

// check finds what no later try could record.
func (e Entries) check() error {
	for i := range e.Stays {
		if err := e.Stays[i].check(); err != nil {
			return err
		}
	}
	for i := range e.Decisions {
		if d := &e.Decisions[i]; d.At.Before(earliest) {
			return problemf(ErrInvalid, "decision %q about %q in namespace %q was made in the year %d",
				d.Kind, d.Name, d.Namespace, d.At.Year())
		}
	}
	for i := range e.PartDays {
		if p := &e.PartDays[i]; p.Day.Before(earliest) {
			return problemf(ErrInvalid, "the use of %s is dated in the year %d", p.Part, p.Day.Year())
		}
	}
	for i := range e.OOMKills {
		if err := e.OOMKills[i].check(); err != nil {
			return err
		}
	}
	for _, c := range e.Collected {
		if c.Day.Before(earliest) {
			return problemf(ErrInvalid, "a day that was collected is of the year %d", c.Day.Year())
		}
	}
	for i := range e.Rooms {
		if err := e.Rooms[i].check(); err != nil {
			return err
		}
	}
	for i := range e.Trained {
		if err := e.Trained[i].check(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stay) check() error {
	switch {
	case s.UID == "":
		return problemf(ErrInvalid, "pod %q in namespace %q has no UID", s.Name, s.Namespace)
	case s.Begin.Before(earliest):
		return problemf(ErrInvalid, "pod %q in namespace %q began in the year %d", s.Name, s.Namespace, s.Begin.Year())
	case s.End.Sub(s.Begin) > MaxDays*24*time.Hour:
		return problemf(ErrInvalid, "pod %q in namespace %q lasted from %s to %s, longer than %d days",
			s.Name, s.Namespace, s.Begin.Format(time.DateOnly), s.End.Format(time.DateOnly), MaxDays)
	}
	return nil
}

// cleanText makes a text what both databases take: PostgreSQL has no zero character, nor what is not UTF-8.
func cleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// canonicalText writes resources so that the same ones are the same text.
func (r Resources) canonicalText() string {
	bounded := make(Resources, len(r))
	for name, amount := range r {
		if amount > 0 {
			bounded[cleanText(name)] = min(amount, MaxAmount)
		}
	}
	b, _ := json.Marshal(bounded) // of such a map it has no error; its keys are in order
	return string(b)
}

// digest is one for each content, whatever is in its parts.
func digest(parts ...string) string {
	b, _ := json.Marshal(parts) // of texts it has no error
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
