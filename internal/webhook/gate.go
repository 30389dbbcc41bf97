package webhook

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"time"

	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	// maxReview is what a review may have in bytes: the object, the one that it replaces, and who asks.
	maxReview = 2*maxObject + 1<<19
	// smallReview is what those of usual jobs stay below by far. They have room of their own, so that large ones, or whoever sends
	// large ones slowly, hold up none of them.
	smallReview = 128 << 10
	// What may be in memory at a time, in bytes, of all webhooks together. A review is there up to four times while it is read, and
	// lists take twice their size while they grow. Room for decoded ones is for two of the largest.
	roomForSmall, roomForLarge, roomForDecoded = 4 << 20, 2 * maxReview, 2 * maxDecoded
	// leastDecoded is what each decoded review counts for at least.
	leastDecoded = 32 << 10
	// headLength is how much of a review is looked at for its uid, which the API server writes first.
	headLength = 4 << 10
	// drained is how much of a review that is refused is read all the same, and forgotten: a caller that still writes may not see
	// the answer. The API server takes requests of 3 MB, and so sends no more than two of those.
	drained = 8 << 20
	// readTimeout is how long a review may take to arrive, and roomTimeout how long it waits for room. With reviewTimeout they are
	// below what the API server gives a webhook.
	readTimeout, roomTimeout = 2 * time.Second, time.Second
)

// gate lets reviews through to handlers as far as there is memory for them. Whoever reaches the port may send one, so each is
// measured before it is decoded.
type gate struct {
	small, large, decoded *semaphore.Weighted
	// arrival is how long a review may take to arrive, and patience how long it waits for room.
	arrival, patience time.Duration
}

func newGate() *gate {
	return &gate{
		small: semaphore.NewWeighted(roomForSmall), large: semaphore.NewWeighted(roomForLarge),
		decoded: semaphore.NewWeighted(roomForDecoded), arrival: readTimeout, patience: roomTimeout,
	}
}

// guard puts the gate before a handler that reads objects as this type.
func (g *gate) guard(object reflect.Type, handler admission.Handler) http.Handler {
	hook := &admission.Webhook{Handler: handler}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, object, hook) })
}

func (g *gate) serve(w http.ResponseWriter, r *http.Request, object reflect.Type, hook http.Handler) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	connection := http.NewResponseController(w)
	_ = connection.SetReadDeadline(time.Now().Add(g.arrival)) // A recorder of tests has no deadlines.
	body := bufio.NewReaderSize(r.Body, headLength)
	head, _ := body.Peek(headLength) // Whatever is wrong comes again when it is read.
	answer := answerer{w, uidOf(head)}

	length := r.ContentLength
	if length < 0 {
		length = maxReview
	}
	if length > maxReview {
		drain(body, r.ContentLength)
		answer.tooLarge(length)
		return
	}
	room := g.large
	if length <= smallReview {
		room = g.small
	}
	if !g.acquire(r.Context(), room, length) {
		drain(body, r.ContentLength)
		answer.busy()
		return
	}
	defer room.Release(length)
	review, err := read(body, r.ContentLength)
	if err != nil {
		answer.refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Sprintf("the review did not arrive within %s: %v: "+
			"send it again", g.arrival, err))
		return
	}
	if len(review) > maxReview {
		drain(body, -1)
		answer.tooLarge(int64(len(review)))
		return
	}
	_ = connection.SetReadDeadline(time.Time{}) // One that passes later would end the context of the handler.
	size, refusal := measure(review, object)
	if refusal != nil {
		answer.refuse(refusal.code, refusal.reason, refusal.words)
		return
	}
	if !g.acquire(r.Context(), g.decoded, size) {
		answer.busy()
		return
	}
	defer g.decoded.Release(size)
	measured := r.WithContext(r.Context())
	measured.Body, measured.ContentLength = io.NopCloser(bytes.NewReader(review)), int64(len(review))
	hook.ServeHTTP(w, measured)
}

// acquire waits for room for a while.
func (g *gate) acquire(ctx context.Context, room *semaphore.Weighted, n int64) bool {
	if room.TryAcquire(n) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, g.patience)
	defer cancel()
	return room.Acquire(ctx, n) == nil
}

// read reads a review of this length, or one byte more than it may have where the length is not said.
func read(body io.Reader, length int64) ([]byte, error) {
	if length >= 0 {
		review := make([]byte, length)
		_, err := io.ReadFull(body, review)
		return review, err
	}
	review := make([]byte, maxReview+1) // At once: a buffer that grows takes more.
	n, err := io.ReadFull(body, review)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return review[:n], err
}

func drain(body io.Reader, length int64) {
	if length <= drained {
		_, _ = io.CopyN(io.Discard, body, drained) // It ends early, or the caller is gone.
	}
}

// refused is why a review is not decoded.
type refused struct {
	code   int32
	reason metav1.StatusReason
	words  string
}

// measure tells for how much a review counts while it is decoded.
func measure(review []byte, object reflect.Type) (int64, *refused) {
	// Asked first, because what is no JSON would be read as YAML, a few lines of which may become gigabytes.
	if !bytes.HasPrefix(bytes.TrimLeft(review, " \t\r\n"), []byte("{")) || !json.Valid(review) {
		return 0, &refused{http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Sprintf("the body of %d bytes is no JSON object: "+
			"send an AdmissionReview of admission.k8s.io/v1 in JSON", len(review))}
	}
	size, wrong := decodedSize(review, object)
	if wrong != "" {
		return 0, &refused{http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, wrong}
	}
	return int64(max(size, leastDecoded)), nil
}

// answerer refuses a review: by an AdmissionReview where its uid is known, as the API server then repeats the words to the user,
// and by the status of HTTP otherwise.
type answerer struct {
	w   http.ResponseWriter
	uid types.UID
}

func (a answerer) tooLarge(length int64) {
	a.refuse(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, fmt.Sprintf("the review has %d bytes or "+
		"more, and %d are read, because the API server stores no object of more than %d: shorten what is long in the object, and have "+
		"scripts in the image or in a ConfigMap", length, maxReview, maxObject))
}

func (a answerer) busy() {
	a.w.Header().Set("Retry-After", "1")
	a.refuse(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, fmt.Sprintf("other reviews have taken all the memory "+
		"that the operator has for them, for longer than %s: try again in a moment", roomTimeout))
}

func (a answerer) refuse(code int32, reason metav1.StatusReason, words string) {
	if a.uid == "" {
		http.Error(a.w, words, int(code))
		return
	}
	status := &metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: words}
	if reason == metav1.StatusReasonTooManyRequests {
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	}
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Response: &admissionv1.AdmissionResponse{UID: a.uid, Result: status},
	}
	a.w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(a.w).Encode(review); err != nil {
		ctrl.Log.WithName("admission").V(1).Info("The caller was gone before it was answered", "reason", err.Error())
	}
}

// uidOf finds request.uid in the beginning of a review; empty if it is not there.
func uidOf(head []byte) types.UID {
	const longest = 128
	decoder := json.NewDecoder(bytes.NewReader(head))
	var path [3]string // the key at each depth, the first of which is 1
	depth, isKey := 0, false
	for {
		token, err := decoder.Token()
		if err != nil {
			return ""
		}
		switch token := token.(type) {
		case json.Delim:
			switch token {
			case '{':
				depth, isKey = depth+1, true
				continue
			case '[':
				if !passList(decoder) {
					return ""
				}
			default:
				depth--
			}
		case string:
			if isKey {
				if depth < len(path) {
					path[depth] = token
				}
				isKey = false
				continue
			}
			if depth == 2 && path == [3]string{"", "request", "uid"} && len(token) <= longest {
				return types.UID(token)
			}
		}
		if depth == 0 {
			return "" // It is over, or is no object.
		}
		isKey = true // What was read was a value, after which a key follows.
	}
}

// passList passes what is left of a list.
func passList(decoder *json.Decoder) bool {
	for depth := 1; depth > 0; {
		token, err := decoder.Token()
		if err != nil {
			return false
		}
		switch token {
		case json.Delim('['), json.Delim('{'):
			depth++
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
	}
	return true
}
