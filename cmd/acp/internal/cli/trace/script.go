package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/record/file"
	"github.com/goacp/acp/cmd/acp/internal/record/frame"
	"github.com/goacp/acp/trace"
)

// A step is a frame of the part of the recording that is played.
type step struct {
	line int64
	at   time.Duration
	ours bool
	data []byte
	text bool // the frame is not JSON
	frame.Envelope
}

// A script reads the steps one after another.
type script struct {
	s    *file.File
	part int
	ours trace.Direction // the direction of the frames that we send
	read frame.Reader
}

// A plan is the part of a recording to play, and what must be known about it in advance.
type plan struct {
	part   int
	asks   map[string]int // number of the other side's requests, by method
	frames int
	talk   bool  // the client sends more than initialize
	err    error // the reason why the part cannot be played
}

// plan reads the recording and chooses the part. Unless --part names one, that is the first part
// with more than initialize: clients often try one version of the protocol and connect again with
// another.
func (o *Options) plan(ctx context.Context) (*plan, error) {
	s, err := o.open(ctx, o.Files[0])
	if err != nil {
		return nil, err
	}
	defer s.Close()
	ours := o.sends()
	var first, p *plan
	var read frame.Reader
	for {
		rec, err := s.Record()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		part := s.Part()
		if rec.Kind != trace.Frame && rec.Kind != trace.Text || o.Part > 0 && part != o.Part {
			continue
		}
		if p == nil || p.part != part {
			if p != nil && p.talk {
				break
			}
			p = &plan{part: part, asks: map[string]int{}}
			if first == nil {
				first = p
			}
		}
		p.frames++
		if rec.Dir == ours && rec.Size > int64(len(rec.Data)) && p.err == nil {
			p.err = exitcode.Errorf(exitcode.Failed, "%s: line %d cannot be played: only the beginning of this frame of %s was recorded", line(s.Name), s.Line(), size(rec.Size))
		}
		if rec.Kind == trace.Text {
			continue
		}
		f := read.Read(rec.Data)
		if rec.Dir != ours && f.Request() {
			p.asks[f.Method]++
		}
		if rec.Dir == trace.ToAgent && f.Method != "" && f.Method != "initialize" {
			p.talk = true
		}
	}
	switch {
	case p == nil:
		return nil, exitcode.Errorf(exitcode.Usage, "%s has no frames to play in that part", line(s.Name))
	case !p.talk:
		p = first
	}
	return p, p.err
}

// sends returns the direction of the frames that the played side sends.
func (o *Options) sends() trace.Direction {
	if o.As == asAgent {
		return trace.ToClient
	}
	return trace.ToAgent
}

// next returns the next step, or io.EOF.
func (p *script) next() (*step, error) {
	for {
		rec, err := p.s.Record()
		if err != nil {
			return nil, err
		}
		if p.s.Part() > p.part {
			return nil, io.EOF
		}
		if p.s.Part() < p.part || rec.Kind != trace.Frame && rec.Kind != trace.Text {
			continue
		}
		st := &step{
			line: p.s.Line(), at: rec.At, ours: rec.Dir == p.ours, data: bytes.Clone(rec.Data), text: rec.Kind == trace.Text,
		}
		if !st.text {
			st.Envelope = p.read.Read(st.data)
		}
		return st, nil
	}
}

// needed reports whether replay waits for a step of the other side. Without strict it waits only
// for what moves the conversation on: requests, answers, and the cancellation or end of a turn.
func (s *step) needed(strict bool) bool {
	switch {
	case s.text:
		return false // noise
	case s.Request(), s.Answer(), s.Method == "session/cancel":
		return true
	case strict:
		return s.Notification()
	case s.Kind == "state_update":
		return frame.Member(s.Update, "state") == "idle"
	}
	return false
}

// describe describes a frame, for comparisons and messages. asked is the method of the request that
// an answer belongs to.
func describe(f *frame.Envelope, asked string) string {
	switch {
	case f.Answer() && f.Error != nil:
		return "an error as the answer to " + asked
	case f.Answer():
		return "the answer to " + asked
	case f.Request():
		return "the request " + f.Method
	case f.Kind == "state_update":
		return "a state_update to " + frame.Member(f.Update, "state")
	case f.Kind != "":
		return "the update " + f.Kind
	case f.Method != "":
		return "the notification " + f.Method
	}
	return "something that is not JSON-RPC"
}

// A translator replaces recorded ids by those that the other side generates in this run.
type translator struct {
	requests map[string]string // ids of its requests, as JSON
	ids      map[string]string // of sessions, tool calls and so on
}

// learn records the ids in which a recorded frame and the one that came differ.
func (t *translator) learn(recorded, came *frame.Envelope) {
	if recorded.Request() && came.Request() {
		if t.requests == nil {
			t.requests = map[string]string{}
		}
		if len(t.requests) < maxIDs {
			t.requests[string(recorded.ID)] = string(came.ID)
		}
	}
	for _, both := range [][2][]byte{{recorded.Params, came.Params}, {recorded.Result, came.Result}} {
		var a, b any
		if json.Unmarshal(both[0], &a) == nil && json.Unmarshal(both[1], &b) == nil {
			t.compare("", a, b)
		}
	}
}

// compare learns from an answer which ids replace those of the recording.
func (t *translator) compare(key string, a, b any) {
	switch a := a.(type) {
	case map[string]any:
		b, _ := b.(map[string]any)
		for k, v := range a {
			if other, ok := b[k]; ok {
				t.compare(k, v, other)
			}
		}
	case []any:
		b, _ := b.([]any)
		for i := range min(len(a), len(b)) {
			t.compare(key, a[i], b[i])
		}
	case string:
		b, ok := b.(string)
		if !ok || a == b || !isID(key) || len(t.ids) >= maxIDs {
			return
		}
		if t.ids == nil {
			t.ids = map[string]string{}
		}
		t.ids[a] = b
	}
}

// isID reports whether a member of that name holds an id.
func isID(key string) bool { return strings.HasSuffix(key, "Id") }

// apply returns the frame to send instead of a recorded one. Everything except ids stays unchanged,
// byte for byte, because the exact form of a frame may be what the user wants to reproduce.
func (t *translator) apply(s *step) []byte {
	if s.text {
		return s.data
	}
	var out []byte
	in, done, depth := s.data, 0, 0
	key := ""
	for i := 0; i < len(in); {
		switch in[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			end := i + 1
			for end < len(in) && in[end] != '"' {
				if in[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end+1, len(in))
			str := in[i:end]
			rest := bytes.TrimLeft(in[end:], " \t\r\n")
			if len(rest) > 0 && rest[0] == ':' {
				key = frame.Text(str)
				// The id of an answer is the id of the request, which may be of any type.
				if depth == 1 && key == "id" && s.Answer() {
					at := len(in) - len(rest) + 1
					at += len(in[at:]) - len(bytes.TrimLeft(in[at:], " \t\r\n"))
					if id, ok := t.requests[string(s.ID)]; ok && bytes.HasPrefix(in[at:], s.ID) {
						out = append(append(out, in[done:at]...), id...)
						done = at + len(s.ID)
						i = done
						continue
					}
				}
			} else if isID(key) {
				if id, ok := t.ids[frame.Text(str)]; ok {
					quoted, err := json.Marshal(id)
					if err == nil {
						out = append(append(out, in[done:i]...), quoted...)
						done = end
					}
				}
			}
			i = end
			continue
		}
		i++
	}
	return append(out, in[done:]...)
}
