package costreport

// Files of a report that people and programs read, by the names under which they are kept and served.
const (
	FileHTML, FileCSV, FileJSON, FileFOCUS = "report.html", "report.csv", "report.json", "focus.csv"
)

// Files of a report that are kept and not served: the report as the operator reads it again, its summary for later reports, and
// who leads whom in it, which is kept where it has a directory.
const (
	FileData, FileEarlier, FileLeaders = "data.internal", "earlier.internal", "leaders.internal"
)
