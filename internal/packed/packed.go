// Package packed keeps files in a string that a program embeds: compressed, and each by itself, so that one can be read
// without the others. It is for what would otherwise be a zip archive, whose package costs a program 70 kB, and whose headers
// are a tenth of many small files.
//
// The string has a dictionary and then the files in the order of their names. A text is its length as a uvarint and then its
// bytes:
//
//	dictionary, compressed
//	name, content, compressed with the dictionary; and so on
package packed

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"
)

// ErrInvalid reports that a string has not been made by [Pack].
var ErrInvalid = errors.New("packed: not a packed string")

// Pack packs files, by their names. The dictionary is what they have in common, or "": of it, up to 32 KiB are used.
func Pack(files map[string]string, dictionary string) ([]byte, error) {
	var out []byte
	add := func(text []byte) { out = append(binary.AppendUvarint(out, uint64(len(text))), text...) }
	dict, err := deflate(dictionary, "")
	if err != nil {
		return nil, err
	}
	add(dict)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		content, err := deflate(files[name], dictionary)
		if err != nil {
			return nil, err
		}
		add([]byte(name))
		add(content)
	}
	return out, nil
}

func deflate(text, dictionary string) ([]byte, error) {
	var b bytes.Buffer
	w, err := flate.NewWriterDict(&b, flate.BestCompression, []byte(dictionary))
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	if err == nil {
		err = w.Close()
	}
	return b.Bytes(), err
}

// Files are the files of a packed string, an [fs.FS] without directories: [fs.ReadFile] reads one. The methods may be called
// concurrently.
type Files struct {
	names []string
	files map[string]string // compressed
	dict  []byte
}

// Open returns the files of a packed string. It fails with [ErrInvalid].
func Open(data string) (*Files, error) {
	dict, data, ok := next(data)
	if !ok {
		return nil, ErrInvalid
	}
	plain, err := io.ReadAll(flate.NewReader(strings.NewReader(dict)))
	if err != nil {
		return nil, fmt.Errorf("%w: the dictionary: %w", ErrInvalid, err)
	}
	f := &Files{files: map[string]string{}, dict: plain}
	for data != "" {
		var name, content string
		if name, data, ok = next(data); ok {
			content, data, ok = next(data)
		}
		if !ok {
			return nil, ErrInvalid
		}
		f.names = append(f.names, name)
		f.files[name] = content
	}
	return f, nil
}

// next cuts the first text off.
func next(data string) (text, rest string, ok bool) {
	n, size := binary.Uvarint([]byte(data[:min(len(data), binary.MaxVarintLen64)]))
	if size <= 0 || n > uint64(len(data)-size) {
		return "", "", false
	}
	return data[size : size+int(n)], data[size+int(n):], true
}

// Names returns the names in order.
func (f *Files) Names() []string { return f.names }

// Open implements [fs.FS].
func (f *Files) Open(name string) (fs.File, error) {
	content, ok := f.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &file{flate.NewReaderDict(strings.NewReader(content), f.dict), name}, nil
}

// A file is one that is open. Its size is not known before it is read.
type file struct {
	io.ReadCloser
	name string
}

func (f *file) Stat() (fs.FileInfo, error) { return f, nil }
func (f *file) Name() string               { return f.name }
func (f *file) Size() int64                { return 0 }
func (f *file) Mode() fs.FileMode          { return 0o444 }
func (f *file) ModTime() time.Time         { return time.Time{} }
func (f *file) IsDir() bool                { return false }
func (f *file) Sys() any                   { return nil }
