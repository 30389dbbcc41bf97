package submit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/internal/cli"
)

// openLog follows a log, each line with its time before it, from a time on; a zero time is for all of it.
type openLog func(ctx context.Context, since time.Time) (io.ReadCloser, error)

// logsOf reads the log of a pod of a cluster.
func logsOf(config *rest.Config, namespace, pod string) (openLog, error) {
	c := rest.CopyConfig(config)
	c.APIPath, c.GroupVersion, c.NegotiatedSerializer = "/api", &corev1.SchemeGroupVersion, scheme.Codecs.WithoutConversion()
	c.Timeout = 0 // A log lasts as long as its container.
	api, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("connect to read logs: %w", err)
	}
	return func(ctx context.Context, since time.Time) (io.ReadCloser, error) {
		options := &corev1.PodLogOptions{Container: container, Follow: true, Timestamps: true}
		if !since.IsZero() {
			options.SinceTime = ptr.To(metav1.NewTime(since))
		}
		return api.Get().Namespace(namespace).Resource("pods").Name(pod).SubResource("log").
			VersionedParams(options, scheme.ParameterCodec).Stream(ctx)
	}, nil
}

// logReader copies the log of worker 0, also that of its successors.
type logReader struct {
	open openLog
	to   io.Writer
	// say is where it says that there is no log.
	say   io.Writer
	every time.Duration

	// last is the time of the last line.
	last time.Time
}

// follow copies until ctx ends, or until the job has ended and its log was read once more.
func (l *logReader) follow(ctx context.Context, ended <-chan struct{}) {
	for over := false; ctx.Err() == nil; {
		log, err := l.open(ctx, l.last)
		switch {
		case err == nil:
			l.copy(log)
			_ = log.Close()
		case apierrors.IsForbidden(err):
			cli.Tell(l.say, "the log is not shown: you may not get pods/log in this namespace\n")
			return
		}
		if over {
			return
		}
		select {
		case <-ctx.Done():
		case <-ended:
			over = true
		case <-time.After(l.every):
		}
	}
}

// copy copies lines that are newer than the last, without their times. It keeps no more than the beginning of one line.
func (l *logReader) copy(from io.Reader) {
	reader := bufio.NewReaderSize(from, 64<<10)
	for begins, shown := true, false; ; {
		part, err := reader.ReadSlice('\n')
		if begins && len(part) > 0 {
			stamp, said, _ := bytes.Cut(part, []byte(" "))
			at, notStamped := time.Parse(time.RFC3339Nano, string(stamp))
			if shown = notStamped != nil || at.After(l.last); notStamped == nil {
				part = said
				if shown {
					l.last = at
				}
			}
		}
		if shown {
			_, _ = l.to.Write(part)
		}
		if begins = err == nil; err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}
