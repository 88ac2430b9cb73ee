//go:build !unix

package policyfile

import (
	"io"
	"os"
)

// read returns the first limit bytes of a regular file, or false for anything
// else.
func read(name string, limit int) (data []byte, regular bool, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, false, err
	}
	data, err = io.ReadAll(io.LimitReader(f, int64(limit)))
	return data, err == nil, err
}
