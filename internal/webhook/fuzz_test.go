package webhook

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

// FuzzReview sends whatever to the webhooks: none panics, takes more memory than it may, or answers what is no answer. One part
// is repeated, because the fuzzer by itself makes nothing long.
func FuzzReview(f *testing.F) {
	cut := func(body, part string, path uint8) {
		before, after, _ := strings.Cut(body, part)
		f.Add(path, before, part, after, uint32(1))
		f.Add(path, before, part, after, uint32(200_000))
	}
	for path := range uint8(7) {
		cut(review(jobWith(`[{},{}]`)), "{},", path)
		cut(review(`{"spec":{"template":{"spec":{"volumes":[{},{"name":"a"}]}}}}`), `{},`, path)
		cut(review(`{"metadata":{"annotations":{"a":"b","c":"d"}},"spec":{"tier":"small-traffic"}}`), `"a":"b",`, path)
		cut(review(asking(`"16Gi"`)), "6", path)
		cut(review(`{"spec":{"owner":"bob","submitter":{"username":"bob","groups":["a","b"]}}}`), `"a",`, path)
		cut(strings.Replace(review(`{"spec":{"owner":"bob","reservations":[{},{}]}}`), "CREATE", "UPDATE", 1), `{},`, path)
		cut("a: &a [b,b]\nc: [*a,*a]\n", "*a,", path)
	}
	f.Fuzz(func(t *testing.T, path uint8, before, part, after string, n uint32) {
		const longest = 8 << 20
		body := before + strings.Repeat(part, min(int(n), longest/(len(part)+1))) + after
		all := allHooks()
		paths := slices.Sorted(maps.Keys(all))
		recorder := httptest.NewRecorder()
		request := posted(t, body)
		if n%2 == 0 {
			request.ContentLength = -1
		}
		took := allocated(func() { all[paths[int(path)%len(paths)]].ServeHTTP(recorder, request) })
		if took > mostMemory {
			t.Errorf("%d bytes took %d", len(body), took)
		}
		answered(t, recorder)
	})
}

// answered holds an answer to be one that the API server understands.
func answered(t *testing.T, recorder *httptest.ResponseRecorder) {
	t.Helper()
	var answer admissionv1.AdmissionReview
	switch recorder.Code {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusTooManyRequests:
		if recorder.Body.Len() == 0 {
			t.Errorf("%d without a word", recorder.Code)
		}
	case http.StatusOK:
		if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil || answer.Response == nil {
			t.Errorf("answered with %s (%v)", recorder.Body, err)
			return
		}
		if result := answer.Response.Result; !answer.Response.Allowed && (result == nil || result.Message == "") {
			t.Errorf("refused without a word: %s", recorder.Body)
		}
		if result := answer.Response.Result; result != nil && strings.Contains(result.Message, "panic") {
			t.Errorf("it panicked: %s", result.Message)
		}
	default:
		t.Errorf("answered with %d %s", recorder.Code, recorder.Body)
	}
}
