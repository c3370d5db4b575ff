package check

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// errorMark marks data for the standard error of the agent that a client has started. That
// process has only one connection to the check, so both of its output streams share it. The
// mark is at the beginning of a line and is followed by a number of bytes, a line feed, and the
// bytes. It contains NUL, with which no frame begins.
const errorMark = "\x00acp check stderr "

// A stderrOf writes to the standard error of the agent at the other end of a connection, where
// forward receives it. Frames may be written concurrently, because each write of the connection
// is atomic.
type stderrOf struct{ w io.Writer }

// Write implements [io.Writer].
func (s *stderrOf) Write(b []byte) (int, error) {
	head := errorMark + strconv.Itoa(len(b)) + "\n"
	n, err := s.w.Write(append([]byte(head), b...))
	return max(0, n-len(head)), err
}

// forward copies everything from the check to the client, as it arrives, until the connection
// ends. Data behind an errorMark goes to standard error.
func forward(out, stderr io.Writer, from io.Reader) error {
	r := bufio.NewReaderSize(from, 64<<10)
	for begins := true; ; {
		if _, err := r.Peek(1); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		b, _ := r.Peek(r.Buffered())
		if begins && b[0] == errorMark[0] {
			if err := divert(stderr, r); err != nil {
				return err
			}
			continue
		}
		if i := bytes.Index(b, []byte{'\n', errorMark[0]}); i >= 0 {
			b = b[:i+1]
		}
		begins = b[len(b)-1] == '\n'
		if _, err := out.Write(b); err != nil {
			return err
		}
		_, _ = r.Discard(len(b))
	}
}

// divert copies the bytes that an errorMark announces to standard error.
func divert(stderr io.Writer, r *bufio.Reader) error {
	line, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(line, errorMark), "\n"), 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("the check sent an invalid mark %q", line)
	}
	_, err = io.CopyN(stderr, r, n)
	return err
}
