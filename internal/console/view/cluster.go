package view

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/text"
)

const (
	// JobsOnPage and NodesOnPage are how many of them a page lists; mostWaiting is how many the first page lists of those that wait,
	// mostProfiles of teams.
	JobsOnPage, NodesOnPage, mostWaiting, mostProfiles = 100, 60, 20, 200
	// mostSquares is how many accelerators of a node are drawn.
	mostSquares = 64
	// squaresInRow fit beside each other on the narrowest screen; squareSize is what one takes, in pixels.
	squaresInRow, squareSize = 16, 14
	// colours is how many the page's style has for jobs.
	colours = 8
)

// Cluster is the first page: the cluster now.
type Cluster struct {
	Figures []Figure
	Teams   []TeamRow
	// MoreTeams is how many are not listed.
	MoreTeams int
	// Reasons are how many jobs wait for each, those of others included.
	Reasons []Figure
	Waiting []JobRow
	// MoreWaiting is how many more of the reader's jobs wait.
	MoreWaiting int
	// OthersWaiting is how many jobs wait that the reader may not see.
	OthersWaiting int
	Nodes         []NodeRow
	NodePages     Paging
	// NodesHidden is true for a reader who may not list nodes.
	NodesHidden bool
}

// TeamRow is a team's line.
type TeamRow struct {
	Name, Path                     string
	Used, Deserved, Borrowed, Lent string
	Running, Waiting               int32
	LargestGang                    string
	Reason                         string
}

// JobRow is a training's line.
type JobRow struct {
	Namespace, Name, Path    string
	Phase, Reason, Message   string
	Size, Queue, Tier, Owner string
	Place                    int32
	Accelerators             int64
	Since, Created           Moment
}

// NodeRow is a node as a picture of its accelerators.
type NodeRow struct {
	Name, Device string
	Out          bool
	// Squares are its accelerators, each by the class of its colour: cN for a job, other, or free.
	Squares []Square
	// Height is that of the picture, in pixels.
	Height int
	// Words say the same as the picture.
	Words string
}

// Square is one accelerator of a picture.
type Square struct {
	X, Y  int
	Class string
}

// Paging is where in a list a page is.
type Paging struct {
	// Page counts from 1, of Pages.
	Page, Pages int
	// Previous and Next are their addresses; empty where there is none.
	Previous, Next string
}

// pagingOf keeps a page within a list. The addresses are query with the number of the page behind it.
func pagingOf(page, length, size int, query string) (p Paging, from, to int) {
	p.Pages = max(1, (length+size-1)/size)
	p.Page = min(max(page, 1), p.Pages)
	if p.Page > 1 {
		p.Previous = query + strconv.Itoa(p.Page-1)
	}
	if p.Page < p.Pages {
		p.Next = query + strconv.Itoa(p.Page+1)
	}
	from = (p.Page - 1) * size
	return p, from, min(from+size, length)
}

// NewCluster makes the first page. nodePage counts pages of nodes from 1; those out of range are the nearest.
func NewCluster(m *Model, s *Sight, cfg *config.Configuration, nodePage int, now time.Time) Cluster {
	c := Cluster{NodesHidden: !s.Nodes}
	var mine []*v1beta1.ElasticTrainingJob
	reasons := map[string]int{}
	runs := 0
	for _, j := range m.Jobs {
		switch standingOf(j) {
		case waiting:
			reasons[cmp.Or(j.Status.Reason, v1beta1.ReasonSubmitted)]++
			if s.SeesJobs(j.Namespace) {
				mine = append(mine, j)
			} else {
				c.OthersWaiting++
			}
		case running:
			runs++
		case ended:
		}
	}
	sortJobs(mine)
	c.MoreWaiting = max(0, len(mine)-mostWaiting)
	for _, j := range mine[:len(mine)-c.MoreWaiting] {
		c.Waiting = append(c.Waiting, rowOf(j, s, now))
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		c.Reasons = append(c.Reasons, Figure{Label: nameText(reason), Value: strconv.Itoa(reasons[reason])})
	}
	c.Figures = c.headline(m, runs, len(mine)+c.OthersWaiting)
	c.addTeams(m, s, cfg)
	if s.Nodes {
		c.addNodes(m, s, nodePage)
	}
	return c
}

// headline are the figures above all.
func (c *Cluster) headline(m *Model, runs, waits int) []Figure {
	var total, held, out int64
	for i := range m.Nodes {
		n := &m.Nodes[i]
		total += n.Total
		if n.Out {
			out += n.Total
		}
		for _, h := range n.Held {
			held += h.Accelerators
		}
	}
	nodes := "on " + count(len(m.Nodes), "node")
	if out > 0 {
		nodes += ", " + text.FormatThousandths(out) + " on nodes that take no pods"
	}
	gang, of := largestGang(m.Profiles)
	note := "accelerators that a gang of whole nodes could have now, without evictions"
	if of == "" {
		gang, note = "unknown", "no team's status says yet"
	}
	return []Figure{
		{Label: "Accelerators in use", Value: text.FormatThousandths(held) + " of " + text.FormatThousandths(total), Note: nodes},
		{Label: "Largest gang now", Value: gang, Note: note},
		{Label: "Trainings that run", Value: strconv.Itoa(runs), Note: "of all namespaces"},
		{Label: "Trainings that wait", Value: strconv.Itoa(waits), Note: "of all namespaces"},
	}
}

// largestGang is the largest gang that any team could have now, and the model of its accelerators; of is empty where no label
// names the model.
func largestGang(profiles []*v1beta1.ResourceQuotaProfile) (size, of string) {
	best := int64(-1)
	for _, p := range profiles {
		for i := range p.Status.Available {
			if a := &p.Status.Available[i]; a.LargestGang > best {
				best, of = a.LargestGang, a.Resource
			}
		}
	}
	return strconv.FormatInt(max(best, 0), 10), of
}

// addTeams lists the teams for who may see profiles, and has their sum for everybody.
func (c *Cluster) addTeams(m *Model, s *Sight, cfg *config.Configuration) {
	all := slices.SortedFunc(slices.Values(m.Profiles), func(a, b *v1beta1.ResourceQuotaProfile) int {
		return cmp.Compare(a.Name, b.Name)
	})
	if !s.Profiles {
		return
	}
	c.MoreTeams = max(0, len(all)-mostProfiles)
	for _, p := range all[:len(all)-c.MoreTeams] {
		c.Teams = append(c.Teams, teamRow(p, cfg))
	}
}

func teamRow(p *v1beta1.ResourceQuotaProfile, cfg *config.Configuration) TeamRow {
	st := &p.Status
	used, deserved := accelerators(cfg, st.Used), accelerators(cfg, st.Deserved)
	borrowed := accelerators(cfg, st.Borrowed)
	gang, of := largestGang([]*v1beta1.ResourceQuotaProfile{p})
	if of == "" {
		gang = "unknown"
	}
	return TeamRow{
		Name: nameText(p.Name), Path: teamPath(p.Name),
		Used: text.FormatThousandths(used), Deserved: text.FormatThousandths(deserved),
		Borrowed: text.FormatThousandths(borrowed), Lent: text.FormatThousandths(accelerators(cfg, st.Lent)),
		Running: st.Running, Waiting: st.Waiting, LargestGang: gang, Reason: nameText(st.Reason),
	}
}

// rowOf is a training's line.
func rowOf(j *v1beta1.ElasticTrainingJob, s *Sight, now time.Time) JobRow {
	st := &j.Status
	return JobRow{
		Namespace: nameText(j.Namespace), Name: nameText(j.Name), Path: jobPath(j.Namespace, j.Name),
		Phase: nameText(cmp.Or(string(st.Phase), string(v1beta1.PhasePending))), Reason: nameText(st.Reason),
		Message: s.told(st.Message),
		Size:    nameText(st.Summary), Queue: nameText(st.Queue), Tier: nameText(st.Tier), Owner: nameText(j.Spec.Owner),
		Place: st.Place, Accelerators: st.Accelerators,
		Since: momentOf(sinceOf(j), now), Created: momentOf(j.CreationTimestamp.Time, now),
	}
}

// addNodes draws the nodes of a page.
func (c *Cluster) addNodes(m *Model, s *Sight, page int) {
	var from, to int
	c.NodePages, from, to = pagingOf(page, len(m.Nodes), NodesOnPage, Root+"?nodes=")
	for i := from; i < to; i++ {
		c.Nodes = append(c.Nodes, drawNode(&m.Nodes[i], s))
	}
}

// drawNode draws a node, with all that the reader may not see in one.
func drawNode(n *Node, s *Sight) NodeRow {
	row := NodeRow{Name: nameText(n.Name), Device: nameText(n.Device), Out: n.Out}
	mine := map[types.NamespacedName]int64{}
	var others, held int64
	for _, h := range n.Held {
		held += h.Accelerators
		if s.seesHolder(h.Job) {
			mine[h.Job] += h.Accelerators
		} else {
			others += h.Accelerators
		}
	}
	jobs := slices.SortedFunc(maps.Keys(mine), func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
	var words strings.Builder
	for _, job := range jobs {
		_, _ = fmt.Fprintf(&words, "%s %s, ", nameText(job.String()), text.FormatThousandths(mine[job]))
		row.fill(mine[job], colourOf(job))
	}
	if others > 0 {
		words.WriteString("others " + text.FormatThousandths(others) + ", ")
		row.fill(others, "other")
	}
	free := max(0, n.Total-held)
	row.fill(free, "free")
	row.Words = words.String() + text.FormatThousandths(free) + " of " + text.FormatThousandths(n.Total) + " free"
	return row
}

// fill adds squares for so many thousandths; what is less than half of one has none.
func (r *NodeRow) fill(thousandths int64, class string) {
	for n := (thousandths + 500) / 1000; n > 0 && len(r.Squares) < mostSquares; n-- {
		x, y := len(r.Squares)%squaresInRow, len(r.Squares)/squaresInRow
		r.Squares = append(r.Squares, Square{X: x * squareSize, Y: y*squareSize + 1, Class: class})
		r.Height = (y + 1) * squareSize
	}
}

// colourOf is the class of a job's colour, which is the same on every node and page.
func colourOf(job types.NamespacedName) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(job.String()))
	return "c" + strconv.FormatUint(uint64(h.Sum32()%colours), 10)
}
