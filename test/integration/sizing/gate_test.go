package sizing

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
)

// weather is what becomes of questions to Prometheus.
type weather string

const (
	fair     weather = "fair"
	absent   weather = "absent"
	failing  weather = "500"
	slow     weather = "slow"
	warning  weather = "warnings"
	numbless weather = "NaN"
)

// gate stands before Prometheus, and does to its answers what goes wrong with them.
type gate struct {
	*httptest.Server

	mu      sync.Mutex
	weather weather
	asked   int
}

func newGate(of string) *gate {
	target, _ := url.Parse(of) // It is a test's own.
	g := &gate{weather: fair}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = g.spoil
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Accept-Encoding") // What is spoiled must be read.
		switch g.count() {
		case absent:
			if hijacked, ok := w.(http.Hijacker); ok {
				if connection, _, err := hijacked.Hijack(); err == nil {
					_ = connection.Close()
				}
			}
		case failing:
			http.Error(w, "out of luck", http.StatusInternalServerError)
		case slow:
			_, _ = io.Copy(io.Discard, r.Body) // Only then does the server see that the client has gone.
			<-r.Context().Done()
		case fair, warning, numbless:
			proxy.ServeHTTP(w, r)
		}
	}))
	return g
}

func (g *gate) count() weather {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	return g.weather
}

// turn changes the weather.
func (g *gate) turn(to weather) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.weather, g.asked = to, 0
}

// questions counts those since the weather changed.
func (g *gate) questions() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked
}

// spoil changes what Prometheus answers.
func (g *gate) spoil(r *http.Response) error {
	g.mu.Lock()
	is := g.weather
	g.mu.Unlock()
	if is == fair {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	text := string(body)
	if is == warning {
		text = strings.Replace(text, `{"status":"success"`, `{"status":"success","warnings":["a store did not answer"]`, 1)
	} else {
		text = numbers.ReplaceAllString(text, `,"NaN"]`)
	}
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	r.Header.Del("Content-Length")
	return nil
}
