package prometheus

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"
)

func TestServerKnowsWhatWasWritten(t *testing.T) {
	t.Parallel()
	at := time.Now().Add(-8 * 24 * time.Hour).Truncate(time.Second)
	p, err := Start(t.Context(), os.Stderr, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "speed{pod=\"a\"} 7 %d\nspeed{pod=\"a\"} 9 %d\n# EOF\n", at.Unix(), at.Add(7*24*time.Hour).Unix())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[time.Time]string{at: "7", at.Add(7 * 24 * time.Hour): "9"} {
		if got := valueAt(t, p, at); got != want {
			t.Errorf("at %s speed is %s, want %s", at, got, want)
		}
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := p.ready(t.Context()); err == nil {
		t.Error("Prometheus answers after it was stopped")
	}
	if _, err := os.Stat(p.dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", p.dir, err)
	}
}

func TestPrometheusRefusesWhatIsNoMetric(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), os.Stderr, func(w io.Writer) error {
		_, err := io.WriteString(w, "speed 7\n# EOF\n")
		return err
	})
	if err == nil {
		t.Fatal("samples without a time were taken")
	}
}

// valueAt is the value of the metric speed.
func valueAt(t *testing.T, p *Server, at time.Time) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		fmt.Sprintf("%s/api/v1/query?query=speed&time=%d", p.URL, at.Unix()), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var body struct {
		Data struct{ Result []struct{ Value [2]any } }
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil || len(body.Data.Result) != 1 {
		t.Fatalf("Prometheus answers %+v, %v", body, err)
	}
	return fmt.Sprint(body.Data.Result[0].Value[1])
}
