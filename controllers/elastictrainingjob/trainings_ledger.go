package elastictrainingjob

import (
	"github.com/tideline-io/tideline/internal/training/progress"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// tellLedger tells the ledger what was seen of a job since it was last told. The lock is held.
func (t *trainings) tellLedger(f *followed) {
	f.recorded = t.now()
	seen := f.meter.Account.TakeSeen(f.recorded)
	if f.owner.UID == "" || seen.IsEmpty() && !f.owner.Succeeded {
		return
	}
	t.record(toTrained(f.owner, seen))
}

// toTrained is what was seen of a training of an owner, in words of the ledger.
func toTrained(owner ledger.Trained, seen progress.Seen) ledger.Trained {
	owner.From, owner.To, owner.GPUs = seen.From, seen.To, min(seen.GPUs, ledger.MaxGPUs)
	owner.Stretches = make([]ledger.Stretch, 0, len(seen.Stretches))
	for _, s := range seen.Stretches {
		owner.Stretches = append(owner.Stretches, ledger.Stretch(s))
	}
	return owner
}
