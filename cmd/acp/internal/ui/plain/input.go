package plain

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// maxLine bounds a line of input, in bytes. A longer line ends the conversation.
const maxLine = 4 << 20

var errLongLine = errors.New("a line is longer than 4 MiB")

// An inputLine is a line of input, or the end of it.
type inputLine struct {
	text string
	end  bool
	err  error // why the input ended, unless it is the ordinary end of file
}

// An input reads lines one at a time, and only when next asks for one: in a script, the lines that
// follow may be answers to questions that are not asked yet, or belong to another program.
type input struct {
	want  chan struct{}
	lines chan inputLine
	quit  chan struct{}
}

// newInput starts the goroutine that reads r; a nil r is empty. The goroutine ends after stop, as
// soon as a blocked read returns.
func newInput(r io.Reader) *input {
	in := &input{want: make(chan struct{}, 1), lines: make(chan inputLine), quit: make(chan struct{})}
	if r == nil {
		r = strings.NewReader("")
	}
	go in.read(bufio.NewReader(r))
	return in
}

// next asks for a line and returns the channel on which it will arrive. Repeated calls before the
// line has arrived ask for it only once.
func (in *input) next() <-chan inputLine {
	select {
	case in.want <- struct{}{}:
	default:
	}
	return in.lines
}

func (in *input) stop() { close(in.quit) }

func (in *input) read(r *bufio.Reader) {
	for {
		select {
		case <-in.want:
		case <-in.quit:
			return
		}
		l := readLine(r)
		select {
		case in.lines <- l:
		case <-in.quit:
			return
		}
	}
}

// readLine reads one line. One that is too long is an error.
func readLine(r *bufio.Reader) inputLine {
	var text []byte
	for {
		piece, err := r.ReadSlice('\n')
		text = append(text, piece...)
		switch {
		case len(text) > maxLine:
			return inputLine{end: true, err: errLongLine}
		case err == nil:
			return inputLine{text: clean(text)}
		case errors.Is(err, bufio.ErrBufferFull):
		case len(text) > 0 && errors.Is(err, io.EOF):
			return inputLine{text: clean(text)}
		case errors.Is(err, io.EOF):
			return inputLine{end: true}
		default:
			return inputLine{end: true, err: err}
		}
	}
}

// clean returns a line as valid UTF-8 without its line break.
func clean(b []byte) string {
	s := strings.TrimRight(string(b), "\r\n")
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return s
}
