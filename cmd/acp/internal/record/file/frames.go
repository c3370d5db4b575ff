package file

import (
	"bufio"
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	envelope "github.com/goacp/acp/cmd/acp/internal/record/frame"
	"github.com/goacp/acp/internal/wire"
	"github.com/goacp/acp/trace"
)

const (
	// MaxID bounds the id of a request whose answer is recognized, in bytes: an id may be as long as a line.
	MaxID = 4 << 10
	// maxAsked bounds the requests of each side whose answers are recognized.
	maxAsked = 4096
	// frameEvery is the time that is put between frames whose times are not known.
	frameEvery = time.Millisecond
)

// frames reads a file that has a message in each line, as other programs record them:
//
//	{"jsonrpc":"2.0",…}
//	2026-01-02T15:04:05Z -> {"jsonrpc":"2.0",…}
//	{"direction":"outgoing","timestamp":"2026-01-02T15:04:05Z","message":{"jsonrpc":"2.0",…}}
//
// Where a line does not say who sent its frame, frames finds out: requests and notifications by their methods,
// answers by the requests that they answer. It keeps one line, of at most [trace.MaxLine] bytes, and the ids of
// requests.
type frames struct {
	lines
	read  envelope.Reader
	asked map[string][]trace.Direction // by id, the latest last
	at    time.Duration
	begun time.Time // the first time that is known
	// backwards says that the recorder was the agent: what it calls outgoing goes to the client.
	backwards bool
	rec       trace.Record
}

func newFrames(in *bufio.Reader) *frames {
	return &frames{lines: lines{in: in}, asked: map[string][]trace.Direction{}}
}

// Header implements source. Times count from the first that is known.
func (f *frames) Header() trace.Header {
	return trace.Header{Version: trace.Version, Started: f.begun}
}

// Next implements source.
func (f *frames) Next() (*trace.Record, error) {
	text, size, err := f.next()
	if err != nil {
		return nil, err
	}
	frame, word, when, isText := text, "", "", false
	if prefix, rest, ok := cutArrow(text); ok {
		word, when, frame = prefix.arrow, prefix.time, rest
	} else if w, ok := unwrap(text); ok {
		word, when, frame, isText = w.direction, w.time, w.frame, w.text
	}
	f.passes(when)
	f.rec = trace.Record{At: f.at, Kind: trace.Frame, Data: frame, Size: int64(len(frame))}
	switch cut := cutSize(frame); {
	case size > int64(len(text)):
		f.rec.Kind, f.rec.Size = trace.Text, size
	case isText || wire.Valid(frame) != nil:
		f.rec.Kind = trace.Text
		if cut > 0 {
			f.rec.Size = cut
		}
	}
	guess := f.direction(frame)
	f.rec.Dir = f.said(word, frame, guess)
	return &f.rec, nil
}

// passes moves the time on: to the one that a line tells, or a little.
func (f *frames) passes(when string) {
	t, ok := timeOf(when)
	switch {
	case !ok:
		f.at += frameEvery
	case f.begun.IsZero():
		f.begun = t.Add(-f.at)
	default:
		f.at = max(f.at, t.Sub(f.begun))
	}
}

// said returns who a frame is for by the word of its line, or guess if that says nothing.
func (f *frames) said(word string, frame []byte, guess trace.Direction) trace.Direction {
	dir, relative, ok := wordOf(word)
	if !ok {
		return guess
	}
	if !relative {
		return dir
	}
	if e := f.read.Read(frame); e.Method == "initialize" {
		f.backwards = dir != trace.ToAgent // only clients send it
	}
	if f.backwards {
		return opposite(dir)
	}
	return dir
}

func opposite(d trace.Direction) trace.Direction {
	if d == trace.ToAgent {
		return trace.ToClient
	}
	return trace.ToAgent
}

// wordOf returns the direction that a word stands for, and whether it depends on who recorded: then it is that of a
// client's recorder.
func wordOf(word string) (dir trace.Direction, relative, ok bool) {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "->", "-->", "→", ">", ">>", ">>>", "out", "outgoing", "outbound", "send", "sent", "tx":
		return trace.ToAgent, true, true
	case "<-", "<--", "←", "<", "<<", "<<<", "in", "incoming", "inbound", "receive", "received", "recv", "rx":
		return trace.ToClient, true, true
	case "to_agent", "to-agent", "toagent", "client_to_agent", "client-to-agent", "client->agent", "client", "c2a",
		"stdin":
		return trace.ToAgent, false, true
	case "to_client", "to-client", "toclient", "agent_to_client", "agent-to-client", "agent->client", "agent", "a2c",
		"stdout":
		return trace.ToClient, false, true
	}
	return 0, false, false
}

// A prefix is what stands before a frame in its line.
type prefix struct{ arrow, time string }

// maxPrefix bounds it, in bytes.
const maxPrefix = 200

// cutArrow cuts an arrow or another word for a direction, and a time that may stand before it, off the beginning of
// a line. Without a time, a frame must follow: text may well begin with such a word.
func cutArrow(line []byte) (p prefix, frame []byte, ok bool) {
	if len(line) > 0 && line[0] == '{' { // as nearly each line that has no such word
		return p, nil, false
	}
	for frame = line; p.arrow == ""; {
		at := bytes.IndexByte(frame[:min(len(frame), maxPrefix)], ' ')
		if at < 0 {
			return prefix{}, nil, false
		}
		word := strings.Trim(string(frame[:at]), "[]:")
		if _, isTime := timeOf(word); isTime && p.time == "" {
			p.time = word
		} else if _, relative, known := wordOf(word); known && relative {
			p.arrow = word
		} else {
			return prefix{}, nil, false
		}
		frame = bytes.TrimLeft(frame[at:], " ")
	}
	return p, frame, len(frame) > 0 && (p.time != "" || frame[0] == '{' || frame[0] == '[')
}

// cutMark is what acp.LogTransport writes behind the beginning of a long frame.
var cutMark = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`… \((\d{1,18}) bytes\)$`) })

// cutSize returns the size of a frame of which a line shows the beginning, or 0 if it shows all of it.
func cutSize(text []byte) int64 {
	const most = 40
	m := cutMark().FindSubmatch(text[max(0, len(text)-most):])
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseInt(string(m[1]), 10, 64)
	return n
}

// The names of the members of a line that is an object around a frame.
var (
	directionNames = []string{"direction", "dir"}
	frameNames     = []string{"message", "msg", "frame", "data", "payload"}
	timeNames      = []string{"timestamp", "time", "ts"}
)

// A wrapped is a frame in an object with its direction.
type wrapped struct {
	direction, time string
	frame           []byte
	text            bool // it is not JSON
}

// unwrap reads such an object.
func unwrap(line []byte) (w wrapped, ok bool) {
	if line[0] != '{' || envelope.Find(line, "jsonrpc") != nil {
		return wrapped{}, false
	}
	first := func(names []string) []byte {
		for _, name := range names {
			if v := envelope.Find(line, name); v != nil {
				return v
			}
		}
		return nil
	}
	w.direction, w.frame = envelope.Text(first(directionNames)), first(frameNames)
	if w.direction == "" || w.frame == nil {
		return wrapped{}, false
	}
	w.time = envelope.Text(first(timeNames))
	if w.frame[0] == '"' { // the frame is a string
		var text string
		if json.Unmarshal(w.frame, &text) != nil || strings.TrimSpace(text) == "" {
			return wrapped{}, false
		}
		w.frame = bytes.TrimSpace([]byte(text))
		w.text = wire.Valid(w.frame) != nil
	}
	return w, true
}

// direction returns who a frame is for. What is not a message is the agent's.
func (f *frames) direction(text []byte) trace.Direction {
	e := f.read.Read(text)
	id := string(e.ID)
	switch {
	case e.Method == "" && e.ID == nil:
		return trace.ToClient
	case e.Method != "":
		dir := directionOf(e.Method)
		if list := f.asked[id]; e.ID != nil && len(id) <= MaxID && len(f.asked) < maxAsked && len(list) < 2 {
			f.asked[id] = append(list, dir)
		}
		return dir
	}
	// If both sides use an id, the later request is answered first: it was asked in the turn of the other.
	list := f.asked[id]
	if len(list) == 0 {
		return trace.ToClient
	}
	dir := list[len(list)-1]
	if f.asked[id] = list[:len(list)-1]; len(list) == 1 {
		delete(f.asked, id)
	}
	return opposite(dir)
}

// directionOf returns who a method is for. Extensions are taken for the agent's, but for known ones of clients.
func directionOf(method string) trace.Direction {
	switch method {
	case "session/update", "session/request_permission", "auth/status_update", "mcp/connect", "mcp/disconnect":
		return trace.ToClient
	}
	for _, of := range []string{"_session/", "_goose/", "_proxy/initialize"} {
		if strings.HasPrefix(method, of) {
			return trace.ToAgent
		}
	}
	for _, of := range []string{"fs/", "terminal/", "elicitation/", "_"} {
		if strings.HasPrefix(method, of) {
			return trace.ToClient
		}
	}
	return trace.ToAgent
}
