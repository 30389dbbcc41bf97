package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestMovesOfSurplusMakeRoomForMoreGangs(t *testing.T) {
	g := NewWithT(t)
	node, small := shape{64000, 256 << 10, 8}, shape{1000, 1 << 10, 4}
	of := func(surplus, paused bool) *packed {
		return &packed{nodes: []shape{node, node, node}, tenants: []tenant{
			{shape: small, name: "core", node: 0}, {shape: small, name: "moves", node: 1, surplus: surplus, paused: paused},
			{shape: shape{1000, 1 << 10, 8}, name: "full", node: 2},
		}}
	}
	w := waitingGang{"one", 1, shape{1000, 1 << 10, 8}}
	for surplus, want := range map[bool]repacked{true: {0, 1, 1}, false: {}} {
		r, err := of(surplus, false).repack(w)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(r).To(Equal(want))
	}
	r, err := of(true, true).repack(w)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r).To(Equal(repacked{}), "its job may not grow now")
}

func TestClustersAreFilledPackedOrSpread(t *testing.T) {
	g := NewWithT(t)
	nodes := []shape{{64000, 1000, 8}, {64000, 1000, 8}}
	on := func(p *packed) (all [2]int64) {
		for _, t := range p.tenants {
			all[t.node] += t.gpus
		}
		return all
	}
	pods := []shape{{1, 1, 1}}
	g.Expect(on(fillOf(nodes, pods, 1, false, 0))).To(Equal([2]int64{8, 6}))
	g.Expect(on(fillOf(nodes, pods, 1, true, 0))).To(Equal([2]int64{7, 7}))
}
