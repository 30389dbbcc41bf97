package merging

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// CutList returns the names of a gzipped list, which is nil for none, up to last, gzipped, and how many they are. Where last is
// not among them, because the store changed, it returns the list as it is.
func CutList(list []byte, last string) (cut []byte, n int, err error) {
	var in io.Reader = bytes.NewReader(nil)
	if len(list) > 0 {
		if in, err = gzip.NewReader(bytes.NewReader(list)); err != nil {
			return nil, 0, fmt.Errorf("read the list of increments: %w", err)
		}
	}
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	names := bufio.NewScanner(in)
	for names.Scan() {
		if _, err := io.WriteString(zipped, names.Text()+"\n"); err != nil {
			return nil, 0, fmt.Errorf("write the list of increments: %w", err)
		}
		if n++; names.Text() == last {
			break
		}
	}
	if err := names.Err(); err != nil {
		return nil, 0, fmt.Errorf("read the list of increments: %w", err)
	}
	if err := zipped.Close(); err != nil {
		return nil, 0, fmt.Errorf("write the list of increments: %w", err)
	}
	return out.Bytes(), n, nil
}
