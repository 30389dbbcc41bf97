package testutil

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

// Sighting is a job's status as it was seen at some time.
type Sighting struct {
	At     time.Time
	Status v1alpha1.ElasticTrainingJobStatus
}

// Record watches a job, which need not exist yet, until the test ends. The function returned lists every state that the job
// was seen in so far.
func (s *Scenario) Record(job string) func() []Sighting {
	s.t.Helper()
	watch, err := s.Client.Watch(s.ctx, &v1alpha1.ElasticTrainingJobList{}, client.InNamespace(s.Namespace),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", job)})
	s.must(err, "watch job "+job)
	s.t.Cleanup(watch.Stop)
	var mu sync.Mutex
	var seen []Sighting
	go func() {
		for event := range watch.ResultChan() {
			if o, ok := event.Object.(*v1alpha1.ElasticTrainingJob); ok {
				mu.Lock()
				seen = append(seen, Sighting{time.Now(), o.Status})
				mu.Unlock()
			}
		}
	}()
	return func() []Sighting {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}
