package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// view is what the operator of an environment sees of the cluster.
type view struct {
	// namespace is that of the environment. What belongs to it outside of the namespace has a name that begins with it.
	namespace string
	// clusterWide is true in a story of what is outside of namespaces. Shares of profiles are of the nodes that are seen, and room
	// is held for them in the operator's own namespace.
	clusterWide bool
}

// What the API server calls profiles and reports, and Volcano its Queues.
const profilesResource, reportsResource, queuesResource = "resourcequotaprofiles", "costreports", "queues"

var (
	// narrowed are the kinds of which an operator sees those in its environment's namespace only.
	narrowed = sets.New(jobsResource, mergesResource, "pods", "services", "configmaps", "podgroups")
	// sifted are those of which no request can ask for the environment's alone, and siftedToo what is sifted beside them where the
	// story is clusterWide.
	sifted    = sets.New(profilesResource, reportsResource, queuesResource)
	siftedToo = sets.New("pods", "podgroups", "nodes", "namespaces")
)

func (v view) sifts(info *apirequest.RequestInfo) bool {
	sifts := sifted.Has(info.Resource) || v.clusterWide && siftedToo.Has(info.Resource)
	return sifts && info.Namespace == "" && (info.Verb == "list" || info.Verb == "watch")
}

// sees tells whether the operator sees an object of a kind that is sifted.
func (v view) sees(resource string, o *metav1.PartialObjectMetadata) bool {
	profile := o.Labels[v1beta1.LabelProfile]
	switch resource {
	case profilesResource, reportsResource:
		return v.owns(o.Name)
	case queuesResource:
		return profile == "" || v.owns(profile)
	case "nodes":
		return o.Labels[testutil.PoolLabel] == v.namespace
	case "namespaces":
		return o.Name == v.namespace
	}
	return o.Namespace == v.namespace || o.Namespace == testutil.OperatorNamespace && v.owns(profile)
}

// owns tells whether something outside of the namespace is the environment's, by its name.
func (v view) owns(name string) bool { return strings.HasPrefix(name, v.namespace+"-") }

// narrow has the API server tell what the operator may see, or something that can be sifted.
func (v view) narrow(r *http.Request, info *apirequest.RequestInfo) {
	switch {
	case v.sifts(info):
		all := strings.Split(r.Header.Get("Accept"), ",")
		inJSON := slices.DeleteFunc(all, func(t string) bool { return !strings.HasPrefix(strings.TrimSpace(t), "application/json") })
		r.Header.Set("Accept", strings.Join(append(inJSON, "application/json"), ","))
		r.Header.Del("Accept-Encoding")
	case info.Namespace == "" && narrowed.Has(info.Resource) && (info.Verb == "list" || info.Verb == "watch"):
		prefix := strings.TrimSuffix(r.URL.Path, "/"+info.Resource)
		r.URL.Path = fmt.Sprintf("%s/namespaces/%s/%s", prefix, v.namespace, info.Resource)
	}
}

// sift leaves out of an answer what the operator does not see.
func (v view) sift(response *http.Response, info *apirequest.RequestInfo) error {
	switch {
	case !v.sifts(info) || response.StatusCode != http.StatusOK:
		return nil
	case info.Verb == "watch":
		response.Body = v.siftWatch(response.Body, info.Resource)
		return nil
	}
	list := map[string]json.RawMessage{}
	var items []json.RawMessage
	err := errors.Join(json.NewDecoder(response.Body).Decode(&list), response.Body.Close())
	if err == nil {
		err = json.Unmarshal(list["items"], &items)
	}
	if err != nil {
		return err
	}
	seen := make([]json.RawMessage, 0, len(items))
	for _, item := range items {
		o := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(item, o); err != nil {
			return err
		}
		if v.sees(info.Resource, o) {
			seen = append(seen, item)
		}
	}
	if list["items"], err = json.Marshal(seen); err != nil {
		return err
	}
	content, err := json.Marshal(list)
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(content)), int64(len(content))
	response.Header.Set("Content-Length", strconv.Itoa(len(content)))
	return err
}

// siftWatch passes on the events of objects that are seen, and those of the watch itself.
func (v view) siftWatch(source io.ReadCloser, resource string) io.ReadCloser {
	reader, writer := io.Pipe()
	go func() {
		events := json.NewDecoder(source)
		for {
			var raw json.RawMessage
			var event struct {
				Type   watch.EventType
				Object metav1.PartialObjectMetadata
			}
			err := events.Decode(&raw)
			if err == nil {
				err = json.Unmarshal(raw, &event)
			}
			ofWatch := event.Type == watch.Bookmark || event.Type == watch.Error
			if err == nil && (ofWatch || v.sees(resource, &event.Object)) {
				_, err = writer.Write(append(raw, '\n'))
			}
			if err != nil {
				_ = writer.CloseWithError(err) // it has no error
				return
			}
		}
	}()
	return siftedWatch{reader, source}
}

// siftedWatch is a watch that is sifted.
type siftedWatch struct {
	*io.PipeReader

	source io.Closer
}

// Close implements io.Closer.
func (w siftedWatch) Close() error { return errors.Join(w.PipeReader.Close(), w.source.Close()) }
