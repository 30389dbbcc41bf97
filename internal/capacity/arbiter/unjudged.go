package arbiter

// CountUnjudged counts the gangs that wait and that the model does not cover, by what they ask for: values of
// capacity.ListUnmodelled.
func (a *Arbiter) CountUnjudged() map[string]int {
	a.mu.RLock()
	defer a.mu.RUnlock()
	count := map[string]int{}
	for _, v := range a.jobs.verdicts {
		if v.Waiting > 0 && v.Answer.Unknown != "" {
			count[v.Answer.Unknown]++
		}
	}
	return count
}
