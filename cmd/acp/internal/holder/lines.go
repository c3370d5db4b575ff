package holder

import (
	"bufio"
	"bytes"
	"io"
)

// lines splits what an agent writes, by the rules of [jsonrpc.NewLineStream]: lines end with LF, a
// CR before it is dropped, blank lines are ignored, a leading byte order mark is dropped, and an
// unterminated last line is a line. That stream is not used here since only a connection can set
// its limit.
type lines struct {
	r     *bufio.Reader
	limit int
	begun bool
	err   error // once the last line was returned
}

func newLines(r io.Reader, limit int) *lines {
	return &lines{r: bufio.NewReaderSize(r, 32<<10), limit: limit}
}

var bom = []byte("\xef\xbb\xbf")

// next returns the next line, which belongs to the caller. If the line exceeds the limit, size is its
// length and the line its beginning; otherwise size is 0.
func (l *lines) next() (line []byte, size int64, err error) {
	for {
		line, size, err := l.line()
		if err != nil {
			return nil, 0, err
		}
		if !l.begun {
			l.begun = true
			if rest, ok := bytes.CutPrefix(line, bom); ok {
				line, size = rest, size-int64(len(bom))
			}
		}
		if n := len(line); n > 0 && int64(n) == size && line[n-1] == '\r' {
			line, size = line[:n-1], size-1
		}
		switch {
		case size > int64(l.limit):
			return bytes.Clone(line[:min(len(line), longPrefix)]), size, nil
		case len(bytes.Trim(line, " \t\r")) > 0:
			return line, 0, nil
		}
	}
}

// line returns everything up to the next LF and its length. What is beyond the limit is skipped, but
// for the byte order mark and a CR, which do not count.
func (l *lines) line() (line []byte, size int64, err error) {
	if l.err != nil {
		return nil, 0, l.err
	}
	for {
		part, err := l.r.ReadSlice('\n')
		full := err == bufio.ErrBufferFull
		if err == nil {
			part = part[:len(part)-1]
		}
		size += int64(len(part))
		switch {
		case line == nil && !full:
			line = bytes.Clone(part)
		case size <= int64(l.limit)+int64(len(bom))+1:
			line = append(line, part...)
		default: // only the beginning is needed
			if len(line) < longPrefix {
				line = append(line, part...)
			}
			if len(line) > longPrefix {
				line = bytes.Clone(line[:longPrefix])
			}
		}
		if full {
			continue
		}
		if err != nil {
			l.err = err
			if size == 0 {
				return nil, 0, err
			}
		}
		if cap(line) > len(line)+len(line)/8 {
			line = bytes.Clone(line)
		}
		return line, size, nil
	}
}
