package view

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

const (
	// mostDevices is how many accelerators a field may say.
	mostDevices = 1_000_000
	// mostDays is how far back may be asked.
	mostDays = 31
)

// Change is the form by which people ask what other limits of a team would have changed. A weight is not among them: it decides
// about surplus, which is not played.
type Change struct {
	Form

	// Team whose profile is asked about; empty while nothing is asked, or something is wrong.
	Team string
	// Window is how far back is asked.
	Window time.Duration

	device corev1.ResourceName
	// guarantee, capability and perUser are what the fields say; nil for what the profile has.
	guarantee, capability, perUser *int64
}

// NewChange reads the form. Without a team in the query nothing is asked yet. teams are those that the reader may see; none for
// one who writes a name.
func NewChange(query url.Values, teams []string, cfg *config.Configuration) *Change {
	c := &Change{Form: Form{Fields: []Field{
		{Name: "team", Label: "Team", Options: teams},
		{Name: "device", Label: "Accelerator", Value: config.AcceleratorResource(""), Options: cfg.Accelerators.ResourceNames()},
		{Name: "guarantee", Label: "Guarantee of accelerators (empty: as it is)", Optional: true},
		{Name: "capability", Label: "Capability of accelerators (empty: as it is)", Optional: true},
		{Name: "per-user", Label: "Cap of accelerators of each user (empty: as it is)", Optional: true},
		{Name: "days", Label: "Days back", Value: "7"},
	}}}
	if !query.Has("team") {
		return c
	}
	c.fill(query)
	if len(validation.IsDNS1123Subdomain(c.value("team"))) > 0 {
		c.refuse("team", "the name of a profile")
	}
	c.device = c.Form.device("device", cfg)
	c.guarantee, c.capability = c.optional("guarantee"), c.optional("capability")
	c.perUser = c.optional("per-user")
	days := c.number("days", 1, mostDays)
	if len(c.Wrong) == 0 {
		c.Team, c.Window = c.value("team"), time.Duration(days)*24*time.Hour
	}
	return c
}

// optional reads a number of accelerators; nil for an empty field.
func (c *Change) optional(name string) *int64 {
	if c.value(name) == "" {
		return nil
	}
	n := c.number(name, 0, mostDevices)
	return &n
}

// ChangedProfile is the profile as it would be; nil, and what is wrong, for one whose limits contradict one another.
func (c *Change) ChangedProfile(is *v1beta1.ResourceQuotaProfile) *v1beta1.ResourceQuotaProfile {
	p := is.DeepCopy()
	queue := &p.Spec.Queue
	for _, field := range []struct {
		list *corev1.ResourceList
		n    *int64
	}{{&queue.Guarantee, c.guarantee}, {&queue.Capability, c.capability}} {
		if field.n != nil {
			changed := maps.Clone(*field.list)
			if changed == nil {
				changed = corev1.ResourceList{}
			}
			changed[c.device] = *resource.NewQuantity(*field.n, resource.DecimalSI)
			*field.list = changed
		}
	}
	if c.perUser != nil {
		c.capUsers(&p.Spec)
	}
	guarantee := queue.Guarantee[c.device]
	for _, most := range []struct {
		name string
		list corev1.ResourceList
	}{{"deserved", queue.Deserved}, {"capability", queue.Capability}} {
		if bound, set := most.list[c.device]; set && guarantee.Cmp(bound) > 0 {
			c.Wrong = append(c.Wrong, fmt.Sprintf("The guarantee would be %s, more than %s, which is %s.", &guarantee, most.name, &bound))
		}
	}
	deserved, capability := queue.Deserved[c.device], queue.Capability[c.device]
	if _, set := queue.Capability[c.device]; set && deserved.Cmp(capability) > 0 {
		c.Wrong = append(c.Wrong, fmt.Sprintf("The capability would be %s, less than deserved, which is %s.", &capability, &deserved))
	}
	if len(c.Wrong) > 0 {
		return nil
	}
	return p
}

// capUsers caps what each user may hold of the accelerator, of all models together.
func (c *Change) capUsers(spec *v1beta1.ResourceQuotaProfileSpec) {
	if spec.Caps == nil {
		spec.Caps = &v1beta1.ProfileCaps{}
	}
	of := v1beta1.ResourceCap{Resource: string(c.device), Max: *resource.NewQuantity(*c.perUser, resource.DecimalSI)}
	at := slices.IndexFunc(spec.Caps.PerUser, func(o v1beta1.ResourceCap) bool { return o.Resource == of.Resource && o.Model == "" })
	if at < 0 {
		spec.Caps.PerUser = append(spec.Caps.PerUser, of)
		return
	}
	spec.Caps.PerUser[at] = of
}

// Questions is the page on which people ask what would be.
type Questions struct {
	Start  *WhatIf
	Change *Change
}
