//go:build !unix

package policyfile

import "io/fs"

func inode(fs.FileInfo) (device, number uint64, change int64) { return 0, 0, 0 }
