package page

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/goacp/acp/internal/wire"
)

const (
	// A message to a page has at most batchRows rows and about batchBytes.
	batchRows  = 1000
	batchBytes = 1 << 20
	// pace is how long rows gather before they are sent to a page.
	pace = 40 * time.Millisecond
	// heartbeat is the time between signs of life to a page.
	heartbeat = 10 * time.Second
)

// hello is the first message to a page.
type hello struct {
	Run      string   `json:"run"` // another value means that the page begins again
	Title    string   `json:"title"`
	Command  []string `json:"command"`
	Tool     string   `json:"tool"`
	Started  string   `json:"started"`
	Redacted bool     `json:"redacted"`
	Recorded bool     `json:"recorded"`
	File     string   `json:"file"`
	MaxRows  int      `json:"maxRows"`
	MaxBytes int64    `json:"maxBytes"`
}

func (s *Server) hello() hello {
	h := s.opts.Header
	out := hello{
		Run: s.run, Title: s.opts.Title, Command: h.Command, Tool: h.Tool, Redacted: h.Redacted,
		Recorded: s.opts.Recorded, File: s.opts.File, MaxRows: s.opts.MaxFrames, MaxBytes: s.opts.MaxBytes,
	}
	if !h.Started.IsZero() {
		out.Started = h.Started.Format(time.RFC3339Nano)
	}
	return out
}

// state is what a page learns apart from rows.
type state struct {
	First int64 `json:"first"` // the oldest row that is kept
	Lost  int64 `json:"lost"`  // records that came too fast
}

// events sends a page what happened after the row that it names, and then what happens, as
// server-sent events. A page that is too slow is not sent what is dropped meanwhile; a page that
// reads nothing for half a minute is disconnected.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	if run := r.URL.Query().Get("run"); run != s.run {
		after = 0
	}
	select {
	case s.viewers <- struct{}{}:
	default:
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	defer func() { <-s.viewers }()
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	// A page from the future gets what comes from here on.
	v := viewer{w: w, rc: http.NewResponseController(w), next: min(after, s.log.seq()-1) + 1}
	if err := v.send("hello", marshal(s.hello())); err != nil {
		return
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		n := s.log.since(v.next, batchRows, batchBytes)
		v.next = n.from
		if err := s.tell(&v, &n); err != nil {
			return
		}
		if len(n.rows) > 0 && !n.ended {
			more := s.log.since(v.next, 1, 0)
			if len(more.rows) > 0 {
				continue // the page is behind
			}
		}
		if n.ended {
			// The page needs the stream no more, but uses it to show whether the server, which has
			// the long records, still runs.
			if err := v.send("end", []byte("{}")); err != nil {
				return
			}
			s.linger(&v, r, beat)
			return
		}
		select {
		case <-n.more:
			select {
			case <-time.After(pace):
			case <-s.closing:
			case <-r.Context().Done():
				return
			}
		case <-beat.C:
			if v.comment() != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// tell sends what is new.
func (s *Server) tell(v *viewer, n *news) error {
	st := state{First: n.first, Lost: n.lost}
	if st != v.state {
		v.state = st
		if err := v.send("state", marshal(st)); err != nil {
			return err
		}
	}
	if len(n.rows) > 0 {
		v.buf = append(v.buf[:0], '[')
		for i, row := range n.rows {
			if i > 0 {
				v.buf = append(v.buf, ',')
			}
			v.buf = append(v.buf, row.json...)
		}
		v.next = n.rows[len(n.rows)-1].seq + 1
		if err := v.send("rows", append(v.buf, ']')); err != nil {
			return err
		}
	}
	if n.changes != v.changes {
		v.changes = n.changes
		if err := v.send("sessions", marshal(s.fold.sessions())); err != nil {
			return err
		}
	}
	return nil
}

// linger keeps the stream of a page that has everything open until the server closes.
func (s *Server) linger(v *viewer, r *http.Request, beat *time.Ticker) {
	for {
		select {
		case <-s.closing:
			// The page ends the stream once it has what it needs.
			if v.send("bye", []byte("{}")) == nil {
				<-r.Context().Done()
			}
			return
		case <-beat.C:
			if v.comment() != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// A viewer is the stream to a page.
type viewer struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	next    int64 // the row it gets next
	state   state
	changes int64
	buf     []byte
	head    []byte
}

// send writes an event. JSON has no line breaks outside of strings, and what is sent has none
// within them.
func (v *viewer) send(event string, data []byte) error {
	v.head = append(append(append(v.head[:0], "event: "...), event...), "\ndata: "...)
	v.rc.SetWriteDeadline(time.Now().Add(patience))
	for _, b := range [][]byte{v.head, data, []byte("\n\n")} {
		if _, err := v.w.Write(b); err != nil {
			return err
		}
	}
	return v.rc.Flush()
}

func (v *viewer) comment() error {
	v.rc.SetWriteDeadline(time.Now().Add(patience))
	if _, err := v.w.Write([]byte(": here\n\n")); err != nil {
		return err
	}
	return v.rc.Flush()
}

// marshal encodes a value that can always be encoded.
func marshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		return wire.AppendString(nil, err.Error())
	}
	return data
}
