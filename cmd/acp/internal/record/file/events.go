package file

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp/trace"
)

// Bounds of what is remembered of the events of a conductor.
const (
	maxPairs = 256  // of components that send each other something
	maxTools = 4096 // requests of MCP that have no answer yet
)

// eventTypes are what is read of a conductor.
var eventTypes = []string{"request", "response", "notification"}

// An event is a line that the conductor of the Rust SDK writes.
type event struct {
	Type     string
	TS       float64
	Protocol string
	From, To string
	ID       json.RawMessage
	Method   string
	Params   json.RawMessage
	IsError  bool `json:"is_error"`
	Payload  json.RawMessage
}

// events reads what a conductor records: an event in each line, for each message that passes from one component
// to the next, without its envelope. Each pair of components is a hop. Messages of MCP are events named "mcp",
// since they are not of this protocol.
type events struct {
	lines
	hops  map[[2]string]trace.Hop
	tools map[string]bool // requests of MCP in flight, by hop and id
	rec   trace.Record
	buf   bytes.Buffer
}

func newEvents(in *bufio.Reader) *events {
	return &events{lines: lines{in: in}, hops: map[[2]string]trace.Hop{}, tools: map[string]bool{}}
}

// Next implements source.
func (e *events) Next() (*trace.Record, error) {
	for {
		text, size, err := e.next()
		if err != nil {
			return nil, err
		}
		if size > int64(len(text)) {
			return nil, e.cut(fmt.Sprintf("is longer than %d MiB", trace.MaxLine>>20))
		}
		var v event
		if err := json.Unmarshal(text, &v); err != nil {
			return nil, e.cut("is damaged: it is not an event of a conductor")
		}
		if !slices.Contains(eventTypes, v.Type) {
			continue // of a newer conductor
		}
		if reason := v.lacks(); reason != "" {
			return nil, e.cut("is damaged: " + reason)
		}
		return e.record(&v), nil
	}
}

// lacks returns why an event cannot be a message, or "".
func (v *event) lacks() string {
	switch {
	case v.From == "" || v.To == "":
		return "the event does not say from which component to which"
	case len(v.From) > trace.MaxHopName || len(v.To) > trace.MaxHopName:
		return fmt.Sprintf("the name of a component is longer than %d bytes", trace.MaxHopName)
	case v.Type != "response" && v.Method == "":
		return "the " + v.Type + " has no method"
	case v.Type != "notification" && v.ID == nil:
		return "the " + v.Type + " has no id"
	case v.Type == "response" && v.Payload == nil:
		return "the response has no payload"
	}
	return ""
}

// record returns the message of an event, as it passed, but for its envelope.
func (e *events) record(v *event) *trace.Record {
	hop, dir := e.hop(v)
	b := &e.buf
	b.Reset()
	b.WriteString(`{"jsonrpc":"2.0"`)
	member := func(name string, value []byte) {
		fmt.Fprintf(b, `,%q:%s`, name, value)
	}
	if v.Type != "notification" {
		member("id", v.ID)
	}
	switch {
	case v.Type == "response" && v.IsError:
		member("error", v.Payload)
	case v.Type == "response":
		member("result", v.Payload)
	default:
		method, _ := json.Marshal(v.Method) // cannot fail
		member("method", method)
		if len(v.Params) > 0 && !bytes.Equal(v.Params, []byte("null")) { // null stands for none
			member("params", v.Params)
		}
	}
	b.WriteByte('}')
	e.rec = trace.Record{At: seconds(v.TS), Kind: trace.Frame, Dir: dir, Hop: hop, Data: b.Bytes(), Size: int64(b.Len())}
	if e.ofTools(v, hop) {
		text := b.Bytes()[:min(b.Len(), trace.MaxText/2)]
		e.rec = trace.Record{At: e.rec.At, Kind: trace.Event, Hop: hop, Name: "mcp",
			Detail: trace.Detail{Text: "to " + v.To + ": " + strings.ToValidUTF8(string(text), "\ufffd")}}
	}
	return &e.rec
}

// ofTools reports whether a message is of MCP. Responses do not say so: their requests do.
func (e *events) ofTools(v *event, hop trace.Hop) bool {
	mcp := strings.EqualFold(v.Protocol, "mcp")
	key := func(asker string) string {
		return hop.Client + "\x00" + hop.Agent + "\x00" + asker + "\x00" + string(v.ID)
	}
	switch v.Type {
	case "request":
		if mcp && len(v.ID) <= MaxID && len(e.tools) < maxTools {
			e.tools[key(v.From)] = true
		}
	case "response":
		if k := key(v.To); e.tools[k] {
			delete(e.tools, k)
			return true
		}
	}
	return mcp
}

// hop returns between which components a message passes, and whether to the one in the role of the agent: the
// proxy that stands nearer to it. Other names than those of a conductor have the roles of the first message.
func (e *events) hop(v *event) (trace.Hop, trace.Direction) {
	hop, known := e.hops[[2]string{v.From, v.To}]
	if !known {
		hop, known = e.hops[[2]string{v.To, v.From}]
	}
	if !known {
		from, okFrom := place(v.From)
		to, okTo := place(v.To)
		forth := from < to
		if !okFrom || !okTo || from == to {
			forth = v.Type != "response" && directionOf(v.Method) == trace.ToAgent
		}
		hop = trace.Hop{Client: v.To, Agent: v.From}
		if forth {
			hop = trace.Hop{Client: v.From, Agent: v.To}
		}
		if len(e.hops) < maxPairs {
			e.hops[[2]string{v.From, v.To}] = hop
		}
	}
	if hop.Client == v.From {
		return hop, trace.ToAgent
	}
	return hop, trace.ToClient
}

// place returns where a component stands in a chain, by the name that a conductor gives it.
func place(name string) (float64, bool) {
	name = strings.ToLower(name)
	switch name {
	case "client":
		return -1, true
	case "agent":
		return math.Inf(1), true
	}
	digits, ok := strings.CutPrefix(name, "proxy")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.Trim(digits, ":()"), 10, 31)
	return float64(n), err == nil
}

// seconds returns a time since the beginning.
func seconds(s float64) time.Duration {
	const most = 1e9 // 30 years
	return time.Duration(math.Max(0, math.Min(s, most)) * float64(time.Second))
}
