package view

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// Root is the path of the console.
const Root = "/console/"

const (
	// mostWords is how long a sentence on a page is at most, and mostName a name, in bytes.
	mostWords, mostName = 600, 260
	// elsewhere is what a page says in place of a job that the reader may not see.
	elsewhere = "a job of another namespace"
)

// Figure is a number with what it means.
type Figure struct{ Label, Value, Note string }

// Moment is a time as pages write it.
type Moment struct {
	// Machine is RFC 3339; empty for a time that is not known.
	Machine string
	// Human is the time in UTC, and Ago how long before now it was; in for one that is still to come.
	Human, Ago string
}

// momentOf writes a time.
func momentOf(at, now time.Time) Moment {
	if at.IsZero() {
		return Moment{}
	}
	m := Moment{Machine: at.UTC().Format(time.RFC3339), Human: at.UTC().Format("2006-01-02 15:04:05 UTC")}
	if after := at.Sub(now); after >= time.Second {
		m.Ago = "in " + lasting(after)
	} else {
		m.Ago = lasting(-after) + " ago"
	}
	return m
}

// lasting writes a length of time by its two largest units.
func lasting(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %d h", int(d.Hours())/24, int(d.Hours())%24)
}

// line makes a sentence that others wrote safe and short.
func line(s string) string { return text.ClipLine(s, mostWords) }

// nameText makes a name that others wrote safe and short.
func nameText(s string) string { return text.ClipLine(s, mostName) }

// gangName matches namespace/name where it stands alone in a sentence, and not the end of a resource such as nvidia.com/gpu, nor
// what a kubelet quotes, such as an image.
var gangName = regexp.MustCompile(`(^|[^-./"\w])([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)/([a-z0-9](?:[-.a-z0-9]*[a-z0-9])?)`)

// told is a sentence about a job, without names of jobs that the reader may not see.
func (s *Sight) told(sentence string) string {
	if s.AllJobs && s.AllMerges {
		return line(sentence)
	}
	return line(gangName.ReplaceAllStringFunc(sentence, func(found string) string {
		parts := gangName.FindStringSubmatch(found)
		if _, err := strconv.Atoi(parts[2]); err == nil || s.SeesJobs(parts[2]) && s.SeesMerges(parts[2]) {
			return found
		}
		return parts[1] + elsewhere
	}))
}

// accelerators is how many of a list of resources are accelerators, in thousandths.
func accelerators(cfg *config.Configuration, list corev1.ResourceList) int64 {
	return cfg.AcceleratorsAmong(list)
}

// count writes a number with its noun, whose plural adds an s.
func count[T int | int32 | int64](n T, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.FormatInt(int64(n), 10) + " " + noun
}
