package kube

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// timed is a clock on a machine whose own clock was set, beside an API server.
type timed struct {
	*Clock
	g *WithT
	// machine is what the machine's clock says, with a monotonic reading, and server what the API server's does.
	machine, server time.Time
	// answer is how long a request takes.
	answer time.Duration
}

func newTimed(t *testing.T, machineAhead time.Duration) *timed {
	t.Helper()
	w := &timed{g: NewWithT(t), machine: time.Now()}
	w.server = w.machine.Add(-machineAhead).Round(0)
	w.Clock = newClock(func() time.Time { return w.machine })
	return w
}

func (w *timed) pass(d time.Duration) { w.machine, w.server = w.machine.Add(d), w.server.Add(d) }

// ask sends a request to the API server, which tells the time.
func (w *timed) ask() {
	transport := w.WrapTransport(roundTripper(func(*http.Request) (*http.Response, error) {
		w.pass(w.answer / 2)
		answer := httptest.NewRecorder()
		answer.Header().Set("Date", w.server.UTC().Format(http.TimeFormat))
		w.pass(w.answer / 2)
		return answer.Result(), nil
	}))
	response, err := transport.RoundTrip(&http.Request{})
	w.g.Expect(err).NotTo(HaveOccurred())
	w.g.Expect(response.Body.Close()).To(Succeed())
}

func (w *timed) agrees() bool { return w.Now().Sub(w.server).Abs() <= mostApart+time.Second }

func TestTimeIsTheAPIServers(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour, 20 * time.Second} {
		w := newTimed(t, ahead)
		w.g.Expect(w.Now()).To(BeTemporally("==", w.machine), "nobody has told another time")
		w.ask()
		w.g.Expect(w.agrees()).To(BeTrue(), "the machine is %s ahead: it is %s, and there %s", ahead, w.Now(), w.server)
		before := w.Now()
		w.pass(10 * time.Minute)
		w.g.Expect(w.Now().Sub(before)).To(Equal(10*time.Minute), "time goes on between two answers")
	}
}

func TestSmallDifferencesDoNotSetTheClock(t *testing.T) {
	w := newTimed(t, 4*time.Second)
	before := w.Now()
	for range 100 {
		w.pass(time.Second / 3)
		w.ask()
		w.g.Expect(w.Now()).To(BeTemporally(">", before), "it never goes back")
		before = w.Now()
	}
	w.g.Expect(before).To(BeTemporally("==", w.machine))
}

func TestALateAnswerDoesNotSetTheClock(t *testing.T) {
	w := newTimed(t, time.Hour)
	w.answer = time.Minute
	w.ask()
	w.g.Expect(w.Now()).To(BeTemporally("==", w.machine))
	w.answer = 4 * time.Second
	w.ask()
	w.g.Expect(w.agrees()).To(BeTrue())
}

func TestAServerThatIsSetBackIsFollowed(t *testing.T) {
	w := newTimed(t, 0)
	w.ask()
	w.server = w.server.Add(-time.Hour)
	w.ask()
	w.g.Expect(w.agrees()).To(BeTrue())
}

func TestAnAnswerWithoutATimeSetsNothing(t *testing.T) {
	w := newTimed(t, time.Hour)
	for _, date := range []string{"", "yesterday"} {
		w.hear(date, w.machine, w.machine)
		w.g.Expect(w.Now()).To(BeTemporally("==", w.machine), date)
	}
}
