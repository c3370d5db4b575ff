//go:build !unix

package seek

import "os"

// readFile reads a regular file into a buffer, up to its end or most bytes, and stops after
// what head refuses of its beginning. It returns the buffer, which may be another one, and
// whether there is more.
func readFile(path string, buf []byte, most int, head func([]byte) bool) (data []byte, more bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return buf[:0], false, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return readAll(f.Read, buf, most, head)
}
