package faults

import (
	"bytes"
	"context"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// proxy stands between one operator and the API server. It passes everything on as it is, bearer token included, with two
// exceptions: what chooseFault says of a request happens to it, and what the operator lists and watches is narrowed to what is
// its environment's. The operator knows no difference, and so several operators, each with a proxy and a namespace of its own,
// live in one cluster without seeing each other's jobs and profiles.
type proxy struct {
	view
	server   *httptest.Server
	upstream *httputil.ReverseProxy
	hooks
	// watchDelay is how late arrives what a watch tells of a resource.
	watchDelay atomic.Pointer[func(resource string) time.Duration]
	// delayedParts counts what arrived later.
	delayedParts atomic.Int64
	// downUntil is when the API server is to be reached again, in nanoseconds; 0 if it always was.
	downUntil atomic.Int64
	// silence is closed when packets pass again; nil if they always did.
	silence atomic.Pointer[chan struct{}]

	mu sync.Mutex
	// calls are all requests except watches.
	calls       []*call
	chooseFault func(call) fault
	// writes is how many writes were counted since the count began.
	writes int
}

// hooks are what faults do to the operator, and who knows of it.
type hooks struct {
	// crash kills the operator and starts it anew.
	crash func()
	// stall pauses the operator, and returns when it is to go on.
	stall func()
	// loseSight is told that the operator misses what happens.
	loseSight func()
}

// newProxy serves at a port of the loopback interface until it is closed. The kubeconfig is that of the operator's service
// account.
func newProxy(kubeconfig string, v view, h hooks) (*proxy, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	// Whoever asks brings the token.
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	p := &proxy{view: v, hooks: h, chooseFault: noFaults}
	p.upstream = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      transport,
		FlushInterval:  -1, // a watch tells at once
		ModifyResponse: p.changeAnswer,
		ErrorLog:       log.New(io.Discard, "", 0), // connections end when the operator is killed
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler) // without an API server there is no answer
		},
	}
	p.server = httptest.NewUnstartedServer(p)
	p.server.Listener = gate{p.server.Listener, p}
	p.server.EnableHTTP2 = true
	p.server.Config.ErrorLog = p.upstream.ErrorLog
	p.server.StartTLS() // client-go sends no token without TLS
	return p, nil
}

// writeKubeconfig writes the kubeconfig of the operator's service account with the proxy for its API server.
func (p *proxy) writeKubeconfig(original, path string) error {
	config, err := clientcmd.LoadFromFile(original)
	if err != nil {
		return err
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	for name := range config.Clusters {
		config.Clusters[name] = &api.Cluster{Server: p.server.URL, CertificateAuthorityData: authority}
	}
	return clientcmd.WriteToFile(*config, path)
}

func (p *proxy) close() { p.server.CloseClientConnections(); p.server.Close() }

// vanish ends every connection, and accepts none for some time.
func (p *proxy) vanish(d time.Duration) {
	p.downUntil.Store(time.Now().Add(d).UnixNano())
	go p.server.CloseClientConnections() // which waits for who asks for it
}

// reappear has connections be accepted again.
func (p *proxy) reappear() { p.downUntil.Store(time.Now().UnixNano()) }

func (p *proxy) down() bool { return time.Now().UnixNano() < p.downUntil.Load() }

// gate closes what connects while the API server is not to be reached.
type gate struct {
	net.Listener
	proxy *proxy
}

// Accept implements net.Listener.
func (g gate) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil || !g.proxy.down() {
			return c, err
		}
		_ = c.Close()
	}
}

// count starts anew: the next write is number 1.
func (p *proxy) count() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		c.number = 0
	}
	p.writes = 0
}

// inject has faults happen to requests from now on.
func (p *proxy) inject(choose func(call) fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.chooseFault = choose
}

// counted lists the writes since the count began.
func (p *proxy) counted() []call {
	return p.where(func(c *call) bool { return c.number > 0 })
}

// answered lists the writes that the API server answered, from the very first.
func (p *proxy) answered() []call {
	return p.where(func(c *call) bool { return c.isWrite() && c.code != 0 })
}

// faulted lists the requests to which a fault happened.
func (p *proxy) faulted() []call {
	return p.where(func(c *call) bool { return c.fault != noFault })
}

func (p *proxy) where(is func(*call) bool) []call {
	p.mu.Lock()
	defer p.mu.Unlock()
	var selected []call
	for _, c := range p.calls {
		if is(c) {
			selected = append(selected, *c)
		}
	}
	return selected
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, err := requestInfos.NewRequestInfo(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if p.down() {
		panic(http.ErrAbortHandler) // it came in at the last moment
	}
	p.awaitSound()
	r = r.WithContext(apirequest.WithRequestInfo(r.Context(), info))
	p.narrow(r, info)
	if info.Verb == "watch" {
		p.upstream.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the operator is gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	p.answer(w, r, p.note(info, body))
}

// changeAnswer narrows an answer to what the operator may see, and delays what a watch tells.
func (p *proxy) changeAnswer(response *http.Response) error {
	info, known := apirequest.RequestInfoFrom(response.Request.Context())
	if !known {
		return nil
	}
	if err := p.sift(response, info); err != nil {
		return err
	}
	p.delayWatch(response, info)
	p.silenceWatch(response, info)
	return nil
}

// note counts a request and decides what happens to it.
func (p *proxy) note(info *apirequest.RequestInfo, body []byte) *call {
	c := newCall(info, body)
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.isWrite() {
		p.writes++
		c.number = p.writes
	}
	c.fault = p.chooseFault(*c)
	p.calls = append(p.calls, c)
	return c
}

// answer lets happen to the request what was decided.
func (p *proxy) answer(w http.ResponseWriter, r *http.Request, c *call) {
	if c.fault == stall {
		p.stall()
	}
	answer := httptest.NewRecorder()
	if c.fault.carriedOut() {
		// To its end, even if the operator is gone before.
		p.upstream.ServeHTTP(answer, r.WithContext(context.WithoutCancel(r.Context())))
		p.mu.Lock()
		c.code = answer.Code
		p.mu.Unlock()
	}
	if c.fault == silenced {
		p.loseSight()
		p.fallSilent(partition)
	}
	p.awaitSound()
	switch {
	case c.fault.crashes():
		p.crash()
		panic(http.ErrAbortHandler) // whoever asked is gone
	case c.fault == cutOff:
		p.loseSight()
		p.vanish(outage)
		panic(http.ErrAbortHandler)
	case c.fault.refuses():
		c.fault.refuse(w, *c)
		return
	}
	for key, values := range answer.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // an operator that is gone reads nothing
}

var requestInfos = &apirequest.RequestInfoFactory{
	APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
}
