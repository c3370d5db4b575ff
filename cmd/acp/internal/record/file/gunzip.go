package file

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
)

// maxExpanded bounds what a compressed file may expand to, in bytes.
var maxExpanded int64 = 4 << 30

// A gunzip expands a compressed file. If that was cut off, it ends there, and torn says so.
type gunzip struct {
	z    *gzip.Reader
	left int64
	torn bool
}

// expand returns what reads in, expanded if it is compressed. It waits for the beginning only.
func expand(in *bufio.Reader) (*bufio.Reader, *gunzip, error) {
	if head, _ := in.Peek(2); string(head) != "\x1f\x8b" {
		return in, nil, nil
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, nil, fmt.Errorf("it begins as a file compressed with gzip, but: %w", err)
	}
	g := &gunzip{z: z, left: maxExpanded}
	return bufio.NewReaderSize(g, recognizeIn), g, nil
}

// Read implements [io.Reader].
func (g *gunzip) Read(p []byte) (int, error) {
	if g.left == 0 {
		return 0, fmt.Errorf("it expands to more than %d MiB", maxExpanded>>20)
	}
	n, err := g.z.Read(p[:min(int64(len(p)), g.left)])
	g.left -= int64(n)
	if err == io.ErrUnexpectedEOF {
		g.torn, err = true, io.EOF
	}
	return n, err
}
