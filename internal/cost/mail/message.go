package mail

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"

	"github.com/tideline-io/tideline/internal/cost/delivery"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// Message is a mail to one recipient.
type Message struct {
	// ID tells mail programs that a mail is the one they have already: see [MessageID].
	ID string
	// From and To are plain addresses.
	From, To string
	// Subject is one line.
	Subject string
	// Date is when the report was made.
	Date time.Time
	// Text is for programs that show no HTML.
	Text string
	// HTML refers to pictures by cid:NAME.
	HTML string
	// Pictures are PNGs, Attachments are files of any kind.
	Pictures, Attachments []File
}

// File is a part of a message.
type File struct {
	// Name of letters, digits, dots, dashes and underscores.
	Name string
	// Type of an attachment, as in text/csv; pictures are image/png.
	Type string
	// Content as bytes.
	Content []byte
}

// fileName is what names of files are made of: they stand in headers.
var fileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// fileType is what types of files are made of.
var fileType = regexp.MustCompile(`^[a-z]+/[a-z0-9.+-]+(; ?charset=utf-8)?$`)

// MessageID is the same for the same mail of a report, and for no other: mail programs show two with one ID as one, or keep the
// first. Revision is that of what the report says about the period.
func MessageID(reportUID string, period time.Time, revision int, r delivery.Recipient) string {
	// Of texts and a number JSON has no error, and no two lists of them are the same JSON.
	of, _ := json.Marshal([]any{reportUID, period.Unix(), revision, r.Kind, r.User, r.Address})
	sum := sha256.Sum256(of)
	return hex.EncodeToString(sum[:16])
}

// composeMessage makes what is sent of a message. Its errors are ErrSettings and ErrRefused.
func (m Message) composeMessage() (*gomail.Msg, error) {
	from, err := ParseAddress(m.From)
	if err != nil {
		return nil, fmt.Errorf("%w: the sender: %w", ErrSettings, err)
	}
	to, err := ParseAddress(m.To)
	if err != nil {
		return nil, fmt.Errorf("%w: the recipient: %w", ErrRefused, err)
	}
	if err := m.checkHeaders(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	if err := errors.Join(msg.From(from), msg.To(to)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	msg.Subject(m.Subject)
	msg.SetDateWithValue(m.Date)
	msg.SetMessageIDWithValue(m.ID + from[strings.LastIndexByte(from, '@'):])
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: vacation programs do not answer such mails
	msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	if m.HTML != "" {
		msg.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	}
	for _, f := range m.Pictures {
		msg.EmbedReadSeeker(f.Name, bytes.NewReader(f.Content), gomail.WithFileContentType("image/png"),
			gomail.WithFileContentID("<"+f.Name+">"))
	}
	for _, f := range m.Attachments {
		msg.AttachReadSeeker(f.Name, bytes.NewReader(f.Content), gomail.WithFileContentType(gomail.ContentType(f.Type)))
	}
	return msg, nil
}

// checkHeaders finds what must not stand in a header.
func (m Message) checkHeaders() error {
	if strings.ContainsFunc(m.Subject, unicode.IsControl) || m.Subject == "" {
		return fmt.Errorf("the subject %q is not one line of text", clip(m.Subject))
	}
	if !fileName.MatchString(m.ID) {
		return fmt.Errorf("the ID %q is malformed", clip(m.ID))
	}
	for _, f := range m.Pictures {
		if !fileName.MatchString(f.Name) {
			return fmt.Errorf("the picture %q has an unsuitable name", clip(f.Name))
		}
	}
	for _, f := range m.Attachments {
		if !fileName.MatchString(f.Name) || !fileType.MatchString(f.Type) {
			return fmt.Errorf("the file %q of type %q has an unsuitable name or type", clip(f.Name), clip(f.Type))
		}
	}
	return nil
}

// longestWords bounds what is repeated of others' words, in bytes.
const longestWords = 200

func clip(s string) string { return text.ClipLine(s, longestWords) }
