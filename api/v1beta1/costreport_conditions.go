package v1beta1

// Condition types of a CostReport, besides Ready, Reconciling and Stalled, which it shares with jobs. Ready is True while nothing
// keeps reports from being made.
const (
	// ConditionMailed is True once all who are to get the last report by mail have got it, and False while some have not, or will
	// not; absent without recipients.
	ConditionMailed = "Mailed"
	// ConditionDirectoryFaulty is present and True while entries of the directory are left out, because they are wrong: addresses
	// that are none, and leaders who cannot be any. While the directory cannot be read it stays as it was.
	ConditionDirectoryFaulty = "DirectoryFaulty"
)

// Reasons of a CostReport that no job has.
const (
	// ReasonReportMade: the last report is made, and the next one is due at a time.
	ReasonReportMade = "ReportMade"
	// ReasonReportScheduled: no report was made yet, and the first one is due at a time.
	ReasonReportScheduled = "ReportScheduled"
	// ReasonReportDue: a report is being made.
	ReasonReportDue = "ReportDue"
	// ReasonPriceListNotFound: spec.priceListRef names no ConfigMap with key prices.yaml in the operator's namespace.
	ReasonPriceListNotFound = "PriceListNotFound"
	// ReasonInvalidPriceList: the price list cannot be read.
	ReasonInvalidPriceList = "InvalidPriceList"
	// ReasonInvalidDirectory: the directory cannot be read, or spec.directoryRef names none.
	ReasonInvalidDirectory = "InvalidDirectory"
	// ReasonEntriesLeftOut: the directory has entries that are wrong, which are left out.
	ReasonEntriesLeftOut = "EntriesLeftOut"
	// ReasonNoLedger: the operator keeps no ledger, which reports need.
	ReasonNoLedger = "NoLedger"
	// ReasonAllMailed: every mail was accepted.
	ReasonAllMailed = "AllMailed"
	// ReasonMailing: mails are being sent.
	ReasonMailing = "Mailing"
	// ReasonMailServerUnavailable: the server for mail does not answer, or asks to try again.
	ReasonMailServerUnavailable = "MailServerUnavailable"
	// ReasonInvalidMailServer: the Secret of the server for mail is missing or wrong, or the server refuses its password.
	ReasonInvalidMailServer = "InvalidMailServer"
	// ReasonSomeRefused: some mails were refused for good, or their arrival is uncertain.
	ReasonSomeRefused = "SomeRefused"
)
