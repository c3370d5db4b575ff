package acp

import (
	"io"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/goacp/acp/jsonrpc"
)

// maxLogged bounds how much of a frame a line of LogTransport shows, in bytes.
const maxLogged = 16 << 10

// logTime is how LogTransport writes times: RFC 3339, in UTC, with microseconds.
const logTime = "2006-01-02T15:04:05.000000Z"

// LogTransport returns a transport that is t and writes what passes to w, a line
// for each frame: the time, an arrow, and the frame. -> marks what this side sends,
// <- what it receives, messages or not.
//
//	2026-01-02T15:04:05.123456Z -> {"jsonrpc":"2.0","id":0,"method":"initialize",…}
//	2026-01-02T15:04:05.125034Z <- {"jsonrpc":"2.0","id":0,"result":{…}}
//
// A line shows up to 16 KiB of a frame; of a longer one it shows the beginning and
// the size. Control characters and bytes that are not UTF-8 are escaped. Each line
// is written with one call of Write, and calls never overlap, also if t is opened
// several times. Errors of w are ignored. A slow w slows the connection down, as
// [jsonrpc.Tap] describes.
//
// The log holds what was said, secrets included. A recording for the command "acp
// trace", which can leave them out, is made by a trace.Recorder.
func LogTransport(t Transport, w io.Writer) Transport {
	l := &wireLog{w: w}
	return WrapTransport(t, func(s jsonrpc.Stream) jsonrpc.Stream { return jsonrpc.Tap(s, l.frame) })
}

// wireLog writes the log of a transport.
type wireLog struct {
	mu  sync.Mutex
	w   io.Writer
	buf []byte
}

func (l *wireLog) frame(sent bool, frame []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := time.Now().UTC().AppendFormat(l.buf[:0], logTime)
	if sent {
		b = append(b, " -> "...)
	} else {
		b = append(b, " <- "...)
	}
	b = appendShown(b, frame[:min(len(frame), maxLogged)])
	if len(frame) > maxLogged {
		b = append(b, "… ("...)
		b = strconv.AppendInt(b, int64(len(frame)), 10)
		b = append(b, " bytes)"...)
	}
	b = append(b, '\n')
	l.buf = b
	_, _ = l.w.Write(b)
}

// appendShown appends text that stays on its line and moves no cursor.
func appendShown(dst, text []byte) []byte {
	for len(text) > 0 {
		n := 0
		for n < len(text) && text[n] >= ' ' && text[n] < 0x7f { // nearly all
			n++
		}
		dst = append(dst, text[:n]...)
		if text = text[n:]; len(text) == 0 {
			break
		}
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size <= 1:
			dst = append(dst, `\x`...)
			dst = append(dst, "0123456789abcdef"[text[0]>>4], "0123456789abcdef"[text[0]&15])
		case strconv.IsPrint(r):
			dst = append(dst, text[:size]...)
		default:
			quoted := strconv.AppendQuoteRune(nil, r)
			dst = append(dst, quoted[1:len(quoted)-1]...)
		}
		text = text[size:]
	}
	return dst
}
