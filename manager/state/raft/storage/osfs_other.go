//go:build !linux

package storage

import "os"

// dataSync is fsync where there is no fdatasync.
func dataSync(f *os.File) error { return f.Sync() }
