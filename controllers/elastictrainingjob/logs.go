package elastictrainingjob

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/training/progress"
)

const (
	// logsPerSecond and logsAtOnce bound how fast logs are opened, as after a start of the operator.
	logsPerSecond, logsAtOnce = 50, 100
	// firstLines is how much of a log is read that was written before it is followed.
	firstLines = 200
	// lineBuffer holds a line with its time.
	lineBuffer = progress.MaxLine + 64
	// logWindow and mostOfLog bound how much of one log is read: of a longer one only samples are.
	logWindow, mostOfLog = 10 * time.Second, 8 << 20
	// gatherLogs is how often connections with logs are read, and so how late a line is heard of.
	gatherLogs = time.Second
	// connecting is how long a connection for logs may take to open, and keepAlive how often it is probed: client-go's own.
	connecting, keepAlive = 30 * time.Second, 30 * time.Second
)

// errChatty says that a log is too long to be followed.
var errChatty = fmt.Errorf("the log says more than %d MiB within %s", mostOfLog>>20, logWindow)

// logs opens the logs of pods.
type logs struct{ api *rest.RESTClient }

// gatheringClient returns a client with connections of its own, for as many logs as there are trainings.
func gatheringClient(config *rest.Config) (*http.Client, error) {
	c := rest.CopyConfig(config)
	dial := c.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: connecting, KeepAlive: keepAlive}).DialContext
	}
	c.Dial = kube.GatherReads(dial, gatherLogs)
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("make a client that reads logs: %w", err)
	}
	return client, nil
}

// newLogs returns logs that are read as the operator is connected, by a client.
func newLogs(config *rest.Config, client *http.Client) (*logs, error) {
	c := rest.CopyConfig(config)
	c.APIPath, c.GroupVersion, c.NegotiatedSerializer = "/api", &corev1.SchemeGroupVersion, scheme.Codecs.WithoutConversion()
	c.QPS, c.Burst = logsPerSecond, logsAtOnce
	api, err := rest.RESTClientForConfigAndClient(c, client)
	if err != nil {
		return nil, fmt.Errorf("connect to read logs: %w", err)
	}
	return &logs{api: api}, nil
}

// open follows the log of a container, each line with its time, from a time on; a zero time is for the last lines.
func (l *logs) open(ctx context.Context, namespace, pod, container string, since time.Time) (io.ReadCloser, error) {
	options := &corev1.PodLogOptions{
		Container: container, Follow: true, Timestamps: true, TailLines: ptr.To[int64](firstLines),
	}
	if !since.IsZero() {
		options.SinceTime = ptr.To(metav1.NewTime(since))
	}
	return l.api.Get().Namespace(namespace).Resource("pods").Name(pod).SubResource("log").
		VersionedParams(options, scheme.ParameterCodec).Stream(ctx)
}

// readLines hands out each line of ours with its time, until the log ends. Of a line that is too long it hands out the beginning.
// It keeps no more of the log than one line.
func readLines(log io.Reader, now func() time.Time, take func(line []byte, at time.Time)) error {
	reader := bufio.NewReaderSize(&measuredReader{reader: log, now: now, since: now()}, lineBuffer)
	for {
		line, err := reader.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !long {
			return err // What has no end may be half a line.
		}
		stamp, said, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		if bytes.HasPrefix(said, []byte(progress.Prefix)) {
			if at, err := time.Parse(time.RFC3339Nano, string(stamp)); err == nil {
				take(said, at)
			}
		}
		for long {
			_, err = reader.ReadSlice('\n')
			if long = errors.Is(err, bufio.ErrBufferFull); err != nil && !long {
				return err
			}
		}
	}
}

// measuredReader fails once there is more to read than is worth it.
type measuredReader struct {
	reader io.Reader
	now    func() time.Time
	since  time.Time
	read   int
}

// Read implements io.Reader.
func (m *measuredReader) Read(p []byte) (int, error) {
	if now := m.now(); now.Sub(m.since) > logWindow {
		m.since, m.read = now, 0
	}
	if m.read > mostOfLog {
		return 0, errChatty
	}
	n, err := m.reader.Read(p)
	m.read += n
	return n, err
}
