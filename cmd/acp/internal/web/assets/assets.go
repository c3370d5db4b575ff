// Package assets has the files of the two pages: that of the gateway, and that of a tap, whose files are called tap. Both
// are made of the sources in src, by one run of the bundler, and load the same chunks.
package assets

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"io"
	"io/fs"
)

// Packed ends the names of files that are stored compressed. They are served without it.
const Packed = ".gz"

// Files are the files, without folders. What the bundler makes is packed, except for the licences,
// which people read in the repository. Pictures, and what is written by hand, are not.
//
//go:embed *.gz *.txt *.png *.svg *.webmanifest
var Files embed.FS

// Read returns a file by the name under which it is served.
func Read(name string) ([]byte, error) {
	data, err := fs.ReadFile(Files, name+Packed)
	if errors.Is(err, fs.ErrNotExist) {
		return fs.ReadFile(Files, name)
	}
	if err != nil {
		return nil, err
	}
	return Unpack(data)
}

// Pack compresses a file with gzip.
func Pack(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(data)
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}

// Unpack returns what [Pack] was given. It is for files of the program only: what it returns has no bound.
func Unpack(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
