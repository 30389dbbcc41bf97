package config

// Reports says how CostReports are mailed.
type Reports struct {
	// AllowPlainMail allows mail servers without TLS (tls: None in their Secret), for a relay on a trusted network. No password is
	// sent to them. Default: false.
	AllowPlainMail bool `json:"allowPlainMail"`
	// MailTimeoutSeconds is how long sending one mail may take, from 1 to 600. Reports are made and mailed one after another, so the
	// others wait meanwhile. Default: 60.
	MailTimeoutSeconds int32 `json:"mailTimeoutSeconds"`
	// MailRetrySeconds is after what time a failed mail is tried again, from 1 to 3600. It doubles each time, up to an hour.
	// Default: 60.
	MailRetrySeconds int32 `json:"mailRetrySeconds"`
}

// DefaultReports returns the defaults.
func DefaultReports() Reports { return Reports{MailTimeoutSeconds: 60, MailRetrySeconds: 60} }

func (p *problems) reports(r Reports) {
	p.between("reports.mailTimeoutSeconds", r.MailTimeoutSeconds, 1, 600)
	p.between("reports.mailRetrySeconds", r.MailRetrySeconds, 1, maxHour)
}
