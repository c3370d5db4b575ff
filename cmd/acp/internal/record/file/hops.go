package file

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/goacp/acp/trace"
)

const (
	// maxHops bounds the connections of a chain.
	maxHops = 64
	// maxSpooled bounds what is kept of the connections that come later, where the input cannot be read again.
	maxSpooled = 64 << 20
)

// hops has the connections of a chain returned one after another. The first pass through the file returns the
// records of the first connection, and those that belong to none; each further pass returns those of one more.
// What cannot be read again, as standard input, is kept meanwhile.
type hops struct {
	together bool     // they are not told apart
	again    *os.File // the input, if it can be read again
	at       trace.Hop
	last     trace.Hop   // of the last record
	rest     []trace.Hop // that passed, but were not returned
	pass     int
	part     int // in further passes, the number of the part
	of       int // the part of the source that it is of
	left     int64
	spool    *spool
}

// take reports whether a record is of the connection that is returned. It remembers others.
func (h *hops) take(rec *trace.Record, src source) bool {
	none := trace.Hop{}
	if h.at == none {
		h.at = rec.Hop
	}
	switch {
	case h.together:
	case rec.Hop == h.at || rec.Hop == none && h.pass == 0:
		h.count(src.Part())
	case h.pass == 0:
		h.remember(rec, src)
		return false
	default:
		return false
	}
	h.last = rec.Hop
	return true
}

// count numbers the parts: those of the source in the first pass, and more in further ones.
func (h *hops) count(of int) {
	switch {
	case h.pass == 0:
		h.part = of
	case of != h.of:
		h.part++
	}
	h.of = of
}

// remember notes a record for a later pass.
func (h *hops) remember(rec *trace.Record, src source) {
	known := false
	for _, hop := range h.rest {
		known = known || hop == rec.Hop
	}
	if !known && len(h.rest) == maxHops-1 {
		h.left++
		return
	}
	if !known {
		h.rest = append(h.rest, rec.Hop)
	}
	if h.again != nil {
		return
	}
	if h.spool == nil {
		h.spool = new(spool)
	}
	if !h.spool.add(rec, src) {
		h.left++
	}
}

// why says why records were left out.
func (h *hops) why() string {
	if h.again != nil || h.spool == nil {
		return fmt.Sprintf("there are more than %d connections", maxHops)
	}
	return fmt.Sprintf("of a chain of proxies, %d MiB are kept; write it to a file to see all", maxSpooled>>20)
}

// next begins the pass for the next connection, and reports whether there is one; otherwise the error is io.EOF
// or says why the file cannot be read again.
func (h *hops) next(f *File) (more bool, err error) {
	if len(h.rest) == 0 {
		return false, io.EOF
	}
	if h.pass == 0 {
		h.part = max(1, f.src.Part())
	}
	h.at, h.rest, h.of = h.rest[0], h.rest[1:], 0
	h.pass++
	if h.again == nil {
		f.zip = nil
		if f.src, err = recognize(bufio.NewReader(bytes.NewReader(h.spool.text()))); err != nil {
			return false, f.fail(err)
		}
		return true, nil
	}
	if _, err := h.again.Seek(0, io.SeekStart); err != nil {
		return false, f.fail(err)
	}
	if err := f.begin(h.again); err != nil {
		return false, f.fail(err)
	}
	return true, nil
}

// A spool keeps records in memory, as a recording.
type spool struct {
	buf  bytes.Buffer
	w    *trace.Writer
	part int
}

// add keeps a record, and reports whether there was room.
func (s *spool) add(rec *trace.Record, src source) bool {
	if s.buf.Len()+len(rec.Data)+len(rec.Detail.Text) > maxSpooled {
		return false
	}
	if s.w == nil || s.part != src.Part() {
		s.flush()
		s.part = src.Part()
		s.w, _ = trace.NewWriter(&s.buf, src.Header()) // a buffer takes all
	}
	_ = s.w.Write(rec)
	s.flush()
	return true
}

func (s *spool) flush() {
	if s.w != nil {
		_ = s.w.Flush()
	}
}

func (s *spool) text() []byte { return s.buf.Bytes() }
