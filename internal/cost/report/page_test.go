package report

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/shopspring/decimal"

	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/test/testutil/week"
)

func pageOf(g *WithT, r cost.Report, o Options) string {
	g.THelper()
	content, err := RenderPage(r, o)
	g.Expect(err).NotTo(HaveOccurred())
	return string(content)
}

func TestPageSaysWhatStandsOut(t *testing.T) {
	g := NewWithT(t)
	root := parse(t, pageOf(g, week.Report(), Options{Name: "weekly", Revision: 2, Top: 5}))
	g.Expect(read(all(root, "header")[0])).To(Equal("Tideline cost report What the cluster cost: weekly " +
		"Mon 9 Nov 2026 09:00 to Mon 16 Nov 2026 09:00, Asia/Shanghai (UTC+08:00) " +
		"Revision 2. It replaces the earlier report of the same period. " +
		"Cost CNY 555,461.97 +60,541.90 since last time, 12 % " +
		"In use 49 % of the time that accelerators were held; 58 % last time " +
		"Waste CNY 281,692.96 51 % of the cost; CNY 148,502.56 of it recoverable " +
		"Free, but unusable 42 % of 23.6 accelerators that were free on average"))
	g.Expect(readAll(all(byID(t, root, "findings"), "li"))).To(Equal([]string{
		"yuki can save most: CNY 37,194. CNY 29,827 of it in vision/notebook-yuki. " +
			"Its accelerators are hardly used: end it, or release them until they are needed.",
		"vision/dmitri-recall-two-tower used its accelerators 22 % of the time: CNY 13,195 wasted. It cost CNY 16,967, 3 % of " +
			"the total. Check what it waits for, give it fewer accelerators, or end it.",
		"The cost rose by CNY 60,542, 12 %. yuki changed most: from CNY 21,352 to CNY 53,474.",
	}))
	g.Expect(readAll(all(byID(t, root, "rest"), "dd"))).To(Equal([]string{
		"CNY 588,790", "With a probability of 80 % between CNY 516,580 and CNY 672,109, estimated from 9 periods.",
		"4 min 10 s", "Half of 388 gangs waited less. The longest wait was 9 h 20 min, of speech/asr-conformer.",
		"CNY 29,994.95", "CNY 7,221.01 by preemption, charged to the jobs that got the room, and CNY 22,773.94 by restarts, in " +
			"57 incidents. It counts from the last reported checkpoint. Report each checkpoint (tideline.io/checkpoint-done), and " +
			"save more often if the loss is large.",
		"23.6 accelerators free", "On average. 42 % of them could not be used by the gangs that asked this week, " +
			"64 of them for 4 to 8 accelerators.",
		"CNY 14,442.01", "214 runs in the pools, whose accelerators were in use 71 % of the time.",
	}))
	g.Expect(rows(byID(t, root, "outcomes"))[2]).To(Equal([]string{"Failed 12 %", "66,655.44", "1,666"}))
	g.Expect(readAll(all(byID(t, root, "notes"), "li"))).To(ContainElement(
		"In the charts Mon 9 Nov and Mon 16 Nov are parts of a day."))
}

func TestRankings(t *testing.T) {
	g := NewWithT(t)
	root := parse(t, pageOf(g, week.Report(), Options{Name: "weekly", Top: 3}))
	g.Expect(rows(byID(t, root, "utilization-user"))).To(Equal([][]string{
		{"yuki vision", "25 %", "53,474.48"}, {"fatima vision", "26 %", "51,055.00"}, {"okafor vision", "40 %", "70,384.47"},
		{"the other 12", "58 %", "380,548.03"}, {"all", "49 %", "555,461.97"},
	}))
	g.Expect(rows(byID(t, root, "cost-team"))).To(Equal([][]string{
		{"vision", "215,319.63", "+37,416.78"}, {"ads", "95,937.62", "+2,623.79"}, {"no team", "93,250.45", "+7,757.85"},
		{"the other 2", "150,954.27", "+12,743.48"}, {"all", "555,461.97", "+60,541.90"},
	}))
	g.Expect(rows(byID(t, root, "waste-task"))[0]).To(Equal([]string{"vision/notebook-yuki Pod, yuki", "30,448.52", "29,827.12"}))
	// Whose use is unknown is not ranked by it, and neither is who spent next to nothing.
	for _, row := range rows(byID(t, parse(t, pageOf(g, week.Report(), Options{Top: 100})), "utilization-task")) {
		g.Expect(row[0]).NotTo(ContainSubstring("legacy-batch"))
		g.Expect(amount(row[2]).GreaterThanOrEqual(decimal.RequireFromString("5554.61"))).To(BeTrue(), row[0])
	}
}

// The same totals by user, team and task, in every ranking, however many rows it shows.
func TestBehaviour3SameTotals(t *testing.T) {
	g := NewWithT(t)
	for _, top := range []int{1, 7, 1000} {
		root := parse(t, pageOf(g, week.Report(), Options{Name: "weekly", Top: top}))
		for _, dimension := range []string{"user", "team", "task"} {
			for ranking, columns := range map[string][]int{"utilization": {2}, "cost": {1, 2}, "waste": {1, 2}} {
				list := rows(byID(t, root, ranking+"-"+dimension))
				for _, column := range columns {
					var total decimal.Decimal
					for _, row := range list[:len(list)-1] {
						total = total.Add(amount(row[column]))
					}
					// Each amount is rounded by itself.
					off := decimal.New(int64(len(list)), -2)
					g.Expect(total.Sub(amount(list[len(list)-1][column])).Abs().LessThanOrEqual(off)).To(BeTrue(),
						"%s by %s, top %d, column %d", ranking, dimension, top, column)
				}
				g.Expect(amount(list[len(list)-1][columns[0]])).To(Equal(amount(map[string]string{
					"utilization": "555,461.97", "cost": "555,461.97", "waste": "281,692.96",
				}[ranking])))
			}
		}
	}
}

// amount reads a figure of a page.
func amount(s string) decimal.Decimal {
	s = strings.NewReplacer(",", "", "−", "-", "+", "", "±", "").Replace(s)
	return decimal.RequireFromString(s)
}

// Rows that have the same figures stand in the same order, whatever the order in which they come.
func TestBehaviour3TiesAreStable(t *testing.T) {
	g := NewWithT(t)
	row := week.Report().By[cost.ByUser][0]
	var tied []cost.Row
	for _, user := range []string{"a", "b", "c", "d", "e", "f"} {
		row.Key = cost.Key{User: user}
		tied = append(tied, row)
	}
	r := cost.Report{Total: row, Currency: "EUR", By: map[cost.Dimension][]cost.Row{cost.ByUser: tied}}
	first := pageOf(g, r, Options{})
	for range 20 {
		rand.Shuffle(len(tied), func(i, j int) { tied[i], tied[j] = tied[j], tied[i] })
		root := parse(t, pageOf(g, r, Options{}))
		for _, ranking := range []string{"utilization", "cost", "waste"} {
			list := rows(byID(t, root, ranking+"-user"))
			for i, user := range []string{"a", "b", "c", "d", "e", "f"} {
				g.Expect(list[i][0]).To(Equal(user))
			}
		}
	}
	slices.SortFunc(tied, func(a, b cost.Row) int { return strings.Compare(a.Key.User, b.Key.User) })
	g.Expect(pageOf(g, r, Options{})).To(Equal(first))
}

// A page loads nothing and runs nothing, and says so to the browser.
func TestPageStandsAlone(t *testing.T) {
	g := NewWithT(t)
	root := parse(t, pageOf(g, week.Report(), Options{Name: "weekly"}))
	for n := range root.Descendants() {
		g.Expect(n.Data).NotTo(BeElementOf("script", "iframe", "img", "link", "object", "embed", "form", "a", "base", "foreignObject"))
		for _, a := range n.Attr {
			g.Expect(a.Key).NotTo(BeElementOf("src", "href", "style", "srcset", "action"))
			g.Expect(a.Key).NotTo(HavePrefix("on"))
		}
	}
	style := all(root, "style")
	g.Expect(style).To(HaveLen(1))
	g.Expect(style[0].FirstChild.Data).NotTo(ContainSubstring("url("))
	sum := sha256.Sum256([]byte(style[0].FirstChild.Data))
	var policy string
	for _, meta := range all(root, "meta") {
		if attribute(meta, "http-equiv") == "Content-Security-Policy" {
			policy = attribute(meta, "content")
		}
	}
	g.Expect(policy).To(Equal("default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'"))
}

// Who cannot see the page is told the same.
func TestPageIsAccessible(t *testing.T) {
	g := NewWithT(t)
	root := parse(t, pageOf(g, week.Report(), Options{Name: "weekly"}))
	g.Expect(attribute(all(root, "html")[0], "lang")).To(Equal("en"))
	g.Expect(all(root, "h1")).To(HaveLen(1))
	for _, section := range all(root, "section") {
		g.Expect(all(section, "h2")).To(HaveLen(1))
	}
	for _, table := range all(root, "table") {
		g.Expect(all(table, "caption")).To(HaveLen(1))
		for _, th := range all(table, "th") {
			g.Expect(attribute(th, "scope")).To(BeElementOf("col", "row"))
		}
	}
	charts := 0
	for _, svg := range all(root, "svg") {
		if attribute(svg, "role") != "img" {
			g.Expect(attribute(svg, "aria-hidden")).To(Equal("true"))
			continue
		}
		charts++
		for _, id := range strings.Fields(attribute(svg, "aria-labelledby")) {
			g.Expect(byID(t, svg, id).FirstChild.Data).NotTo(BeEmpty())
		}
	}
	g.Expect(charts).To(Equal(3))
	g.Expect(read(byID(t, root, "utilization-desc"))).To(HavePrefix(
		"Mon 9 Nov 59 %; Tue 10 Nov 62 %; Wed 11 Nov unknown; Thu 12 Nov 70 %"))
	g.Expect(read(byID(t, root, "fragmentation-desc"))).To(HavePrefix("Mon 9 Nov 12.5 free, 57 % of them of no use"))
}

// A line has a gap where nothing is known, and not a point at zero.
func TestChartsHaveGaps(t *testing.T) {
	g := NewWithT(t)
	root := parse(t, pageOf(g, week.Report(), Options{Name: "weekly"}))
	charts := all(byID(t, root, "days"), "svg")
	var points []int
	for _, line := range all(charts[0], "polyline") {
		points = append(points, len(strings.Fields(attribute(line, "points"))))
	}
	g.Expect(points).To(Equal([]int{2, 5}))
	g.Expect(all(charts[0], "circle")).To(HaveLen(7))
	g.Expect(all(charts[1], "polyline")).To(BeEmpty())
	g.Expect(readAll(all(charts[0], "text"))).To(Equal([]string{
		"% of the time held", "0", "25", "50", "75", "100", "?",
		"Mon", "9", "Tue", "10", "Wed", "11", "Thu", "12", "Fri", "13", "Sat", "14", "Sun", "15", "Mon", "16", "day",
	}))
}

// What is unknown is said to be, and is not zero; and a report of nothing is a page all the same.
func TestUnknownIsUnknown(t *testing.T) {
	r := week.Report()
	for _, rows := range r.By {
		for i := range rows {
			rows[i].Utilization, rows[i].Share, rows[i].Uncertain, rows[i].Before = cost.Ratio{}, cost.Ratio{}, cost.Ratio{}, nil
		}
	}
	r.Total.Utilization, r.Total.Before, r.Total.Uncertain, r.Before = cost.Ratio{}, nil, cost.Ratio{}, nil
	r.Merges.Utilization, r.Room, r.Forecast, r.Notes = cost.Ratio{}, nil, nil, nil
	for i := range r.Days {
		r.Days[i].Utilization, r.Days[i].Unusable = cost.Ratio{}, cost.Ratio{}
	}
	for i := range r.Outcomes {
		r.Outcomes[i].Share = cost.Ratio{}
	}
	for what, r := range map[string]cost.Report{"nothing known": r, "nothing at all": {}} {
		g := NewWithT(t)
		for _, person := range []string{"", "chen"} {
			o := Options{Name: "weekly", Person: person}
			said := read(parse(t, pageOf(g, r, o)))
			mail, err := ComposeMail(r, o)
			g.Expect(err).NotTo(HaveOccurred())
			for _, text := range []string{said, read(parse(t, mail.HTML)), mail.Text, mail.Subject} {
				g.Expect(strings.ReplaceAll(text, blank, " ")).NotTo(MatchRegexp(`\b0 %|NaN|Inf|ZgotmplZ`), what)
				g.Expect(text).To(ContainSubstring("unknown"), what)
			}
			for _, write := range []func(cost.Report, Options) ([]byte, error){CSV, JSON, FOCUS} {
				content, err := write(r, o)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(string(content)).NotTo(MatchRegexp(`(?i)\bnan\b|\binf\b|unknown`), what)
			}
		}
	}
}

// Nothing of anybody else is in what one person gets, in any form.
func TestPersonalPageHasOneUserOnly(t *testing.T) {
	g := NewWithT(t)
	r := week.Report()
	r.Notes = []string{"bob and alice had a notebook each."}
	o := Options{Name: "weekly", Person: "chen", GroupBy: []cost.Dimension{cost.ByUser, cost.ByTeam, cost.ByTask}}
	mail, err := ComposeMail(r, o)
	g.Expect(err).NotTo(HaveOccurred())
	outputs := map[string]string{"page": pageOf(g, r, o), "mail": mail.HTML, "text": mail.Text, "subject": mail.Subject}
	for _, file := range mail.Attachments {
		outputs[file.Name] = string(file.Content)
	}
	g.Expect(mail.Pictures).To(BeEmpty(), "they are of everybody's days")
	for kind, write := range map[string]func(cost.Report, Options) ([]byte, error){"CSV": CSV, "JSON": JSON, "FOCUS": FOCUS} {
		content, err := write(r, o)
		g.Expect(err).NotTo(HaveOccurred())
		outputs[kind] = string(content)
	}
	m := moneyOf(r.Currency)
	var others []string
	for dimension, rows := range r.By {
		for _, row := range rows {
			if row.Key.User == "chen" {
				for _, d := range []decimal.Decimal{row.Cost, row.Waste, row.Recoverable} {
					if dimension == cost.ByTask {
						g.Expect(outputs["page"]).To(ContainSubstring(m.bareAmount(d)))
					}
				}
				continue
			}
			// Tasks without an owner have the names of chen's tasks.
			if dimension != cost.ByTeam && row.Key.User != "" {
				others = append(others, row.Key.User, row.Key.Task)
			}
			for _, d := range []decimal.Decimal{row.Cost, row.Waste, row.Recoverable, *row.Before} {
				others = append(others, m.bareAmount(d), m.plainAmount(d))
			}
		}
	}
	others = append(others, m.bareAmount(r.Total.Cost), m.bareAmount(r.Total.Waste), m.bareAmount(r.Before.Cost),
		r.Waits.LongestOf, r.Room.Mix)
	// What chen paid and chen's share would tell what all paid.
	var d document
	g.Expect(json.Unmarshal([]byte(outputs["JSON"]), &d)).To(Succeed())
	shares := 0.0
	for _, row := range d.Rows {
		shares += *row.CostShare
	}
	g.Expect(shares).To(BeNumerically("~", 1, 1e-6))
	g.Expect(*d.Total.CostShare).To(BeEquivalentTo(1))
	for kind, output := range outputs {
		g.Expect(output).To(ContainSubstring("chen"), kind)
		for _, other := range others {
			if other != "" {
				g.Expect(output).NotTo(ContainSubstring(other), kind)
			}
		}
	}
}

// Tasks that a person shares with others are one row, so that the page adds up.
func TestPersonalPageAddsUp(t *testing.T) {
	g := NewWithT(t)
	r := week.Report()
	for i, row := range r.By[cost.ByTask] {
		if row.Key.Task == "chen-asr-conformer" {
			r.By[cost.ByTask][i].Key.User = ""
		}
	}
	root := parse(t, pageOf(g, r, Options{Name: "weekly", Person: "chen"}))
	g.Expect(rows(byID(t, root, "cost-task"))).To(Equal([][]string{
		{"tasks with others", "2,232.23", "new or unknown"},
		{"ads/chen-recall-two-tower", "1,599.27", "−26.92"}, {"ads/chen-embedding-refresh", "1,543.79", "+293.21"},
		{"all", "5,375.28", "+931.06"},
	}))
	g.Expect(readAll(all(byID(t, root, "findings"), "strong"))[0]).To(Equal("You can save CNY 1,550."))
	g.Expect(readAll(all(byID(t, root, "notes"), "li"))[0]).To(HavePrefix(
		"1 % of the time is on days on which the end of a pod is a guess"))
}
