// Package why are the commands that say why: of now, from the objects of the cluster, and of the past, from the ledger, where the
// operator's configuration and its ledger are, which is in its pod.
package why

import "time"

// timeout bounds a question.
const timeout = time.Minute
