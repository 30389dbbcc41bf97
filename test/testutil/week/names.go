package week

import "strings"

// Names do harm where they are not escaped: in HTML, in a spreadsheet, in the header of a mail, in a terminal, by their length.
var Names = []string{
	`=HYPERLINK("http://x")`,
	`<script>alert(1)</script>`,
	`"><img src=x onerror=1>`,
	"li\r\nBcc: all@example.com\r\n\r\n<b>",
	"abc\u202edef",
	strings.Repeat("w", 20_000),
	`"quoted", 'twice'`,
	"nul\x00\x1b[2J",
	"@SUM(1)", "+1+1", "-1-1", "\t=1", "\r=1", "＝1+1",
	"{{.}}</style></svg></title><iframe src=//x>",
	"\xff\xfe",
	"https://example.com javascript:alert(1)",
}
