package config

// Reports are how CostReports are mailed.
type Reports struct {
	// AllowPlainMail lets Secrets of servers for mail say tls: None, for a relay that is reached over a network that nobody else
	// reads. No password is sent there. Default: false.
	AllowPlainMail bool `json:"allowPlainMail"`
	// MailTimeoutSeconds is how long one mail may take, from 1 to 600. Reports are made and mailed one after the other, so that the
	// others wait meanwhile. Default: 60.
	MailTimeoutSeconds int32 `json:"mailTimeoutSeconds"`
	// MailRetrySeconds is how long a mail waits that was not taken, from 1 to 3600. It doubles each time, up to an hour. Default:
	// 60.
	MailRetrySeconds int32 `json:"mailRetrySeconds"`
}

// DefaultReports returns how CostReports are mailed without configuration.
func DefaultReports() Reports { return Reports{MailTimeoutSeconds: 60, MailRetrySeconds: 60} }

func (p *problems) reports(r Reports) {
	p.between("reports.mailTimeoutSeconds", r.MailTimeoutSeconds, 1, 600)
	p.between("reports.mailRetrySeconds", r.MailRetrySeconds, 1, maxHour)
}
