package acphttp

import (
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// batchSize is how much is written to a client at once.
const batchSize = 64 << 10

// batches has the buffers of those who write nothing at the moment.
var batches = sync.Pool{New: func() any { return new([]byte) }}

// get streams what waits for a client.
func (s *Server) get(w http.ResponseWriter, r *http.Request, principal string) error {
	if !accepts(r, typeEvents) {
		return status(http.StatusNotAcceptable, "only "+typeEvents+" can be had")
	}
	c, err := s.find(r, principal)
	if err != nil {
		return err
	}
	w.Header().Set(HeaderConnectionID, c.id)
	if !canFlush(w) {
		s.log().Error("acphttp: a ResponseWriter without Flush cannot stream")
		return status(http.StatusInternalServerError, "the server cannot stream")
	}
	name := r.Header.Get(HeaderSessionID)
	if len(name) > s.limits.MaxID {
		return status(http.StatusBadRequest, "an id is too long")
	}
	if err := c.opened(); err != nil {
		return err
	}
	defer c.closed()
	st, rd, err := c.attach(name, r.Header.Get(headerCursor))
	if err != nil {
		return err
	}
	defer c.detach(name, st, rd)
	h := w.Header()
	h.Set("Content-Type", typeEvents)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // of proxies, which would hold events back
	h.Set("X-Content-Type-Options", "nosniff")
	if s.resumable() { // so that a client that got no event can resume, too
		h.Set(headerCursor, string(c.cursorOf(nil, st.offset+rd.pos)))
	}
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	// Over HTTP/2 a deadline that passes ends a stream on which nothing is written.
	_ = control.SetWriteDeadline(time.Time{})
	if err := control.Flush(); err != nil {
		return nil
	}
	alive := time.NewTimer(s.limits.KeepAlive)
	defer alive.Stop()
	for {
		buf := batches.Get().(*[]byte)
		text, over := c.take(st, rd, (*buf)[:0])
		if len(text) == 0 {
			batches.Put(buf)
			buf = nil // one that waits holds none
			if over {
				return nil
			}
			select {
			case <-rd.wake:
				continue
			case <-rd.end:
				return nil
			case <-r.Context().Done():
				return nil
			case <-alive.C:
				text = []byte(":\n\n")
			}
		}
		_ = control.SetWriteDeadline(time.Now().Add(s.limits.StallTimeout))
		if _, err := w.Write(text); err != nil {
			return nil
		}
		if err := control.Flush(); err != nil {
			return nil
		}
		_ = control.SetWriteDeadline(time.Time{})
		alive.Reset(s.limits.KeepAlive)
		if buf != nil && cap(text) <= 2*batchSize {
			*buf = text
			batches.Put(buf)
		}
	}
}

// canFlush reports whether a response, or one that it is around, can be sent bit by
// bit.
func canFlush(w http.ResponseWriter) bool {
	for {
		switch v := w.(type) {
		case http.Flusher, interface{ FlushError() error }:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = v.Unwrap()
		default:
			return false
		}
	}
}

// attach makes a request the reader of a stream. after is where it wants to resume,
// "" for what nobody has read yet.
func (c *conn) attach(name, after string) (*stream, *reader, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return nil, nil, status(http.StatusNotFound, "unknown "+HeaderConnectionID)
	}
	for c.streams[name] == nil && len(c.streams) > 2*c.s.limits.MaxWaitingSessions {
		if len(c.past.retired) > 0 {
			c.forgetOldest()
			continue
		}
		if c.forgetLeft() {
			continue
		}
		return nil, nil, status(http.StatusTooManyRequests, "too many sessions are open on this connection; close some")
	}
	st, err := c.stream(name)
	if err != nil {
		return nil, nil, status(http.StatusInternalServerError, "the stream cannot be kept")
	}
	if st.deleted && (after == "" || after == c.tag) { // the end may still be wanted
		return nil, nil, status(http.StatusConflict, "the session was deleted")
	}
	pos := st.taken
	if after != "" {
		if pos, err = c.cursor(st, after); err != nil {
			return nil, nil, err
		}
	} else if st.reader != nil && !st.closed { // whose client may be about to leave it
		return nil, nil, status(http.StatusConflict, "the stream has a reader already")
	}
	if c.ended && after != "" && pos == st.log.Last() {
		return nil, nil, status(http.StatusNoContent, "") // the client has everything
	}
	switch {
	case st.reader != nil:
		close(st.reader.end)
	case st.unsent > 0 && name != "":
		c.waiting--
	}
	st.reader = &reader{pos: pos, wake: make(chan struct{}, 1), end: make(chan struct{})}
	return st, st.reader, nil
}

// cursor reads where a client wants to resume. Without a number it wants what was
// never read since the session was opened. The caller holds c.mu.
func (c *conn) cursor(st *stream, text string) (uint64, error) {
	refused := status(http.StatusConflict, "the stream cannot be resumed from there")
	tag, number, numbered := strings.Cut(text, "-")
	if tag != c.tag {
		return 0, refused
	}
	seq := min(st.base, st.taken)
	if numbered {
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil || n < st.offset || n-st.offset > st.taken {
			return 0, refused
		}
		seq = n - st.offset
	}
	if err := st.log.Read(seq, func(uint64, []byte) bool { return false }); err != nil {
		return 0, refused
	}
	return seq, nil
}

// cursorOf appends a cursor.
func (c *conn) cursorOf(dst []byte, seq uint64) []byte {
	return strconv.AppendUint(append(append(dst, c.tag...), '-'), seq, 10)
}

// detach ends a request's reading of a stream.
func (c *conn) detach(name string, st *stream, rd *reader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if st.reader != rd {
		return
	}
	st.reader = nil
	c.past.left++
	st.left = c.past.left
	switch {
	case c.gone:
	case st.unsent > 0:
		if name != "" {
			c.waiting++
		}
	case !st.deleted && (st.log.Last() == 0 || !c.s.resumable()):
		c.forget(name) // nobody needs it
	case st.closed:
		c.retire(name)
	}
}

// maxRetired bounds the streams that are kept although their sessions were closed, in
// case that a client has not got the end.
const maxRetired = 64

// retire notes that the stream of a closed session is not read any more. The caller
// holds c.mu.
func (c *conn) retire(name string) {
	if i := slices.Index(c.past.retired, name); i >= 0 {
		c.past.retired = slices.Delete(c.past.retired, i, i+1)
	}
	c.past.retired = append(c.past.retired, name)
	if len(c.past.retired) > maxRetired {
		c.forgetOldest()
	}
}

// forgetOldest forgets the stream that was retired first, unless it is in use again. The
// caller holds c.mu.
func (c *conn) forgetOldest() {
	oldest := c.past.retired[0]
	c.past.retired = slices.Delete(c.past.retired, 0, 1)
	if st := c.streams[oldest]; st != nil && st.closed && st.reader == nil && st.unsent == 0 {
		c.forget(oldest)
	}
}

// forgetLeft forgets the stream of which nobody has read for longest, as it may be if a
// client does not use a session any more and cannot say so. It reports whether there was
// one: those that somebody reads, and those with something in them, stay. The caller
// holds c.mu.
func (c *conn) forgetLeft() bool {
	oldest, left := "", uint64(math.MaxUint64)
	for name, st := range c.streams {
		if name != "" && st.reader == nil && st.unsent == 0 && 0 < st.left && st.left < left {
			oldest, left = name, st.left
		}
	}
	if oldest != "" {
		c.forget(oldest)
	}
	return oldest != ""
}

// maxPast bounds the streams that are remembered one by one although they were
// forgotten.
const maxPast = 1024

// past has the streams of closed sessions that nobody reads, and knows where the cursors
// of those that were forgotten have ended, so that those of another stream of the same
// name can begin above them.
type past struct {
	retired []string          // that are kept, by age
	ends    map[string]uint64 // of those that were forgotten, by name
	order   []string          // of the names
	floor   uint64            // above the cursors of all others
	left    uint64            // how often a reader has left
}

// add notes the cursor above those of a stream.
func (p *past) add(name string, end uint64) {
	if p.ends == nil {
		p.ends = make(map[string]uint64)
	}
	if _, ok := p.ends[name]; !ok {
		p.order = append(p.order, name)
	}
	p.ends[name] = end
	if len(p.order) > maxPast {
		p.floor = max(p.floor, p.ends[p.order[0]])
		delete(p.ends, p.order[0])
		p.order = slices.Delete(p.order, 0, 1)
	}
}

// end returns where the cursors of a stream may begin.
func (p *past) end(name string) uint64 {
	if end, ok := p.ends[name]; ok {
		return end
	}
	return p.floor
}

// forget drops a stream in which nothing waits. Cursors of it are refused from then on,
// also if there is another stream of that name. The caller holds c.mu.
func (c *conn) forget(name string) {
	st := c.streams[name]
	if last := st.log.Last(); last > 0 {
		c.past.add(name, st.offset+last+1)
	}
	if err := st.log.Close(); err != nil {
		c.s.log().Warn("acphttp: close a log", "error", err)
	}
	delete(c.streams, name)
}

// take appends what waits for a reader to dst, as events. over reports that there
// will be no more.
func (c *conn) take(st *stream, rd *reader, dst []byte) (_ []byte, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone || st.reader != rd {
		return dst, true
	}
	resumable := c.s.resumable()
	err := st.log.Read(rd.pos, func(seq uint64, frame []byte) bool {
		if resumable {
			dst = append(c.cursorOf(append(dst, "id: "...), st.offset+seq), '\n')
		}
		dst = append(dst, "data: "...)
		dst = append(dst, frame...)
		dst = append(dst, "\n\n"...)
		c.count(st, rd, seq, len(frame))
		return len(dst) < batchSize
	})
	if err != nil {
		if !errors.Is(err, ErrGap) {
			c.s.log().Error("acphttp: read a log", "error", err)
		}
		return dst[:0], true // the client resumes, and is refused
	}
	c.took(st, rd, len(dst) > 0)
	return dst, c.ended
}

// count records that a reader has got an event. What was given up with the connection,
// see drop, is not counted twice. The caller holds c.mu.
func (c *conn) count(st *stream, rd *reader, seq uint64, size int) {
	rd.pos = seq
	if seq > st.taken {
		st.taken = seq
		if !c.gone {
			st.unsent -= size
			c.holds(-size)
		}
	}
}

// took lets those continue who wait for readers, if one has got something. The caller
// holds c.mu.
func (c *conn) took(st *stream, rd *reader, something bool) {
	if something {
		if rd.pos >= st.taken { // one that is behind may want what would be dropped
			st.log.Taken(st.taken)
		}
		c.signal(&st.room)
		c.signal(&c.progress)
	}
}
