package kube

import (
	"iter"
	"sync"
)

// largestBatch is how many requests for one object are under way at most.
const largestBatch = 32

// Batches yields all in parts of 1, 2, 4 and so on up to largestBatch. Kubernetes' Job controller starts pods like that
// (pkg/controller/job, slowStartBatch): what the API server refuses for each of thousands of pods, it says of the first.
func Batches[T any](all []T) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for size := 1; len(all) > 0; size = min(2*size, largestBatch) {
			n := min(size, len(all))
			if !yield(all[:n:n]) {
				return
			}
			all = all[n:]
		}
	}
}

// Together does something for every part of a batch at once, and waits for all. It returns the problem of the earliest part that
// has one, as if they had been done in their order; what follows in the batch may be done nevertheless.
func Together[T any](batch []T, do func(T) *Problem) *Problem {
	if len(batch) == 1 {
		return do(batch[0])
	}
	problems := make([]*Problem, len(batch))
	var all sync.WaitGroup
	for i, part := range batch {
		all.Go(func() { problems[i] = do(part) })
	}
	all.Wait()
	for _, p := range problems {
		if p != nil {
			return p
		}
	}
	return nil
}
