package report

import (
	"bytes"
	_ "embed" // templates
	"html/template"
	"strings"

	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/internal/platform/text"
)

const (
	// mailBytes is how long the HTML of a mail may be: Gmail cuts off what is longer than 102 kB.
	mailBytes = 95_000
	// subjectBytes leaves a subject whole in most lists of mails.
	subjectBytes = 140
)

var (
	//go:embed mail.html.tmpl
	mailText string
	mails    = template.Must(template.New("mail").Parse(mailText))
)

// File is a part of a mail, or something else to keep.
type File struct {
	// Name of the file; of a picture it is its content id too.
	Name string
	// Type is its media type.
	Type    string
	Content []byte
}

// Mail is a report to be sent.
type Mail struct {
	Subject string
	// HTML and Text are two forms of the same.
	HTML, Text string
	// Pictures are shown in HTML, each by its name as content id.
	Pictures []File
	// Attachments are what programs read.
	Attachments []File
}

// image is a chart that is shown as a picture.
type image struct {
	chart
	Source template.URL
}

// ComposeMail makes a mail of a report. Rankings in its HTML are as long as mail programs show them whole; the attached CSV has
// all.
func ComposeMail(r cost.Report, o Options) (Mail, error) {
	m := Mail{Subject: MailSubject(r, o)}
	w := makeView(r, o)
	m.Text = plainText(w)
	images := make([]image, 0, len(w.Charts))
	for _, c := range w.Charts {
		content, err := drawPNG(c)
		if err != nil {
			return Mail{}, err
		}
		file := File{c.ID + ".png", "image/png", content}
		m.Pictures = append(m.Pictures, file)
		images = append(images, image{c, template.URL("cid:" + file.Name)}) //nolint:gosec // the name is a constant of ours
	}
	var err error
	if m.HTML, err = mailHTML(r, o, w, images); err != nil {
		return Mail{}, err
	}
	table, err := CSV(r, o)
	if err != nil {
		return Mail{}, err
	}
	m.Attachments = []File{{"report.csv", "text/csv; charset=utf-8", table}}
	return m, nil
}

// mailHTML writes a view of a report, and halves the rankings until the mail is short enough.
func mailHTML(r cost.Report, o Options, w view, images []image) (string, error) {
	o = o.withDefaults()
	for {
		var b bytes.Buffer
		err := mails.Execute(&b, struct {
			view
			Images []image
		}{w, images})
		if err != nil || b.Len() <= mailBytes || o.Top == 1 {
			return b.String(), err
		}
		o.Top = (o.Top + 1) / 2
		w = makeView(r, o)
		w.Notes = append(w.Notes, "Rankings are shortened, so that mail programs show this mail whole. The attachment has every row.")
	}
}

// MailSubject is one line for the header of a mail: whose report, what it cost, how far it was used, what can be saved, when.
func MailSubject(r cost.Report, o Options) string {
	r, o = applyOptions(r, o)
	m := moneyOf(r.Currency)
	begin := "Tideline " + text.ClipLine(o.Name, 40)
	if o.Person != "" {
		begin = o.whose(text.ClipLine(o.Person, 40))
	}
	if o.Revision > 1 {
		begin += " (corrected)"
	}
	said := begin + ": " + m.roundAmount(r.Total.Cost) + ", " + formatPercent(r.Total.Utilization) + " in use, "
	if hasKnownUse(r.Total) {
		said += m.roundAmount(r.Total.Recoverable) + " recoverable, "
	}
	return text.ClipLine(strings.ReplaceAll(said+formatDays(r.Period), blank, " "), subjectBytes)
}
