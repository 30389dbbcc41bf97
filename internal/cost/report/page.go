package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // templates
	"encoding/base64"
	"html/template"

	"github.com/tideline-io/tideline/internal/cost"
)

var (
	//go:embed page.css
	style string
	//go:embed page.html.tmpl
	pageText string
	pages    = template.Must(template.New("page").Parse(pageText))
	// policy forbids everything but the page's own style, so that whatever comes into it loads nothing and runs nothing.
	policy = func() string {
		sum := sha256.Sum256([]byte(style))
		return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
			"'; base-uri 'none'; form-action 'none'"
	}()
)

// RenderPage is the report as HTML that stands alone: nothing is loaded, and no script is in it.
func RenderPage(r cost.Report, o Options) ([]byte, error) {
	w := makeView(r, o)
	drawings := make([]drawing, 0, len(w.Charts))
	for _, c := range w.Charts {
		drawings = append(drawings, layOut(c))
	}
	var b bytes.Buffer
	err := pages.Execute(&b, struct {
		view
		Policy   string
		Style    template.CSS
		Drawings []drawing
	}{w, policy, template.CSS(style), drawings}) //nolint:gosec // the style is our file, embedded
	return b.Bytes(), err
}
