//go:build !linux

package process

// Find finds nothing here: nothing is marked.
func (m Mark) Find() map[int]string { return nil }

// Numbered reports whether processes are found by their numbers in /proc, which is only so on Linux.
func Numbered() bool { return false }

func newMark(string) Mark { return Mark{} }
