package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/record/frame"
	"github.com/goacp/acp/cmd/acp/internal/record/summary"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/trace"
)

// TestSpread holds that what is told of many numbers is at most a 32nd too much.
func TestSpread(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, scale := range []int64{10, 1000, 1 << 40, 1<<63 - 1} {
		var s spread
		var all []int64
		for range 1001 {
			n := rnd.Int64N(scale)
			s.addNumber(n)
			all = append(all, n)
		}
		slices.Sort(all)
		for _, tt := range []struct {
			part float64
			want int64
		}{{0.5, all[500]}, {0.99, all[990]}, {1, all[1000]}} {
			got := s.at(tt.part)
			if got < tt.want || float64(got) > float64(tt.want)*(1+1.0/32)+1 {
				t.Errorf("%v of numbers up to %d is %d, told %d", tt.part, scale, tt.want, got)
			}
		}
		if s.max != all[1000] || len(s.counts) > 2000 {
			t.Errorf("max %d, %d slots", s.max, len(s.counts))
		}
	}
	var none spread
	if none.at(0.5) != 0 {
		t.Error("of nothing there is something")
	}
	for i := range 1900 {
		if n := top(i); n >= 0 && slot(uint64(n)) != i {
			t.Fatalf("the largest number of slot %d is %d, which is in slot %d", i, n, slot(uint64(n)))
		}
	}
}

// TestMeterBounds shows a meter more of everything than it keeps.
func TestMeterBounds(t *testing.T) {
	var m meter
	frame := func(dir trace.Direction, format string, args ...any) {
		m.addRecord(&trace.Record{Kind: trace.Frame, Dir: dir, Data: fmt.Appendf(nil, format, args...)}, 1)
	}
	for i := range 6000 {
		frame(trace.ToAgent, `{"id":%d,"method":"m%d","params":{"sessionId":"s%d"}}`, i, i, i)
		m.addRecord(&trace.Record{Kind: trace.Event, Name: fmt.Sprint("e", i)}, 1)
	}
	frame(trace.ToClient, `{"id":5999,"result":{}}`)
	frame(trace.ToClient, `{"id":0,"result":{}}`) // forgotten
	frame(trace.ToAgent, `{"id":"%s","method":"m"}`, strings.Repeat("x", 5000))
	m.beginPart()
	var answered, unanswered, all int64
	for _, c := range m.methods {
		answered += c.latency.n
		unanswered += c.unanswered
		all += c.size.n
	}
	if answered != 1 || unanswered != 6000 || all != 6001 {
		t.Errorf("%d answered, %d unanswered, %d in all", answered, unanswered, all)
	}
	if len(m.methods) != maxMethods+1 || len(m.sessions) != maxSessions || m.more != 5000 || len(m.events) != maxMethods || len(m.biggest) != maxBiggest {
		t.Errorf("%d methods, %d sessions and %d, %d events, %d biggest", len(m.methods), len(m.sessions), m.more, len(m.events), len(m.biggest))
	}
}

// TestPendings reuses an id and answers most: the order is forgotten with them.
func TestPendings(t *testing.T) {
	var p pendings
	if p.addRequest([]byte("1"), pending{at: 1}) || !p.addRequest([]byte("1"), pending{at: 2}) {
		t.Error("one too many is told wrongly")
	}
	if q, ok := p.takeRequest([]byte("1")); !ok || q.at != 2 {
		t.Error(q, ok)
	}
	for i := range 100_000 {
		id := fmt.Append(nil, i)
		if p.addRequest(id, pending{}) {
			t.Fatal("forgot one of none")
		}
		if _, ok := p.takeRequest(id); !ok {
			t.Fatal("lost one")
		}
	}
	if len(p.order) > 2*maxPending {
		t.Errorf("%d ids are kept", len(p.order))
	}
}

// TestTurns measures turns of both versions, one after another and queued.
func TestTurns(t *testing.T) {
	tests := []struct {
		name        string
		frames      []string // direction, milliseconds, frame
		first, turn []int64  // milliseconds
		tokens      int64
	}{
		{"version 1", []string{
			`> 0 {"id":1,"method":"session/prompt","params":{"sessionId":"s"}}`,
			`< 10 {"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan"}}}`,
			`< 20 {"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call"}}}`,
			`< 30 {"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk"}}}`,
			`< 50 {"id":1,"result":{"stopReason":"end_turn","usage":{"totalTokens":7}}}`,
			`> 60 {"id":2,"method":"session/prompt","params":{"sessionId":"s"}}`,
			`< 61 {"id":2,"error":{"code":1}}`,
		}, []int64{20}, []int64{50, 1}, 7},
		{"version 2", []string{
			`> 0 {"id":1,"method":"session/prompt","params":{"sessionId":"s"}}`,
			`< 1 {"id":1,"result":{"messageId":"m"}}`,
			`< 5 {"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk"},"sessionId":"s"}}`,
			`< 9 {"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"idle","usage":{"totalTokens":3}}}}`,
			`< 99 {"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"idle"}}}`,
		}, []int64{5}, []int64{9}, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var m meter
			for _, line := range tt.frames {
				var ms int64
				var dir, data string
				if _, err := fmt.Sscanf(line, "%1s %d", &dir, &ms); err != nil {
					t.Fatal(err)
				}
				_, data, _ = strings.Cut(line[2:], " ")
				m.addRecord(&trace.Record{Kind: trace.Frame, Dir: trace.Direction(dir[0]), At: time.Duration(ms) * time.Millisecond, Data: []byte(data)}, 1)
			}
			s := m.sessions["s"]
			for _, c := range []struct {
				name string
				got  spread
				want []int64
			}{{"first", s.first, tt.first}, {"turn", s.turn, tt.turn}} {
				var sum int64
				for _, n := range c.want {
					sum += n * 1e6
				}
				if c.got.n != int64(len(c.want)) || c.got.sum != sum {
					t.Errorf("%s: %d times, %d ns, want %v ms", c.name, c.got.n, c.got.sum, c.want)
				}
			}
			if s.tokens["totalTokens"] != tt.tokens {
				t.Errorf("%d tokens, want %d", s.tokens["totalTokens"], tt.tokens)
			}
		})
	}
}

// recording writes a trace of lines and returns its name.
func recording(t *testing.T, lines ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "x.acptrace")
	data := `{"acpTrace":1,"started":"2026-11-21T14:00:00Z"}` + "\n" + strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestHostile prints what could harm a terminal in every place there is.
func TestHostile(t *testing.T) {
	bad := `\u001b]0;x\u0007\u009b31m\u202e\r\n`
	name := recording(t,
		`{"acpTrace":1,"started":"`+bad+`","tool":"`+bad+`","command":["`+bad+`"]}`,
		`{"t":1,"e":"`+bad+`","text":"`+bad+`"}`,
		`{"t":1,"d":">","f":{"jsonrpc":"2.0","id":"`+bad+`","method":"`+bad+`","params":{"sessionId":"`+bad+`","`+bad+`":1}}}`,
		`{"t":1,"d":"<","f":{"jsonrpc":"2.0","id":"`+bad+`","error":{"code":1,"message":"`+bad+`"}}}`,
		`{"t":1,"d":"<","f":{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"`+bad+`","update":{"sessionUpdate":"`+bad+`","x":"`+"\u009b\u202e"+`"}}}}`,
		`{"t":1,"d":"<","f":{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"`+bad+`","update":{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":1,"currency":"`+bad+`"}}}}}`,
		`{"t":1,"d":"<","text":"`+bad+`"}`, `{"t":1,"e":"stderr","text":"`+bad+`"}`)
	other := recording(t, `{"t":1,"d":"<","f":{"`+bad+`":"`+bad+`"}}`, `{"t":1,"d":">","text":"`+bad+`"}`)
	for _, o := range []*Options{
		{Verb: verbShow, Check: true}, {Verb: verbShow, Full: true}, {Verb: verbShow, JSON: true, Full: true, Check: true},
		{Verb: verbShow, Transcript: true}, {Verb: verbShow, Transcript: true, JSON: true},
		{Verb: verbStats, Check: true}, {Verb: verbStats, JSON: true}, {Verb: verbDiff}, {Verb: verbDiff, JSON: true},
	} {
		var out, errs bytes.Buffer
		o.App, o.Files = &app.App{Out: &out, Err: &errs}, []string{name}
		if o.Verb == verbDiff {
			o.Files = append(o.Files, other)
		}
		err := o.run(t.Context())
		if err != nil && o.Verb != verbDiff {
			t.Fatal(err)
		}
		text := out.String() + errs.String() + fmt.Sprint(err)
		if i := strings.IndexAny(text, "\x1b\x07\u009b\u202e\r"); i >= 0 {
			t.Errorf("%+v prints %q", o, text[max(0, i-80):i+1])
		}
		if o.JSON {
			for line := range strings.Lines(out.String()) {
				if !json.Valid([]byte(line)) {
					t.Errorf("no JSON: %s", line)
				}
			}
		}
	}
}

// TestTranscriptsCut: a recording of more sessions than are kept says so, and one that is named is kept, whenever it was.
func TestTranscriptsCut(t *testing.T) {
	var lines []string
	for i := range summary.MaxSessions + 8 {
		lines = append(lines, fmt.Sprintf(`{"t":1,"d":"<","f":{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-%d-","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hello"}}}}}`, i))
	}
	name := recording(t, lines...)
	for _, tt := range []struct {
		session, says string
		shown         int
	}{
		{"", fmt.Sprintf("acp: %d of %d sessions are shown, those that changed last; --session ID shows another one\n", summary.MaxSessions, summary.MaxSessions+8), summary.MaxSessions},
		{"s-0-", "", 1},
		{"s-20-", "", 1},
	} {
		var out, errs bytes.Buffer
		o := &Options{Verb: verbShow, Transcript: true, Session: tt.session, App: &app.App{Out: &out, Err: &errs}, Files: []string{name}}
		if err := o.run(t.Context()); err != nil || errs.String() != tt.says || strings.Count(out.String(), "hello") != tt.shown {
			t.Errorf("%q: %v, %q, %d sessions", tt.session, err, errs.String(), strings.Count(out.String(), "hello"))
		}
	}
}

// TestNormaliser numbers ids in the same order each time, also those of one frame.
func TestNormaliser(t *testing.T) {
	const frame = `{"d":1,"messageId":"a","recipientSessionId":"b","sessionId":"c","toolCallId":"d","terminalId":"e"}`
	want := ""
	for range 50 {
		var v any
		if err := json.Unmarshal([]byte(frame), &v); err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(new(normaliser).value("", v))
		if err != nil || want != "" && string(data) != want {
			t.Fatalf("%s, then %s, %v", want, data, err)
		}
		want = string(data)
	}
}

// TestTranslator puts other ids in the place of recorded ones, and nothing else.
func TestTranslator(t *testing.T) {
	var read frame.Reader
	frame := func(s string) *frame.Envelope { f := read.Read([]byte(s)); return &f }
	var tr translator
	tr.learn(frame(`{"id":7,"method":"x","params":{"sessionId":"old","optionId":"same","n":{"toolCallId":"t\"1"},"list":[{"a":1}],"text":"a"}}`),
		frame(`{"id":"new","method":"x","params":{"sessionId":"young","optionId":"same","n":{"toolCallId":"t\n2"},"text":"b"}}`))
	tests := []struct{ in, want string }{
		{`{"jsonrpc":"2.0", "id" : 7 ,"result":{"id":7,"sessionId":"old","x":["old"]}}`, `{"jsonrpc":"2.0", "id" : "new" ,"result":{"id":7,"sessionId":"young","x":["old"]}}`},
		{`{"result":{"a":"\\\"id\":7"},"id":7}`, `{"result":{"a":"\\\"id\":7"},"id":"new"}`},
		{`{"id":7,"method":"own","params":{"sessionId": "old"}}`, `{"id":7,"method":"own","params":{"sessionId": "young"}}`},
		{`{"method":"n","params":{"toolCallId":"t\u00221","text":"a","other":"old"}}`, `{"method":"n","params":{"toolCallId":"t\n2","text":"a","other":"old"}}`},
		{`{"id":8,"result":null}`, `{"id":8,"result":null}`},
		{`no JSON "id":7`, `no JSON "id":7`},
	}
	for _, tt := range tests {
		st := &step{data: []byte(tt.in), text: !json.Valid([]byte(tt.in))}
		if !st.text {
			st.Envelope = read.Read(st.data)
		}
		if got := string(tr.apply(st)); got != tt.want {
			t.Errorf("%s became %s, want %s", tt.in, got, tt.want)
		}
	}
}

// FuzzTranslator keeps JSON what it is.
func FuzzTranslator(f *testing.F) {
	f.Add(`{"id":1,"result":{"sessionId":"a","x":"\\"}}`, "a", "b\"\\")
	f.Fuzz(func(t *testing.T, in, id, other string) {
		var read frame.Reader
		st := &step{data: []byte(in)}
		st.Envelope = read.Read(st.data)
		st.text = !json.Valid(st.data)
		tr := translator{ids: map[string]string{id: other}, requests: map[string]string{string(st.ID): `"new"`}}
		out := tr.apply(st)
		if json.Valid([]byte(in)) != json.Valid(out) {
			t.Fatalf("%s became %s", in, out)
		}
	})
}

// played plays recorded lines as the agent, and lets client do its part.
func played(t *testing.T, o *Options, lines []string, client func(c jsonrpc.Stream)) error {
	t.Helper()
	o.Verb, o.As, o.Files = verbReplay, asAgent, []string{recording(t, lines...)}
	o.App = &app.App{Out: io.Discard, Err: io.Discard}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	o.In, o.Out = inR, outW
	done := make(chan struct{})
	go func() {
		defer close(done)
		c := jsonrpc.NewLineStream(outR, inW)
		client(c)
		_ = c.Close()
	}()
	err := o.run(t.Context())
	<-done
	return err
}

// ask writes a frame and reads n.
func ask(t *testing.T, c jsonrpc.Stream, frame string, n int) (got []string) {
	t.Helper()
	if err := c.WriteFrame([]byte(frame)); err != nil {
		t.Error(err)
	}
	for range n {
		f, err := c.ReadFrame()
		if err != nil {
			return append(got, err.Error())
		}
		got = append(got, string(f.Data))
	}
	return got
}

var turn = []string{
	`{"t":0,"d":">","f":{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":{"sessionId":"s"}}}`,
	`{"t":1000000000,"d":"<","f":{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk"}}}}`,
	`{"t":3000000000,"d":">","f":{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}}`,
	`{"t":3500000000,"d":"<","f":{"jsonrpc":"2.0","id":5,"result":{"stopReason":"cancelled"}}}`,
}

// TestReplaySpeed plays at the recorded speed, and waits for a notification that matters.
func TestReplaySpeed(t *testing.T) {
	for _, speed := range []string{speedRecorded, speedMax} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			var took []time.Duration
			var got []string
			err := played(t, &Options{Speed: speed, Timeout: time.Minute}, turn, func(c jsonrpc.Stream) {
				got = ask(t, c, `{"jsonrpc":"2.0","id":"x","method":"session/prompt","params":{"sessionId":"z"}}`, 1)
				took = append(took, time.Since(begin))
				time.Sleep(10 * time.Second)
				got = append(got, ask(t, c, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"z"}}`, 1)...)
				took = append(took, time.Since(begin))
			})
			if err != nil {
				t.Fatal(err)
			}
			want := []string{
				`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"z","update":{"sessionUpdate":"agent_message_chunk"}}}`,
				`{"jsonrpc":"2.0","id":"x","result":{"stopReason":"cancelled"}}`,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			times := map[string][]time.Duration{
				speedRecorded: {time.Second, 11*time.Second + 500*time.Millisecond}, speedMax: {0, 10 * time.Second},
			}
			if diff := cmp.Diff(times[speed], took); diff != "" {
				t.Error(speed, diff)
			}
		})
	}
}

// TestReplayDivergence has clients that do something else.
func TestReplayDivergence(t *testing.T) {
	prompt := `{"jsonrpc":"2.0","id":"x","method":"session/prompt","params":{"sessionId":"z"}}`
	tests := []struct {
		name   string
		strict bool
		client func(c jsonrpc.Stream)
		code   exitcode.Code
		err    string
	}{
		{"another request", false, func(c jsonrpc.Stream) { ask(t, c, `{"id":1,"method":"session/close"}`, 0) }, exitcode.Failed,
			"line 2: expected the request session/prompt, got the request session/close, for which there is no answer in the recording"},
		{"a request twice", false, func(c jsonrpc.Stream) { ask(t, c, prompt, 1); ask(t, c, prompt, 0) }, exitcode.Failed,
			"line 4: expected the notification session/cancel, got the request session/prompt, for which"},
		{"another notification", false, func(c jsonrpc.Stream) { ask(t, c, `{"method":"$/x"}`, 0); ask(t, c, "noise", 0); ask(t, c, prompt, 1) }, exitcode.Agent,
			"the other side ended while the notification session/cancel was expected, as in line 4"},
		{"another notification when strict", true, func(c jsonrpc.Stream) { ask(t, c, `{"method":"$/x"}`, 0) }, exitcode.Failed,
			"line 2: expected the request session/prompt, got the notification $/x"},
		{"the end", false, func(c jsonrpc.Stream) {}, exitcode.Agent, "the other side ended while the request session/prompt was expected, as in line 2"},
		{"nothing", false, func(c jsonrpc.Stream) { time.Sleep(time.Hour) }, exitcode.Timeout,
			"nothing was received for 1m0s while the request session/prompt was expected, as in line 2"},
		{"more", false, func(c jsonrpc.Stream) {
			ask(t, c, prompt, 1)
			ask(t, c, `{"method":"session/cancel"}`, 1)
			ask(t, c, `{"id":3,"method":"more"}`, 0)
		}, exitcode.Failed, "after the end of the recording, got the request more"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := played(t, &Options{Speed: speedMax, Timeout: time.Minute, Strict: tt.strict}, turn, tt.client)
				if err == nil || !strings.HasPrefix(err.Error(), tt.err) || exitcode.Of(err) != tt.code {
					t.Errorf("got %v (%d), want %s (%d)", err, exitcode.Of(err), tt.err, tt.code)
				}
			})
		})
	}
}

// TestMemory sums up a recording that is longer than what it may keep.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 50 MB")
	}
	name := filepath.Join(t.TempDir(), "x.acptrace")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w, err := trace.NewWriter(f, trace.Header{})
	if err != nil {
		t.Fatal(err)
	}
	rec := trace.Record{Kind: trace.Frame, Dir: trace.ToClient}
	text := strings.Repeat("x", 900)
	for i := range 50_000 {
		rec.At = time.Duration(i)
		rec.Data = fmt.Appendf(rec.Data[:0], `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s%d","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}}}`, i, text)
		if err := w.Write(&rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		t.Fatal(err)
	}
	before := alive()
	var out bytes.Buffer
	o := &Options{Verb: verbStats, Files: []string{name}, JSON: true, App: &app.App{Out: &out, Err: io.Discard}}
	var during uint64
	o.App.Out = writer(func(b []byte) { during = alive() })
	if err := o.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if during > before+16<<20 {
		t.Errorf("%d bytes are kept", during-before)
	}
}

func alive() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }
