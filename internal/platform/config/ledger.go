package config

import (
	"cmp"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Ledger says in which database the operator keeps its ledger, if in any, and for how long.
type Ledger struct {
	// File of a SQLite database, an absolute path. Its folder is created if only that is missing. Default: none.
	File string `json:"file"`
	// PostgresDSNFile is a file with the DSN of a PostgreSQL database, an absolute path. The DSN has a password, so it never stands
	// in the configuration, which is logged. Default: none.
	PostgresDSNFile string `json:"postgresDSNFile"`
	// RetentionDays is for how many days it is kept, from 1 to 3650; 0 for ever. Default: 400.
	RetentionDays int32 `json:"retentionDays"`
	// UserLabel is the annotation, or else the label, of pods of other controllers whose value is the user that they count for. A
	// name with an @ fits into an annotation only. Default: tideline.io/owner.
	UserLabel string `json:"userLabel"`
}

// UserNamedBy is the user that a pod of another controller names: by the annotation, or else by the label; empty for none.
func (l Ledger) UserNamedBy(pod *corev1.Pod) string {
	return cmp.Or(pod.Annotations[l.UserLabel], pod.Labels[l.UserLabel])
}

// DefaultLedger returns the default: no ledger.
func DefaultLedger() Ledger {
	return Ledger{RetentionDays: 400, UserLabel: "tideline.io/owner"}
}

// IsConfigured is true if there is a ledger.
func (l Ledger) IsConfigured() bool { return l.File != "" || l.PostgresDSNFile != "" }

func (p *problems) ledger(l Ledger) {
	if l.File != "" && !filepath.IsAbs(l.File) {
		p.value("ledger.file", l.File, "it must be the absolute path of a file, or empty for none")
	}
	switch {
	case l.PostgresDSNFile == "":
	case !filepath.IsAbs(l.PostgresDSNFile):
		// The value is not quoted: somebody may have put the DSN here, with its password.
		p.add("ledger.postgresDSNFile", "is not an absolute path: it must be the path of a file that holds the DSN, or empty for none")
	case l.File != "":
		p.value("ledger.postgresDSNFile", l.PostgresDSNFile, "ledger.file is "+quote(l.File)+", and there is one ledger: "+
			"leave one of the two empty")
	}
	p.between("ledger.retentionDays", l.RetentionDays, 0, maxRetention)
	if len(validation.IsQualifiedName(l.UserLabel)) > 0 {
		p.value("ledger.userLabel", l.UserLabel, "it must be the name of a label, for example example.com/user")
	}
}
