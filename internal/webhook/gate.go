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
	// maxReview is the largest review in bytes: the object, the one that it replaces, and the user.
	maxReview = 2*maxObject + 1<<19
	// smallReview is far above the size of usual jobs. Small reviews have room of their own, so that large ones, or a caller who
	// sends large ones slowly, cannot delay them.
	smallReview = 128 << 10
	// The bytes that all webhooks together may have in memory. A review exists up to four times while it is read, and lists take
	// twice their size while they grow. There is room for two decoded reviews of the largest size.
	roomForSmall, roomForLarge, roomForDecoded = 4 << 20, 2 * maxReview, 2 * maxDecoded
	// leastDecoded is the least that a decoded review counts.
	leastDecoded = 32 << 10
	// headLength is how many bytes are searched for the review's uid, which the API server writes first.
	headLength = 4 << 10
	// drained is how many bytes of a refused review are read and dropped. A caller that is still writing may not see the answer
	// otherwise. The API server accepts requests of 3 MB, and so sends at most twice that.
	drained = 8 << 20
	// readTimeout is how long a review may take to arrive, and roomTimeout how long it waits for memory. Together with reviewTimeout
	// they are below the timeout of the webhooks.
	readTimeout, roomTimeout = 2 * time.Second, time.Second
)

// A review passes three checks, each before it costs more:
//
//	length <= maxReview -> room for its bytes (small or large) -> read -> measured -> room for what it becomes in memory -> handler

// gate passes reviews to handlers while there is memory for them. Anyone who reaches the port may send a review, so each is
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

// guardHandler puts the gate before a handler that reads objects as this type.
func (g *gate) guardHandler(object reflect.Type, handler admission.Handler) http.Handler {
	hook := &admission.Webhook{Handler: handler}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serveReview(w, r, object, hook) })
}

func (g *gate) serveReview(w http.ResponseWriter, r *http.Request, object reflect.Type, hook http.Handler) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	connection := http.NewResponseController(w)
	_ = connection.SetReadDeadline(time.Now().Add(g.arrival)) // The recorder of tests supports no deadlines.
	body := bufio.NewReaderSize(r.Body, headLength)
	head, _ := body.Peek(headLength) // An error comes again when the review is read.
	answer := answerer{w, uidOf(head)}

	length := r.ContentLength
	if length < 0 {
		// A review that does not say its length has as much reserved as any may take.
		length = maxReview
	}
	if length > maxReview {
		drainBody(body, r.ContentLength)
		answer.tooLarge(length)
		return
	}
	room := g.large
	if length <= smallReview {
		room = g.small
	}
	if !g.acquire(r.Context(), room, length) {
		drainBody(body, r.ContentLength)
		answer.answerBusy()
		return
	}
	defer room.Release(length)
	review, err := readReview(body, r.ContentLength)
	if err != nil {
		answer.refuseReview(http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Sprintf("the review did not arrive within "+
			"%s: %v: send it again", g.arrival, err))
		return
	}
	if len(review) > maxReview {
		drainBody(body, -1)
		answer.tooLarge(int64(len(review)))
		return
	}
	_ = connection.SetReadDeadline(time.Time{}) // A deadline that passes later would cancel the context of the handler.
	size, refusal := measureReview(review, object)
	if refusal != nil {
		answer.refuseReview(refusal.code, refusal.reason, refusal.words)
		return
	}
	if !g.acquire(r.Context(), g.decoded, size) {
		answer.answerBusy()
		return
	}
	defer g.decoded.Release(size)
	measured := r.WithContext(r.Context())
	measured.Body, measured.ContentLength = io.NopCloser(bytes.NewReader(review)), int64(len(review))
	hook.ServeHTTP(w, measured)
}

// acquire waits for room, at most for the gate's patience.
func (g *gate) acquire(ctx context.Context, room *semaphore.Weighted, n int64) bool {
	if room.TryAcquire(n) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, g.patience)
	defer cancel()
	return room.Acquire(ctx, n) == nil
}

// readReview reads a review of this length. If the length is unknown, it reads at most one byte more than a review may have.
func readReview(body io.Reader, length int64) ([]byte, error) {
	if length >= 0 {
		review := make([]byte, length)
		_, err := io.ReadFull(body, review)
		return review, err
	}
	review := make([]byte, maxReview+1) // In one piece: a buffer that grows takes up to twice the memory.
	n, err := io.ReadFull(body, review)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return review[:n], err
}

func drainBody(body io.Reader, length int64) {
	if length <= drained {
		_, _ = io.CopyN(io.Discard, body, drained) // An error means that the body ended or the caller is gone.
	}
}

// refused is why a review is not decoded.
type refused struct {
	code   int32
	reason metav1.StatusReason
	words  string
}

// measureReview is the memory that a review takes once it is decoded.
func measureReview(review []byte, object reflect.Type) (int64, *refused) {
	// Checked first: the decoder would read anything but JSON as YAML, and a few lines of YAML with aliases can become gigabytes.
	if !bytes.HasPrefix(bytes.TrimLeft(review, " \t\r\n"), []byte("{")) || !json.Valid(review) {
		return 0, &refused{http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Sprintf("the body of %d bytes is not a "+
			"JSON object: "+
			"send an AdmissionReview of admission.k8s.io/v1 in JSON", len(review))}
	}
	size, wrong := decodedSize(review, object)
	if wrong != "" {
		return 0, &refused{http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, wrong}
	}
	return int64(max(size, leastDecoded)), nil
}

// answerer refuses a review. If the uid is known it answers with an AdmissionReview, whose message the API server repeats to
// the user. Otherwise it answers with an HTTP status.
type answerer struct {
	w   http.ResponseWriter
	uid types.UID
}

func (a answerer) tooLarge(length int64) {
	a.refuseReview(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, fmt.Sprintf("the review has "+
		"at least %d bytes, more than the limit of %d; the API server stores objects of at most %d: shorten the object, and "+
		"move scripts "+
		"to the image or a ConfigMap", length, maxReview, maxObject))
}

func (a answerer) answerBusy() {
	a.w.Header().Set("Retry-After", "1")
	a.refuseReview(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, fmt.Sprintf("other reviews have used all "+
		"memory that the operator reserves for them for more than %s: try again in a moment", roomTimeout))
}

func (a answerer) refuseReview(code int32, reason metav1.StatusReason, words string) {
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
		ctrl.Log.WithName("admission").V(1).Info("The caller closed the connection before the answer", "reason", err.Error())
	}
}

// uidOf finds request.uid in the beginning of a review; empty if it is not there.
func uidOf(head []byte) types.UID {
	const longest = 128
	decoder := json.NewDecoder(bytes.NewReader(head))
	var path [3]string // the key at each depth, from depth 1
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
			return "" // The object has ended, or the review is not an object.
		}
		isKey = true // A value was read, so a key follows.
	}
}

// passList skips the rest of a list.
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
