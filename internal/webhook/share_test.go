package webhook

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
)

const cannotSetShare = `: Forbidden: to write more of a profile than spec.reservations and spec.dataSets, a user needs the ` +
	`verb set-share on resourcequotaprofiles.tideline.io ctr, which "alice" does not have: change only these, or ask ` +
	`an administrator to bind ClusterRole tideline-set-share`

func TestReservationsAreApartFromShares(t *testing.T) {
	const (
		ads  = `{"spec":{"queue":{"weight":1,"guarantee":{"cpu":"1"}},"members":[{"kind":"User","name":"bob"}]}}`
		room = `{"spec":{"queue":{"weight":1,"guarantee":{"cpu":"1000m"}},"members":[{"kind":"User","name":"bob"}],` +
			`"reservations":[{"name":"launch"}]}}`
	)
	for name, c := range map[string]struct {
		after string
		err   error
		asks  []string
		says  []string
	}{
		"a reservation": {after: room},
		"a data set":    {after: strings.Replace(room, `"reservations"`, `"dataSets":[{"name":"clicks"}],"reservations"`, 1)},
		"a label":       {after: `{"metadata":{"labels":{"a":"b"}},` + ads[1:]},
		"a share and a member": {
			after: `{"spec":{"queue":{"weight":3,"guarantee":{"cpu":"1"}}}}`, asks: []string{v1beta1.VerbSetShare},
			says: []string{"spec.queue.weight" + cannotSetShare, "spec.members" + cannotSetShare},
		},
		"a guarantee": {
			after: strings.Replace(room, "1000m", "2", 1), asks: []string{v1beta1.VerbSetShare},
			says: []string{"spec.queue.guarantee" + cannotSetShare},
		},
		"a cap": {
			after: `{"spec":{"caps":{},` + ads[len(`{"spec":{`):], asks: []string{v1beta1.VerbSetShare},
			says: []string{"spec.caps" + cannotSetShare},
		},
		"an owner of the kind": {
			after: `{"metadata":{"ownerReferences":[{"name":"a"}]},` + ads[1:], asks: []string{v1beta1.VerbSetShare},
			says: []string{"metadata.ownerReferences" + cannotSetShare},
		},
		"a cap, without answer": {
			after: `{"spec":{}}`, err: errors.New("late"), asks: []string{v1beta1.VerbSetShare},
			says: []string{"the API server did not answer whether alice may set-share resourcequotaprofiles ctr " +
				"(late): write the profile again in a moment"},
		},
		"no profile": {after: `{"spec":3}`, says: []string{"read the ResourceQuotaProfile"}},
	} {
		t.Run(name, func(t *testing.T) {
			g, r := NewWithT(t), &reviewer{err: c.err}
			response := (&sharesValidator{client: r}).Handle(t.Context(), changing(ads, c.after))
			g.Expect(response.Allowed).To(Equal(len(c.says) == 0))
			g.Expect(r.verbs()).To(Equal(c.asks), "it asks for what it must know, and no more")
			for _, says := range c.says {
				g.Expect(response.Result.Message).To(ContainSubstring(says))
			}
			if c.err == nil && c.asks != nil {
				r.may = v1beta1.VerbSetShare
				g.Expect((&sharesValidator{client: r}).Handle(t.Context(), changing(ads, c.after)).Allowed).To(BeTrue())
			}
		})
	}
	t.Run("a new profile", func(t *testing.T) {
		g, r := NewWithT(t), &reviewer{}
		response := (&sharesValidator{client: r}).Handle(t.Context(), creation(room))
		g.Expect(response.Result.Message).To(Equal(`ResourceQuotaProfile.tideline.io "ctr" is invalid: spec` + cannotSetShare))
		g.Expect(r.asked[0].ResourceAttributes.Name).To(Equal("ctr"))
		r.may = v1beta1.VerbSetShare
		g.Expect((&sharesValidator{client: r}).Handle(t.Context(), creation(room)).Allowed).To(BeTrue())
	})
}

// A field that is added to profiles is guarded too.
func TestEveryOtherFieldOfAProfileIsGuarded(t *testing.T) {
	spec := reflect.TypeFor[v1beta1.ResourceQuotaProfileSpec]()
	for i := range spec.NumField() {
		before, now := &profile{}, &profile{}
		field := reflect.ValueOf(&now.Spec).Elem().Field(i)
		if selector, ok := field.Addr().Interface().(*metav1.LabelSelector); ok {
			selector.MatchLabels = map[string]string{"a": "b"}
		} else {
			fill(field)
		}
		guarded := len(changedShare(before, now)) > 0
		NewWithT(t).Expect(guarded).To(Equal(!slices.Contains([]string{"Reservations", "DataSets"}, spec.Field(i).Name)),
			spec.Field(i).Name)
	}
}

// listener is an outlook.ChangeTeller that keeps what it is asked.
type listener struct{ asked []any }

func (l *listener) TellChange(_ context.Context, p *v1beta1.ResourceQuotaProfile, window time.Duration, names bool) []string {
	l.asked = []any{p.Spec.Queue.Weight, window, names}
	return []string{"told"}
}

func TestADryRunIsToldWhatAProfileWouldHaveChanged(t *testing.T) {
	asking := func(value string) string {
		return `{"metadata":{"annotations":{"tideline.io/what-if":"` + value + `"}},"spec":{"queue":{"weight":3}}}`
	}
	for name, c := range map[string]struct {
		after string
		real  bool
		may   string
		hears string
		asked []any
	}{
		"who may set shares": {
			after: asking("24h"), may: v1beta1.VerbSetShare, hears: "told", asked: []any{int32(3), 24 * time.Hour, false},
		},
		"who may do all": {after: asking("24h"), may: "*", hears: "told", asked: []any{int32(3), 24 * time.Hour, true}},
		"who would take others' namespaces": {
			after: strings.Replace(asking("24h"), `"spec":{`, `"spec":{"namespaceSelector":{"matchLabels":{"team":"rec"}},`, 1),
			may:   v1beta1.VerbSetShare, hears: "leave spec.namespaceSelector as it is",
		},
		"a real change": {after: asking("24h"), may: v1beta1.VerbSetShare, real: true},
		"does not ask":  {after: `{"spec":{"queue":{"weight":3}}}`, may: v1beta1.VerbSetShare},
		"no such time": {
			after: asking("7 days"), may: v1beta1.VerbSetShare, hears: `metadata.annotations[tideline.io/what-if]: "7 days" is not`,
		},
		"may set no share, and changes none": {
			after: strings.Replace(asking("24h"), `"weight":3`, `"weight":1`, 1), hears: "is told to those who may change it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, l := NewWithT(t), &listener{}
			request := changing(`{"spec":{"queue":{"weight":1}}}`, c.after)
			request.DryRun = ptr.To(!c.real)
			answer := (&sharesValidator{client: &reviewer{may: c.may}, teller: l}).Handle(t.Context(), request)
			g.Expect(answer.Allowed).To(BeTrue())
			g.Expect(l.asked).To(Equal(c.asked))
			if c.hears == "" {
				g.Expect(answer.Warnings).To(BeEmpty())
				return
			}
			g.Expect(answer.Warnings).To(ConsistOf(ContainSubstring(c.hears)))
		})
	}
}
