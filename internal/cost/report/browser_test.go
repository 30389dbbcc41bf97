package report

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/test/testutil/browser"
	"github.com/tideline-io/tideline/test/testutil/week"
)

// chromium is nil where no browser is installed.
var chromium *browser.Browser

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		chromium, err = browser.Start(context.Background())
		switch {
		case errors.Is(err, browser.ErrNotInstalled):
			_, _ = fmt.Fprintln(os.Stdout, "not run: the report in a browser: install chromium")
		case err != nil:
			_, _ = fmt.Fprintln(os.Stderr, err)
			return 1
		default:
			defer func() { _ = chromium.Stop() }()
		}
		return m.Run()
	}())
}

const (
	// tooWide are elements that stick out of the window.
	tooWide = `[...document.querySelectorAll("body, body *")].filter(e => {
		const r = e.getBoundingClientRect();
		return r.right > innerWidth + 0.5 || r.left < -0.5;
	}).map(e => e.outerHTML.slice(0, 200)).concat(document.documentElement.scrollWidth > innerWidth ? ["the page scrolls"] : [])`

	// overlaps are cells whose text is wider than they are.
	overlaps = `[...document.querySelectorAll("th, td, dd, dt, li")].filter(e => e.scrollWidth > e.clientWidth + 1)
		.map(e => e.outerHTML.slice(0, 200))`

	// faint are texts whose contrast with what is behind them is below 4.5 (WCAG 2.2, 1.4.3), by the formula of its relative
	// luminance.
	faint = `(() => {
		const parse = c => { const m = c.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m };
		const light = c => c.slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
			.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
		const behind = e => { for (; e; e = e.parentElement) {
			const c = parse(getComputedStyle(e).backgroundColor); if (c[3] == 1) return c } return null };
		const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		let seen = 0;
		while (walker.nextNode()) {
			const e = walker.currentNode.parentElement;
			if (!walker.currentNode.data.trim() || e.tagName == "title" || e.tagName == "desc") continue;
			const style = getComputedStyle(e), back = behind(e);
			if (!back) { found.push("no ground behind " + e.outerHTML.slice(0, 100)); continue }
			const front = parse(e instanceof SVGElement ? style.fill : style.color);
			const [a, b] = [light(front), light(back)].sort((x, y) => y - x), contrast = (a + 0.05) / (b + 0.05);
			seen++;
			if (contrast < 4.5 || front[3] < 1 || parseFloat(style.fontSize) < 10) {
				found.push(contrast.toFixed(2) + " " + e.outerHTML.slice(0, 100));
			}
		}
		return seen > 20 ? found : ["only " + seen + " texts"];
	})()`

	// silent are pictures that say nothing to who cannot see them.
	silent = `[...document.querySelectorAll("svg, img")].filter(e => e.getAttribute("aria-hidden") != "true" && !(
		e.getAttribute("role") == "img" && e.querySelector("title")?.textContent && e.querySelector("desc")?.textContent
	)).map(e => e.outerHTML.slice(0, 100))`

	// indistinct are bars and lines whose contrast with the page is below 3 (WCAG 2.2, 1.4.11).
	indistinct = `(() => {
		const light = c => c.match(/[\d.]+/g).slice(0, 3).map(v => v / 255)
			.map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
			.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
		const ground = light(getComputedStyle(document.body).backgroundColor);
		return [...document.querySelectorAll(".a, .w")].filter(e => {
			const [a, b] = [light(getComputedStyle(e).fill), ground].sort((x, y) => y - x);
			return (a + 0.05) / (b + 0.05) < 3;
		}).map(e => e.outerHTML.slice(0, 100));
	})()`
)

// Reports fit into a telephone and a wide screen, can be read on light and dark, and nothing on them needs eyes only. Who wants
// to see them as well has TIDELINE_PICTURES name a folder.
func TestPagesInABrowser(t *testing.T) {
	if chromium == nil {
		t.Skip("there is no Chromium: install chromium")
	}
	rich := week.Report()
	for _, rows := range rich.By {
		for i := range rows {
			rows[i].Cost, rows[i].Waste = rows[i].Cost.Shift(6), rows[i].Waste.Shift(6)
		}
	}
	rich.Total.Cost = rich.Total.Cost.Shift(6)
	for name, of := range map[string]struct {
		report  cost.Report
		options Options
	}{
		"week": {week.Report(), Options{Name: "weekly", Revision: 2}}, "person": {week.Report(), Options{Person: "okafor"}},
		"hostile": {week.Named(week.Names, hostileCurrency), Options{Name: week.Names[5]}}, "empty": {cost.Report{}, Options{}},
		"rich": {rich, Options{Name: "weekly"}},
	} {
		path := filepath.Join(t.TempDir(), name+".html")
		if err := os.WriteFile(path, []byte(pageOf(NewWithT(t), of.report, of.options)), 0o600); err != nil {
			t.Fatal(err)
		}
		grounds := map[string]bool{}
		for _, width := range []int{360, 768, 1440} {
			for _, scheme := range []string{"light", "dark"} {
				g := NewWithT(t)
				g.Expect(chromium.Show("file://"+path, width, scheme)).To(Succeed())
				for what, question := range map[string]string{
					"too wide": tooWide, "overlaps": overlaps, "faint": faint, "silent": silent, "indistinct": indistinct,
				} {
					var found []string
					g.Expect(chromium.Ask(question, &found)).To(Succeed())
					g.Expect(found).To(BeEmpty(), "%s: %s at %d pixels, %s", name, what, width, scheme)
				}
				if folder := os.Getenv("TIDELINE_PICTURES"); folder != "" {
					picture, err := chromium.Picture()
					g.Expect(err).NotTo(HaveOccurred())
					file := filepath.Join(folder, fmt.Sprintf("%s-%d-%s.png", name, width, scheme))
					g.Expect(os.WriteFile(file, picture, 0o600)).To(Succeed())
				}
				var ground string
				g.Expect(chromium.Ask("getComputedStyle(document.body).backgroundColor", &ground)).To(Succeed())
				grounds[ground] = true
			}
		}
		NewWithT(t).Expect(grounds).To(HaveLen(2), "light and dark are different, and the policy lets the page's style through")
	}
}

// A mail fits as well, and can be read where its pictures are not shown. It is light for all, because mail programs make their
// own dark of it.
func TestMailInABrowser(t *testing.T) {
	if chromium == nil {
		t.Skip("there is no Chromium: install chromium")
	}
	for name, r := range map[string]cost.Report{"week": week.Report(), "hostile": week.Named(week.Names, hostileCurrency)} {
		path := filepath.Join(t.TempDir(), name+".html")
		if err := os.WriteFile(path, []byte(compose(NewWithT(t), r, Options{Name: "weekly"}).HTML), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, width := range []int{360, 1440} {
			g := NewWithT(t)
			g.Expect(chromium.Show("file://"+path, width, "dark")).To(Succeed())
			for what, question := range map[string]string{"too wide": tooWide, "faint": faint} {
				var found []string
				g.Expect(chromium.Ask(question, &found)).To(Succeed())
				g.Expect(found).To(BeEmpty(), "%s: %s at %d pixels", name, what, width)
			}
		}
	}
}

// The policy stops what would come into a page all the same.
func TestPolicyInABrowser(t *testing.T) {
	if chromium == nil {
		t.Skip("there is no Chromium: install chromium")
	}
	g := NewWithT(t)
	page := pageOf(g, week.Report(), Options{Name: "weekly"})
	page += `<script>document.title = "ran"</script><img src=x onerror="document.title = 'ran'"><p id=p style="color:rgb(1,2,3)">`
	path := filepath.Join(t.TempDir(), "page.html")
	g.Expect(os.WriteFile(path, []byte(page), 0o600)).To(Succeed())
	g.Expect(chromium.Show("file://"+path, 1440, "light")).To(Succeed())
	var title, colour string
	g.Expect(chromium.Ask("document.title", &title)).To(Succeed())
	g.Expect(chromium.Ask("getComputedStyle(document.getElementById('p')).color", &colour)).To(Succeed())
	g.Expect(title).To(HavePrefix("What the cluster cost: weekly"))
	g.Expect(colour).NotTo(Equal("rgb(1, 2, 3)"))
}
