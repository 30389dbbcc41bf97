package training

import (
	"math/rand/v2"
	"testing"
)

// FuzzPlan drives histories by the fuzzer's bytes, which finds its way to code that random numbers seldom reach.
func FuzzPlan(f *testing.F) {
	for seed := range uint64(16) {
		random, bytes := rand.New(rand.NewPCG(seed, 0)), make([]byte, 40+20*seed)
		for i := range bytes {
			bytes[i] = byte(random.IntN(256))
		}
		f.Add(bytes)
	}
	f.Fuzz(func(t *testing.T, bytes []byte) {
		first, again := script(bytes), script(bytes)
		if wrong := history(t, &first, nil); wrong != "" {
			history(t, &again, t.Logf)
			t.Fatal(wrong)
		}
	})
}
