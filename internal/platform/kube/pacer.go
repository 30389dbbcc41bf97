package kube

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/internal/platform/statuspace"
)

// Pacer remembers, for each object, when its status was last written and since when it differs from what it should be.
type Pacer struct {
	mu      sync.Mutex
	objects map[types.NamespacedName]noted
}

// noted is when a status was written and found to differ, and how urgent the difference is.
type noted struct {
	written, noticed time.Time
	pace             statuspace.Pace
}

// NewPacer returns a Pacer that knows no object.
func NewPacer() *Pacer { return &Pacer{objects: map[types.NamespacedName]noted{}} }

// NoteDifference notes that the object's status is not what it should be, and at what pace that is written. It returns since
// when that is so and when the status was last written; the zero time if this process has not written it. A more urgent
// difference than the one noted counts from now. A time that is to come was noted by a clock that was set back since: it counts
// as now, or the status would stay as it is for as long as the clock was set back.
func (p *Pacer) NoteDifference(key types.NamespacedName, is statuspace.Pace, now time.Time) (noticed, written time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.objects[key]
	before := o
	if o.noticed.IsZero() || is > o.pace {
		o.noticed, o.pace = now, is
	}
	if o.noticed.After(now) {
		o.noticed = now
	}
	if o.written.After(now) {
		o.written = now
	}
	if o != before {
		p.objects[key] = o
	}
	return o.noticed, o.written
}

// NoteAgreement notes that the object's status is what it should be.
func (p *Pacer) NoteAgreement(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o, ok := p.objects[key]; ok {
		o.noticed = time.Time{}
		p.objects[key] = o
	}
}

// NoteWrite notes that the object's status was written.
func (p *Pacer) NoteWrite(key types.NamespacedName, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.objects[key] = noted{written: now}
}

// ForgetObject drops an object that is gone.
func (p *Pacer) ForgetObject(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.objects, key)
}
