// Package fromledger reads from the ledger what a report of costs is computed from. It asks, and decides nothing but how
// decisions are read.
package fromledger

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/ledger/decisionlog"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// gatherer reads what a period is computed from.
type gatherer struct {
	ledger *ledger.Ledger
	in     *cost.Input
	// profiles are those that count; all if there are none.
	profiles []string
	tiers    config.Tiers
}

// LoadInput reads from a ledger all that it has of the period of an input: what was held, used, lost and waited for in some
// profiles, or in all if there are none, what sizing would have granted by the rules of the tiers, and how much was free.
func LoadInput(ctx context.Context, l *ledger.Ledger, in *cost.Input, profiles []string, tiers config.Tiers) error {
	g := &gatherer{l, in, profiles, tiers}
	for _, read := range []func(context.Context) error{
		g.readBegin, g.readHeld, g.readUse, g.readGoodput, g.readHappened, g.readRooms,
	} {
		if err := read(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (g *gatherer) countsProfile(profile string) bool {
	return len(g.profiles) == 0 || slices.Contains(g.profiles, profile)
}

// readBegin notes what of the period is unknown, because the ledger began later.
func (g *gatherer) readBegin(ctx context.Context) error {
	begun, err := g.ledger.KnownSince(ctx)
	if err == nil && begun.After(g.in.Period.From) {
		g.in.Notes = append(g.in.Notes, fmt.Sprintf("What ran before %s is unknown, because the ledger began then, but for pods that "+
			"were still there. The figures are of what is known.", begun.In(g.in.Period.From.Location()).Format("2006-01-02 15:04 MST")))
	}
	return err
}

// readHeld reads what pods held, and how many runs there were.
func (g *gatherer) readHeld(ctx context.Context) error {
	p := g.in.Period
	err := g.ledger.EachHeld(ctx, p.CutTimes(), func(h ledger.Held) error {
		if g.countsProfile(h.Profile) {
			g.in.Held = append(g.in.Held, heldOf(&h))
		}
		return nil
	})
	if err != nil {
		return err
	}
	runs, err := g.ledger.CountRuns(ctx, p.From, p.To)
	for i := range runs {
		if of := &runs[i]; g.countsProfile(of.Profile) {
			owner := cost.Owner{Team: of.Profile, User: of.User, Namespace: of.Namespace, Kind: of.Kind, Task: of.Task}
			g.in.Runs = append(g.in.Runs, cost.Runs{Owner: owner, Runs: of.Runs})
		}
	}
	return err
}

func (g *gatherer) readRooms(ctx context.Context) error {
	rooms, err := g.ledger.QueryRooms(ctx, g.in.Period.From, g.in.Period.To)
	g.in.Rooms, g.in.Mix = measuredOf(rooms)
	return err
}

func heldOf(h *ledger.Held) cost.Held {
	held := cost.Held{
		Owner: cost.Owner{Team: h.Profile, User: h.User, Namespace: h.Namespace, Kind: h.Kind, Task: h.Task},
		Tier:  h.Tier, Surplus: h.Role == v1beta1.PartSurplus, Model: h.Model, Resources: cost.Resources(h.Resources),
		Outcome: string(h.Outcome), From: h.From, Seconds: h.PodSeconds, Uncertain: h.UncertainSeconds, Pods: h.Pods,
	}
	held.Role = sizing.Other
	if h.Kind == v1beta1.ElasticTrainingJobKind || h.Kind == v1beta1.MergeJobKind {
		switch {
		case h.First:
			held.Role = sizing.Master
		case h.Role == "" || h.Role == v1beta1.PartCore || h.Role == v1beta1.PartSurplus:
			held.Role = sizing.Worker
		default:
			held.Role = sizing.Role(h.Role)
		}
	}
	return held
}

// readUse reads what was used on the days of the period, and what sizing would grant by that.
func (g *gatherer) readUse(ctx context.Context) error {
	in := g.in
	histories := map[sizing.Key]*sizing.History{}
	err := g.ledger.PartDays(ctx, ledger.PartQuery{From: in.Period.From, To: in.Period.To}, func(d ledger.PartDay) error {
		var u sizing.Usage
		if json.Unmarshal([]byte(d.Content), &u) != nil {
			return nil //nolint:nilerr // it is of another version, and counts as not seen
		}
		key := sizing.Key{
			Namespace: d.Namespace, Kind: d.Kind, Task: d.Task, Role: sizing.Role(d.Role), Container: d.Container,
		}
		in.Used = append(in.Used, cost.Used{Day: d.Day, Key: key, Usage: u})
		task := taskOf(key)
		if histories[task] == nil {
			histories[task] = &sizing.History{WindowDays: sizing.DefaultWindowDays}
		}
		histories[task].Add(sizing.Part{Role: key.Role, Container: key.Container}, d.Day, u)
		return nil
	})
	in.Granted = computeGrants(histories, g.tiers)
	return err
}

// computeGrants tells what sizing would have granted. Sizing looks at weeks, and is asked for each span of each day: it
// answers once for each role and tier.
func computeGrants(histories map[sizing.Key]*sizing.History, tiers config.Tiers) func(sizing.Key, string) (cost.Granted, bool) {
	type question struct {
		role sizing.Key
		tier string
	}
	type answer struct {
		granted cost.Granted
		known   bool
	}
	answers := map[question]answer{}
	return func(role sizing.Key, tier string) (cost.Granted, bool) {
		q := question{role, tier}
		a, asked := answers[q]
		if !asked {
			a.granted, a.known = grantedTo(histories[taskOf(role)], role.Role, tiers, tier)
			answers[q] = a
		}
		return a.granted, a.known
	}
}

// readGoodput reads what became of the GPU time of trainings that report their progress.
func (g *gatherer) readGoodput(ctx context.Context) error {
	all, err := g.ledger.QueryGoodput(ctx, g.in.Period.From, g.in.Period.To)
	for i := range all {
		if of := &all[i]; g.countsProfile(of.Profile) {
			g.in.Trained = append(g.in.Trained, cost.Trained{
				Owner: cost.Owner{Team: of.Profile, User: of.User, Namespace: of.Namespace, Kind: of.Kind, Task: of.Task}, Queue: of.Queue,
				Held: of.Held, Kept: of.Kept, Lost: of.Lost,
			})
		}
	}
	return err
}

// readHappened reads who waited how long, and what was lost when gangs were stopped.
func (g *gatherer) readHappened(ctx context.Context) error {
	var told happened
	in := g.in
	asked := ledger.DecisionQuery{From: in.Period.From, To: in.Period.To, Kinds: telling}
	err := g.ledger.EachDecision(ctx, asked, func(d *ledger.Decision) {
		if g.countsProfile(d.Figures[decisionlog.Profile]) {
			told.addDecision(d)
		}
	})
	if err != nil {
		return err
	}
	in.Waits = told.waits
	pods, err := g.podsOf(ctx, told.stops)
	if err != nil {
		return err
	}
	for i := range told.stops {
		s := &told.stops[i]
		by, err := g.findBeneficiary(ctx, s)
		if err != nil {
			return err
		}
		in.Losses = append(in.Losses, lossOf(s, pods[s.gangKey()], by))
	}
	return nil
}

// podsOf are the pods that the gangs of stops had in the period.
func (g *gatherer) podsOf(ctx context.Context, stops []stop) (map[gang][]ledger.Stay, error) {
	runs := make([]string, len(stops))
	for i := range stops {
		runs[i] = stops[i].run
	}
	stays, err := g.ledger.RunStays(ctx, g.in.Period.From, g.in.Period.To, runs)
	pods := map[gang][]ledger.Stay{}
	for i := range stays {
		p := &stays[i].Pod
		of := gang{p.Namespace, p.Kind, p.Task, p.Run}
		pods[of] = append(pods[of], stays[i])
	}
	return pods, err
}

// findBeneficiary is the owner of the job that got the room of a gang; nil if no job did.
func (g *gatherer) findBeneficiary(ctx context.Context, s *stop) (*cost.Owner, error) {
	namespace, name, found := strings.Cut(s.by, "/")
	if !found {
		return nil, nil
	}
	told, err := g.ledger.QueryDecisions(ctx, ledger.DecisionQuery{
		Namespace: namespace, Name: name, To: s.until.Add(time.Second), Limit: 1,
		Kinds: []string{decisionlog.Waited, decisionlog.Capped, decisionlog.WentOn, decisionlog.Ran},
	})
	if err != nil {
		return nil, err
	}
	if len(told) == 0 {
		return &cost.Owner{Namespace: namespace, Kind: v1beta1.ElasticTrainingJobKind, Task: name}, nil
	}
	owner := ownerOf(&told[0])
	return &owner, nil
}

func taskOf(key sizing.Key) sizing.Key {
	return sizing.Key{Namespace: key.Namespace, Kind: key.Kind, Task: key.Task}
}

// grantedTo is what sizing would have granted a pod of a role of a tier.
func grantedTo(h *sizing.History, role sizing.Role, tiers config.Tiers, tier string) (g cost.Granted, known bool) {
	t, found := tiers.FindTier(tier)
	if h == nil || !found {
		return g, false
	}
	g.Millicores, _ = h.GrantedAmount(role, sizing.CPU, t.Sizing)
	g.MemoryBytes, _ = h.GrantedAmount(role, sizing.Memory, t.Sizing)
	return g, g.Millicores > 0 || g.MemoryBytes > 0
}
