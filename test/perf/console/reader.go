package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// turnsEvery is how long a reader looks at a page before it opens the next one.
	turnsEvery = 5 * time.Second
	// patience bounds how long a reader waits for one page.
	patience = 30 * time.Second
)

// reader is a person with the console open: one page is followed, and others are opened one after another.
type reader struct {
	person
	client *http.Client

	mutex sync.Mutex
	seen  seen
}

// person is who reads, and what.
type person struct {
	Address string
	Token   string
	// Number tells readers apart: it chooses the first page, and when within turnsEvery the reader begins.
	Number int
	Pages  []string
}

// seen is what readers have got.
type seen struct {
	// Opened is how long each page took from the request to its last byte.
	Opened []time.Duration
	// Events are how often a page that is followed was made again and had changed.
	Events int
	Failed []string
}

func newReader(p person) *reader {
	return &reader{person: p, client: &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // The operator signs it itself.
	}}}
}

// read opens and follows pages until the context ends, and returns what was got until then.
func (r *reader) read(ctx context.Context) seen {
	begin := turnsEvery / 10 * time.Duration(r.Number%10)
	if rest(ctx, begin) {
		var following sync.WaitGroup
		following.Go(func() { r.follow(ctx, r.Pages[r.Number%len(r.Pages)]) })
		for turn := 1; ; turn++ {
			r.open(ctx, r.Pages[(r.Number+turn)%len(r.Pages)])
			if !rest(ctx, turnsEvery) {
				break
			}
		}
		following.Wait()
	}
	r.client.CloseIdleConnections()
	return r.seen
}

// rest waits; it returns false if the context ended meanwhile.
func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func (r *reader) note(what func(*seen)) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	what(&r.seen)
}

// failed notes what went wrong, unless it is the end.
func (r *reader) failed(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		r.note(func(s *seen) { s.Failed = append(s.Failed, err.Error()) })
	}
}

// open reads one page.
func (r *reader) open(ctx context.Context, page string) {
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	response, err := r.ask(asking, page, "text/html")
	if err == nil {
		_, err = io.Copy(io.Discard, response.Body)
		err = errors.Join(err, response.Body.Close())
	}
	if err != nil {
		r.failed(ctx, fmt.Errorf("page %q: %w", page, err))
		return
	}
	took := time.Since(began)
	r.note(func(s *seen) { s.Opened = append(s.Opened, took) })
}

// follow counts the events of a page until the context ends.
func (r *reader) follow(ctx context.Context, page string) {
	response, err := r.ask(ctx, page, "text/event-stream")
	if err != nil {
		r.failed(ctx, fmt.Errorf("follow page %q: %w", page, err))
		return
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "event: page") {
			r.note(func(s *seen) { s.Events++ })
		}
	}
	r.failed(ctx, errors.Join(errors.New("the stream ended"), lines.Err(), response.Body.Close()))
}

// ask sends a request; an answer other than OK is an error.
func (r *reader) ask(ctx context.Context, page, accept string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+r.Address+"/console/"+page, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+r.Token)
	request.Header.Set("Accept", accept)
	response, err := r.client.Do(request)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.Join(errors.New(response.Status), response.Body.Close())
	}
	return response, err
}

// readAll has all of them read until the context ends.
func readAll(ctx context.Context, people []person) (all seen) {
	var reading sync.WaitGroup
	each := make([]seen, len(people))
	for i, p := range people {
		reading.Go(func() { each[i] = newReader(p).read(ctx) })
	}
	reading.Wait()
	for _, s := range each {
		all.Opened = append(all.Opened, s.Opened...)
		all.Events += s.Events
		all.Failed = append(all.Failed, s.Failed...)
	}
	slices.Sort(all.Opened)
	return all
}
