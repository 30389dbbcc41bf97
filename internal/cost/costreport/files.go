package costreport

// Files of a report that people and programs read, by the names under which they are kept and served.
const (
	FileHTML, FileCSV, FileJSON, FileFOCUS = "report.html", "report.csv", "report.json", "focus.csv"
)
