package testutil

import (
	"bufio"
	"fmt"
	"os"
)

// Memory is the memory of the operator's process that a limit cannot take back, in bytes: what is resident without pages of
// files, which are 58 MB of the program itself and are read anew when they are needed.
func (o *Operator) Memory() (uint64, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", o.Process()))
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var kilobytes uint64
		if n, _ := fmt.Sscanf(lines.Text(), "RssAnon: %d kB", &kilobytes); n == 1 {
			return kilobytes << 10, nil
		}
	}
	return 0, fmt.Errorf("process %d has no anonymous memory", o.Process())
}
