package conformance

import (
	"bytes"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp/trace"
)

// longRecording makes TestMonitorLong go over a million frames, 1 GB:
//
//	go test ./conformance -run TestMonitorLong -long -v
var longRecording = flag.Bool("long", false, "monitor a conversation of a million frames")

// traffic makes the frames of a long conversation, about 1 kB each.
type traffic struct {
	n    int
	turn int
	text string
	buf  []byte
}

func newTraffic() *traffic {
	return &traffic{text: strings.Repeat("func main() { fmt.Println(\\\"hello, world\\\") }\\n\\tit goes on, “quoted”, and on. ", 12)}
}

const framesPerTurn = 200

// next returns the next frame and its direction.
func (c *traffic) next() (trace.Direction, []byte) {
	n := c.n
	c.n++
	dir, b := trace.ToClient, c.buf[:0]
	head := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_1","update":{"sessionUpdate":`
	switch {
	case n < 4:
		lines := [...]string{preludes["v1"][0], preludes["v1"][1], preludes["session v1"][0], preludes["session v1"][1]}
		dir = trace.Direction(lines[n][0])
		b = append(b, strings.ReplaceAll(frameOf(lines[n][2:]), `"s1"`, `"sess_1"`)...)
	case n%framesPerTurn == 4:
		c.turn++
		dir = trace.ToAgent
		b = fmt.Appendf(b, `{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"sess_1","prompt":[{"type":"text","text":"go on"}]}}`, c.turn+10)
	case n%framesPerTurn == 3:
		b = fmt.Appendf(b, `{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"end_turn"}}`, c.turn+10)
	case n%framesPerTurn == 2:
		b = fmt.Appendf(b, `%s"usage_update","used":%d,"size":200000}}}`, head, n%200000)
	case n%10 == 5:
		b = fmt.Appendf(b, `%s"tool_call","toolCallId":"call_%d","title":"Read main.go","kind":"read","status":"in_progress","locations":[{"path":"/w/main.go","line":10}],"rawInput":{"path":"/w/main.go"}}}}`, head, n)
	case n%10 == 6:
		b = fmt.Appendf(b, `%s"tool_call_update","toolCallId":"call_%d","status":"completed","content":[{"type":"content","content":{"type":"text","text":"%s"}}]}}}`, head, n-1, c.text)
	default:
		b = fmt.Appendf(b, `%s"agent_message_chunk","messageId":"msg_%d","content":{"type":"text","text":"%d %s"}}}}`, head, c.turn, n, c.text)
	}
	c.buf = b
	return dir, b
}

// TestMonitorLong holds that a long conversation is looked at in bounded memory.
// With -long, a million frames of together 1 GB took 6.5 s, 190 MB/s, on two
// cores that were busy with other things, with a heap of 4 MB.
func TestMonitorLong(t *testing.T) {
	frames := 50_000
	if *longRecording {
		frames = 1_000_000
	} else if testing.Short() {
		frames = 10_000
	}
	m := NewMonitor(MonitorConfig{})
	c := newTraffic()
	var peak uint64
	var took time.Duration
	bytes := 0
	for i := range frames {
		dir, b := c.next()
		bytes += len(b)
		begun := time.Now()
		found := m.Frame(time.Duration(i)*time.Millisecond, dir, b)
		took += time.Since(begun)
		for _, f := range found {
			t.Fatalf("frame %d: %s: %s\n%s", i, f.Rule.ID, f.Why, b)
		}
		if i%10_000 == 0 {
			peak = max(peak, liveHeap())
		}
	}
	t.Logf("%d frames, %d MB, %.0f MB/s, heap %d MB", frames, bytes>>20, float64(bytes)/1e6/took.Seconds(), peak>>20)
	if peak > 64<<20 {
		t.Errorf("the heap grew to %d MB", peak>>20)
	}
}

// liveHeap is what is in use on the heap, without what other tests have left.
func liveHeap() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// TestMonitorForgets holds that nothing an agent does makes a monitor grow
// without bound, and that it accuses nobody of what it has forgotten.
func TestMonitorForgets(t *testing.T) {
	m := NewMonitor(MonitorConfig{})
	at := func(dir trace.Direction, format string, args ...any) {
		t.Helper()
		for _, f := range m.Frame(0, dir, fmt.Appendf(nil, format, args...)) {
			t.Fatalf("%s: %s", f.Rule.ID, f.Why)
		}
	}
	for _, l := range preludes["v1"] {
		at(trace.Direction(l[0]), "%s", frameOf(l[2:]))
	}
	const many = 3 * maxInFlight
	for i := range many {
		at(trace.ToAgent, `{"jsonrpc":"2.0","id":%d,"method":"_x","params":{}}`, i+10)
	}
	for i := range many {
		at(trace.ToClient, `{"jsonrpc":"2.0","id":%d,"result":{}}`, i+10)
	}
	for i := range 3 * maxSessions {
		at(trace.ToAgent, `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`)
		at(trace.ToClient, `{"jsonrpc":"2.0","id":1,"result":{"sessionId":"%s%d"}}`, strings.Repeat("s", 1000), i)
	}
	for i := range 3 * maxSessions {
		at(trace.ToClient, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%s%d","update":{"sessionUpdate":"usage_update","used":1,"size":2}}}`, strings.Repeat("s", 1000), i)
	}
	at(trace.ToAgent, `{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`)
	at(trace.ToClient, `{"jsonrpc":"2.0","id":2,"result":{"sessionId":"t"}}`)
	at(trace.ToAgent, `{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"t","prompt":[{"type":"text","text":"x"}]}}`)
	for i := range 3 * maxEntries {
		at(trace.ToClient, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"t","update":{"sessionUpdate":"tool_call","toolCallId":"%d","title":"T"}}}`, i)
	}
	for i := range 3 * maxEntries {
		at(trace.ToClient, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"t","update":{"sessionUpdate":"tool_call_update","toolCallId":"%d","status":"completed"}}}`, i)
	}
	for id, e := range m.sessions.m {
		if len(id) > 2*briefMax || len(e.v.tools.m) > maxEntries {
			t.Errorf("a session of %d bytes with %d tool calls", len(id), len(e.v.tools.m))
		}
	}
	if n := len(m.sessions.m); n > maxSessions {
		t.Errorf("%d sessions", n)
	}
	for i := range m.open {
		if a, b := len(m.open[i].m), len(m.answered[i].m); a > maxInFlight || b > maxGone {
			t.Errorf("%d requests, %d answered", a, b)
		}
	}
}

// TestMonitorBoundsFindings holds that one frame has a bounded number of them.
func TestMonitorBoundsFindings(t *testing.T) {
	m := NewMonitor(MonitorConfig{})
	var entries []string
	for range 1000 {
		entries = append(entries, `{"name":"/","description":""}`)
	}
	found := m.Frame(0, trace.ToClient, []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"available_commands_update","availableCommands":[`+strings.Join(entries, ",")+`]}}}`))
	if len(found) != maxFindings {
		t.Errorf("%d findings, want %d", len(found), maxFindings)
	}
	if n := m.Stats().Findings[builtin().byID["agent/command/names"]]; n != 1000 {
		t.Errorf("%d counted, want 1000", n)
	}
}

// TestMonitorJoined holds that a monitor that came late accuses nobody of what
// may have been before, and still sees what is wrong by itself.
func TestMonitorJoined(t *testing.T) {
	frames := []string{
		`< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}}}`,
		`> {"jsonrpc":"2.0","id":7,"result":{"content":""}}`,
		`< {"jsonrpc":"2.0","id":8,"result":{"stopReason":"end_turn"}}`,
		`> {"jsonrpc":"2.0","id":9,"method":"session/prompt","params":{"sessionId":"u","prompt":[{"type":"image","mimeType":"image/png","data":""}]}}`,
		`< {"jsonrpc":"2.0","id":1,"method":"terminal/output","params":{"sessionId":"u","terminalId":"t"}}`,
		`> {"jsonrpc":"2.0","id":10,"method":"session/set_mode","params":{"sessionId":"u","modeId":"m"}}`,
		`< {"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":77}}`,
		`> {"jsonrpc":"2.0","id":11,"method":"session/list","params":{"cursor":"c"}}`,
	}
	m := NewMonitor(MonitorConfig{Joined: true, Version: 1})
	for _, f := range frames {
		for _, found := range m.Frame(0, trace.Direction(f[0]), []byte(f[2:])) {
			t.Errorf("%s: %s", found.Rule.ID, found.Why)
		}
	}
	found := m.Frame(0, trace.ToClient, []byte(`{"jsonrpc":"2.0","id":2,"method":"fs/read_text_file","params":{"sessionId":"u","path":"a"}}`))
	if len(found) != 1 || found[0].Rule.ID != "agent/file/absolute" || found[0].Frame != int64(len(frames)+1) || found[0].Path != "params.path" {
		t.Errorf("found %+v", found)
	}
}

func BenchmarkMonitor(b *testing.B) {
	c := newTraffic()
	m := NewMonitor(MonitorConfig{})
	var frames [][]byte
	var dirs []trace.Direction
	size := 0
	for i := range 5 + 10*framesPerTurn {
		d, f := c.next()
		if i < 4 {
			m.Frame(0, d, f)
			continue
		}
		frames, dirs = append(frames, bytes.Clone(f)), append(dirs, d)
		size += len(f)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		for i, f := range frames {
			m.Frame(0, dirs[i], f)
		}
	}
	b.ReportMetric(float64(len(frames)), "frames/op")
}

// FuzzMonitor holds that no frames make a monitor fail, and that findings are
// fit to be shown.
func FuzzMonitor(f *testing.F) {
	for _, p := range []string{"v1", "session v1", "turn v1", "done v1", "v2", "session v2", "turn v2", "done v2"} {
		text := ""
		for _, l := range preludes[p] {
			text += l[:2] + frameOf(l[2:]) + "\n"
		}
		f.Add(text)
	}
	f.Add("> {\"jsonrpc\":\"2.0\",\"id\":\"\\u0031\",\"method\":\"_x\"}\n< {\"id\":1e0,\"result\":null}\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, cfg := range []MonitorConfig{{}, {Joined: true, Version: 2}} {
			m := NewMonitor(cfg)
			check := func(found []Finding) {
				for _, x := range found {
					if x.Rule == nil || strings.ContainsFunc(x.Why, unfitToShow) || strings.ContainsFunc(x.Path, unfitToShow) {
						t.Errorf("%+v", x)
					}
				}
			}
			for i, line := range strings.Split(text, "\n") {
				dir := trace.ToAgent
				if strings.HasPrefix(line, "<") {
					dir = trace.ToClient
				}
				check(m.Frame(time.Duration(i)*time.Second, dir, []byte(strings.TrimLeft(line, "<> "))))
			}
			check(m.Text(0, trace.ToClient, []byte(text)))
			check(m.End())
		}
	})
}

func unfitToShow(r rune) bool { return r < ' ' || r > '~' && r != '…' }
