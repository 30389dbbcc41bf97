package mail

import (
	"context"
	"errors"
	"fmt"
	"net/textproto"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"github.com/tideline-io/tideline/internal/platform/serverurl"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// Errors of [Send] wrap one of these. They contain no password, and nothing that a server said about one.
var (
	// ErrRefused is for a mail that the server will never accept: its address does not exist, or it is too large.
	ErrRefused = errors.New("the mail server refused the mail")
	// ErrLater is for a mail that the server does not accept now.
	ErrLater = errors.New("the mail server does not accept the mail now")
	// ErrUnreachable is for a server that accepts no mails now.
	ErrUnreachable = errors.New("the mail server cannot be reached")
	// ErrSettings is for a server that accepts no mails until a person changes a setting: it rejects the login, or cannot
	// prove its identity.
	ErrSettings = errors.New("the settings of the mail server are wrong")
	// ErrUnconfirmed is for a mail that may have been accepted: the server got all of it, but did not answer.
	ErrUnconfirmed = errors.New("the mail may have arrived: the server did not confirm it")
)

const (
	// replyNoAuthentication is that of a server that wants a user first, RFC 4954 section 6.
	replyNoAuthentication = 530
	// permanent is the first digit of replies to what will never be done, RFC 5321 section 4.2.1.
	permanent = 5
)

// Send sends a message. It ends with its context: whatever the server had not wholly taken by then is not delivered.
func Send(ctx context.Context, to Server, m Message) error {
	msg, err := m.composeMessage()
	if err != nil {
		return err
	}
	client, end, err := to.openSession(ctx)
	defer end()
	if err != nil {
		return to.explainOpening(ctx, err)
	}
	if err := sendMessage(client, msg, m); err != nil {
		return fmt.Errorf("%w%s", err, timeoutNote(ctx))
	}
	_ = client.Quit() // it has the mail
	return nil
}

// sendMessage hands a message over.
func sendMessage(client *smtp.Client, msg *gomail.Msg, m Message) error {
	if err := client.Mail("<" + msg.GetFrom()[0].Address + ">"); err != nil {
		return explainFailure("the sender "+m.From, err, ErrSettings)
	}
	if err := client.Rcpt("<" + msg.GetTo()[0].Address + ">"); err != nil {
		return explainFailure("the recipient "+m.To, err, ErrRefused)
	}
	writer, err := client.Data()
	if err != nil {
		return explainFailure("the mail", err, ErrRefused)
	}
	if _, err := msg.WriteTo(writer); err != nil {
		// Without the line that ends it nothing is delivered.
		return fmt.Errorf("%w: %s", ErrUnreachable, clip(serverurl.DescribeError(err)))
	}
	err = writer.Close()
	var answer *textproto.Error
	if err != nil && !errors.As(err, &answer) {
		return fmt.Errorf("%w: %s", ErrUnconfirmed, clip(serverurl.DescribeError(err)))
	}
	return explainFailure("the mail", err, ErrRefused)
}

// explainFailure turns a server's reply into an error. It quotes the reply, except in answer to a password.
func explainFailure(what string, err, forGood error) error {
	var answer *textproto.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &answer):
		return fmt.Errorf("%w: %s", ErrUnreachable, clip(serverurl.DescribeError(err)))
	case answer.Code == replyNoAuthentication:
		return fmt.Errorf("%w: it requires a user and a password (%d): set keys %s and %s of the Secret", ErrSettings, answer.Code,
			keyUsername, keyPassword)
	case answer.Code/100 == permanent:
		return fmt.Errorf("%w: the server rejects %s: %s", forGood, clip(what), clip(answer.Error()))
	}
	return fmt.Errorf("%w: the server rejects %s: %s", ErrLater, clip(what), clip(answer.Error()))
}

// timeoutNote says that there was no more time, where that is so.
func timeoutNote(ctx context.Context) string {
	if ctx.Err() != nil {
		return " (it took too long, or the operator ends)"
	}
	return ""
}

// StateOf is what becomes of a delivery by how [Send] ended.
func StateOf(err error) ledger.DeliveryState {
	switch {
	case err == nil:
		return ledger.DeliverySent
	case errors.Is(err, ErrUnconfirmed):
		return ledger.DeliverySending
	case errors.Is(err, ErrRefused):
		return ledger.DeliveryRefused
	case errors.Is(err, ErrSettings):
		return ledger.DeliveryHeld
	}
	return ledger.DeliveryDeferred
}
