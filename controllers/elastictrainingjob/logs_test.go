package elastictrainingjob

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
)

func TestLogsShareConnectionsOfTheirOwn(t *testing.T) {
	g := NewWithT(t)
	var mu sync.Mutex
	connections := map[string]bool{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		connections[r.RemoteAddr] = r.ProtoMajor == 2
		mu.Unlock()
		w.(http.Flusher).Flush()
		<-r.Context().Done() // The log goes on.
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	gathering, err := gatheringClient(config)
	g.Expect(err).NotTo(HaveOccurred())
	logs, err := newLogs(config, gathering)
	g.Expect(err).NotTo(HaveOccurred())
	for _, pod := range []string{"a", "b"} {
		ctx, stop := context.WithCancel(t.Context())
		log, err := logs.open(ctx, "ads", pod, "trainer", time.Time{})
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = log.Close() })
		t.Cleanup(stop)
	}
	mu.Lock()
	defer mu.Unlock()
	g.Expect(connections).To(HaveLen(1), "both streams are on one connection")
	g.Expect(connections).To(HaveEach(BeTrue()), "of HTTP/2")
}
