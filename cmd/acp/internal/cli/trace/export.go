package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/record/file"
	"github.com/goacp/acp/cmd/acp/internal/record/frame"
	"github.com/goacp/acp/cmd/acp/internal/record/hop"
	"github.com/goacp/acp/trace"
)

// asConductor is the form of the events that the conductor of the Rust SDK writes.
const asConductor = "conductor"

// Names of the components of a chain, as that conductor writes them.
const (
	clientName = hop.Client
	agentName  = hop.Agent
	proxyName  = "Proxy(%d)"
)

const (
	// maxHops bounds the connections of a chain whose order is found out.
	maxHops = 64
	// maxOpen bounds the requests whose answers are recognized.
	maxOpen = 4096
)

// export writes a recording as the events of a conductor.
func (o *Options) export(ctx context.Context) error {
	if o.As != asConductor {
		return exitcode.Errorf(exitcode.Usage, "--as %s: a recording can be exported as %s only", o.As, asConductor)
	}
	names, err := o.chainOf(ctx)
	if err != nil {
		return err
	}
	s, err := file.OpenTogether(ctx, o.console(), o.Files[0])
	if err != nil {
		return err
	}
	defer s.Close()
	s.Progress()
	return o.writeCopy(o.Files[1], func(out io.Writer) error {
		x := &exporter{names: names, peer: agentName, open: map[openKey]*openCall{}, w: bufio.NewWriter(out)}
		left, err := x.all(s)
		if err != nil {
			return err
		}
		if left > 0 {
			fmt.Fprintf(o.App.Err, "acp: %d records that are not messages were left out\n", left)
		}
		return x.w.Flush()
	})
}

// chainOf returns the names that the components of a chain get: a proxy is named after its place. It reads the
// recording for that, so those of standard input keep their names, as do those that stand in no single line.
func (o *Options) chainOf(ctx context.Context) (map[string]string, error) {
	names := map[string]string{}
	if o.Files[0] == "-" {
		return names, nil
	}
	s, err := file.OpenTogether(ctx, file.Console{Dir: o.App.Cwd, Err: io.Discard}, o.Files[0])
	if err != nil {
		return nil, err
	}
	defer s.Close()
	after, before := map[string]string{}, map[string]string{}
	for {
		rec, err := s.Record()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		hop := rec.Hop
		if hop == (trace.Hop{}) || after[hop.Client] == hop.Agent {
			continue
		}
		if _, twice := after[hop.Client]; twice || before[hop.Agent] != "" || len(after) == maxHops {
			return names, nil
		}
		after[hop.Client], before[hop.Agent] = hop.Agent, hop.Client
	}
	for first := range after {
		if _, ok := before[first]; ok {
			continue
		}
		line := []string{first}
		for name := after[first]; name != "" && len(line) <= len(after); name = after[name] {
			line = append(line, name)
		}
		if len(line) != len(after)+1 {
			break // of several chains
		}
		for i, name := range line {
			switch i {
			case 0:
				names[name] = clientName
			case len(line) - 1:
				names[name] = agentName
			default:
				names[name] = fmt.Sprintf(proxyName, i-1)
			}
		}
	}
	return names, nil
}

// An exporter turns frames into events.
type exporter struct {
	names map[string]string // of components, where they get others
	peer  string            // the name of the agent where there is one connection only
	read  frame.Reader
	open  map[openKey]*openCall
	began time.Time // of the first part
	part  int
	last  float64 // the time of the last event
	w     *bufio.Writer
}

// An openKey names a request in flight.
type openKey struct {
	hop trace.Hop
	dir trace.Direction // of the request
	id  string
}

// An openCall is what its answer needs.
type openCall struct {
	from, to string
	id       json.RawMessage // that it was given
}

// An exported event, in the order of members in which the conductor writes them.
type exported struct {
	Type     string          `json:"type"`
	TS       float64         `json:"ts"`
	Protocol string          `json:"protocol,omitempty"`
	From     string          `json:"from"`
	To       string          `json:"to"`
	ID       json.RawMessage `json:"id,omitempty"`
	Method   string          `json:"method,omitempty"`
	Session  string          `json:"session,omitempty"`
	Params   json.RawMessage `json:"params,omitempty"`
	IsError  *bool           `json:"is_error,omitempty"`
	Payload  json.RawMessage `json:"payload,omitempty"`
}

// all exports a recording, and returns how many records are not messages.
func (x *exporter) all(s *file.File) (left int64, err error) {
	for {
		rec, err := s.Record()
		if err == io.EOF {
			return left, nil
		}
		if err != nil {
			return left, err
		}
		if n := s.Part(); n != x.part {
			if x.part++; x.part == 1 {
				x.began = s.Header().Started
			}
			x.part, x.peer = n, agentName
			clear(x.open)
		}
		at := rec.At
		if h := s.Header(); !h.Started.IsZero() && !x.began.IsZero() {
			at += h.Started.Sub(x.began)
		}
		x.last = max(x.last, at.Seconds())
		ev := x.event(rec)
		if ev == nil {
			left++
			continue
		}
		ev.TS = x.last
		e := json.NewEncoder(x.w)
		e.SetEscapeHTML(false)
		if err := e.Encode(ev); err != nil {
			return left, err
		}
	}
}

// event returns the event for a record, or nil if it is not a message.
func (x *exporter) event(rec *trace.Record) *exported {
	if rec.Kind == trace.Event && rec.Name == "mcp" {
		return x.tool(rec)
	}
	if rec.Kind != trace.Frame {
		return nil
	}
	e := x.read.Read(rec.Data)
	switch {
	case e.Answer():
		return x.answer(rec, &e)
	case e.Method == "":
		return nil
	}
	ev := &exported{Type: "notification", Protocol: "acp", Method: e.Method, Params: e.Params}
	ev.From, ev.To = x.ends(rec)
	key := openKey{rec.Hop, rec.Dir, string(e.ID)}
	switch e.Method {
	case "proxy/initialize", "_proxy/initialize":
		if rec.Hop == (trace.Hop{}) {
			x.peer = fmt.Sprintf(proxyName, 0)
			ev.From, ev.To = x.ends(rec)
		}
	case "proxy/successor", "_proxy/successor":
		x.unwrap(ev, rec)
	}
	if ev.Method == "mcp/message" {
		if method := frame.Member(ev.Params, "method"); method != "" {
			ev.Protocol, ev.Method, ev.Params = "mcp", method, frame.Find(ev.Params, "params")
		}
	}
	ev.Session = frame.Member(ev.Params, "sessionId")
	if ev.Params == nil {
		ev.Params = json.RawMessage("null")
	}
	if e.ID != nil {
		ev.Type, ev.ID = "request", bytes.Clone(e.ID)
		for _, other := range x.open { // which the reader of the events would take for this one
			if other.to == ev.To && bytes.Equal(other.id, ev.ID) {
				ev.ID, _ = json.Marshal(fmt.Sprintf("%s of %s", e.ID, ev.From))
				break
			}
		}
		if len(e.ID) <= file.MaxID && len(x.open) < maxOpen {
			x.open[key] = &openCall{ev.From, ev.To, ev.ID}
		}
	}
	return ev
}

// unwrap makes the event that of the message in an envelope, which is between a proxy and its successor.
func (x *exporter) unwrap(ev *exported, rec *trace.Record) {
	method := frame.Member(ev.Params, "method")
	if method == "" {
		return
	}
	ev.Method, ev.Params = method, frame.Find(ev.Params, "params")
	if rec.Hop != (trace.Hop{}) {
		return // the recorder of a chain leaves the envelopes out
	}
	x.peer = fmt.Sprintf(proxyName, 0)
	if ev.From, ev.To = x.peer, agentName; rec.Dir == trace.ToAgent {
		ev.From, ev.To = agentName, x.peer
	}
}

// answer returns the event for an answer.
func (x *exporter) answer(rec *trace.Record, e *frame.Envelope) *exported {
	isError := e.Error != nil
	ev := &exported{Type: "response", ID: e.ID, IsError: &isError, Payload: e.Result}
	if isError {
		ev.Payload = e.Error
	}
	ev.From, ev.To = x.ends(rec)
	asked := trace.ToAgent
	if rec.Dir == trace.ToAgent {
		asked = trace.ToClient
	}
	key := openKey{rec.Hop, asked, string(e.ID)}
	if call := x.open[key]; call != nil {
		delete(x.open, key)
		ev.From, ev.To, ev.ID = call.to, call.from, call.id
	}
	return ev
}

// tool returns the event for a message of MCP, which a recording that was read from such events has as text.
func (x *exporter) tool(rec *trace.Record) *exported {
	to, text, ok := strings.Cut(strings.TrimPrefix(rec.Detail.Text, "to "), ": ")
	if !ok || !json.Valid([]byte(text)) {
		return nil
	}
	inner := trace.Record{Kind: trace.Frame, Hop: rec.Hop, Dir: trace.ToAgent, Data: []byte(text)}
	if to == rec.Hop.Client {
		inner.Dir = trace.ToClient
	}
	ev := x.event(&inner)
	if ev != nil && ev.Type != "response" {
		ev.Protocol = "mcp"
	}
	return ev
}

// ends returns the names of the components that send and receive a record.
func (x *exporter) ends(rec *trace.Record) (from, to string) {
	hop := rec.Hop
	if hop == (trace.Hop{}) {
		hop = trace.Hop{Client: clientName, Agent: x.peer}
	} else {
		hop = trace.Hop{Client: cmp.Or(x.names[hop.Client], hop.Client), Agent: cmp.Or(x.names[hop.Agent], hop.Agent)}
	}
	if rec.Dir == trace.ToAgent {
		return hop.Client, hop.Agent
	}
	return hop.Agent, hop.Client
}
