package plain

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// maxLine bounds a line of input, in bytes. A longer one ends the conversation.
const maxLine = 4 << 20

var errLongLine = errors.New("a line is longer than 4 MiB")

// An inputLine is a line of input, or the end of it.
type inputLine struct {
	text string
	end  bool
	err  error // at the end, if it is not the usual one
}

// An input reads lines when they are asked for.
type input struct {
	want  chan struct{}
	lines chan inputLine
	quit  chan struct{}
}

// newInput starts reading r; nil is empty.
func newInput(r io.Reader) *input {
	in := &input{want: make(chan struct{}, 1), lines: make(chan inputLine), quit: make(chan struct{})}
	if r == nil {
		r = strings.NewReader("")
	}
	go in.read(bufio.NewReader(r))
	return in
}

// next returns where the next line comes from. It is asked for once, however often next is called
// before it has come.
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

// clean makes a line valid text without its end.
func clean(b []byte) string {
	s := strings.TrimRight(string(b), "\r\n")
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return s
}
