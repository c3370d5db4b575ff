package acptest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

// ungrease removes what Grease adds.
func ungrease(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, val := range v {
			if strings.HasPrefix(k, "_grease") {
				delete(v, k)
				continue
			}
			val = ungrease(val)
			if m, ok := val.(map[string]any); ok && k == "_meta" && len(m) == 0 {
				delete(v, k)
				continue
			}
			v[k] = val
		}
	case []any:
		for i := range v {
			v[i] = ungrease(v[i])
		}
	}
	return v
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// Our own agent and client behave identically under grease, in both versions,
// for a whole conversation (S13, S21, S81, S84).
func TestGreaseChangesNothing(t *testing.T) {
	clean := func(s spoken) spoken {
		for i := range s.Updates {
			text, err := json.Marshal(ungrease(decoded(t, s.Updates[i])))
			if err != nil {
				t.Fatal(err)
			}
			s.Updates[i] = string(text)
		}
		return s
	}
	for _, version := range []int{1, 2} {
		talk := func(wrap ...func(jsonrpc.Stream) jsonrpc.Stream) (out spoken) {
			synctest.Test(t, func(t *testing.T) { out = clean(converse(t, version, wrap...)) })
			return out
		}
		want := talk()
		if len(want.Updates) < 10 || len(want.Asked) != 4 || want.Stop != "end_turn" {
			t.Fatalf("version %d: %+v", version, want)
		}
		for seed := range uint64(30) {
			extra := 0
			got := talk(func(s jsonrpc.Stream) jsonrpc.Stream {
				return counting{Grease(s, seed), &extra}
			})
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("version %d, seed %d: %s", version, seed, d)
			}
			if extra == 0 {
				t.Errorf("version %d, seed %d: no grease", version, seed)
			}
		}
	}
}

// counting counts the frames with grease that are read.
type counting struct {
	jsonrpc.Stream
	n *int
}

func (s counting) ReadFrame() (jsonrpc.Frame, error) {
	f, err := s.Stream.ReadFrame()
	if strings.Contains(string(f.Data), "_grease") {
		*s.n++
	}
	return f, err
}

// loop is a stream that returns what is written to it, and what is put in.
type loop struct {
	in, out []string
}

func (l *loop) ReadFrame() (jsonrpc.Frame, error) {
	f := jsonrpc.Frame{Data: []byte(l.in[0])}
	l.in = l.in[1:]
	return f, nil
}
func (l *loop) WriteFrame(data []byte) error { l.out = append(l.out, string(data)); return nil }
func (l *loop) Close() error                 { return nil }

// What was there stays there, and what is added is where it may be.
func TestGreaseAdds(t *testing.T) {
	ask := []string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"capabilities":{"a":{}}}}`,
		` {"jsonrpc":"2.0","id":"x","method":"elicitation/create","params":{"requestedSchema":{"properties":{"p":{"type":"string"}}}}} `,
		`{"jsonrpc":"2.0","id":2,"method":"_vendor/x","params":{"free":{}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"mcp/message","params":{"params":{}}}`,
	}
	answer := []string{
		`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"list":[{},{"b":1},[{}],3]}}`,
		`{"jsonrpc":"2.0","id":"x","result":{"action":"accept","content":{"p":"v"}}}`,
		`{"jsonrpc":"2.0","id":2,"result":{"free":{}}}`,
		`{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"m","data":{"x":1}}}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","rawInput":{"a":1},"_meta":{"own":1},"content":[{"type":"diff"}]}}}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":7}}`,
		`{"jsonrpc":"2.0","id":99,"result":{"unasked":{}}}`,
		`[]`, `noise`, `{"a":1,"a":2}`,
	}
	seen := map[string]bool{}
	for seed := range uint64(200) {
		l := &loop{in: answer}
		g := Grease(l, seed)
		for _, f := range ask {
			if err := g.WriteFrame([]byte(f)); err != nil {
				t.Fatal(err)
			}
		}
		if len(l.out) != len(ask) {
			t.Errorf("seed %d: frames were added before initialize was answered", seed)
		}
		var read []string
		for len(l.in) > 0 || g.(*greased).next != nil {
			f, err := g.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			read = append(read, string(f.Data))
		}
		check(t, seed, ask, l.out, seen)
		check(t, seed, answer, read, seen)
		again := &loop{in: answer}
		g = Grease(again, seed)
		for _, f := range ask {
			_ = g.WriteFrame([]byte(f))
		}
		if d := cmp.Diff(l.out, again.out); d != "" {
			t.Errorf("the same seed: %s", d)
		}
	}
	for _, want := range []string{"method", "update", "envelope", "params", "result", "nested", "meta", "own meta"} {
		if !seen[want] {
			t.Errorf("grease of the kind %q never came", want)
		}
	}
}

// check compares frames before and after.
func check(t *testing.T, seed uint64, before, after []string, seen map[string]bool) {
	t.Helper()
	for _, got := range after {
		if len(before) == 0 || before[0] != got {
			if !json.Valid([]byte(got)) {
				t.Fatalf("seed %d: not JSON: %s", seed, got)
			}
			m := decoded(t, got).(map[string]any)
			method, _ := m["method"].(string)
			params, _ := m["params"].(map[string]any)
			update, _ := params["update"].(map[string]any)
			tag, _ := update["sessionUpdate"].(string)
			if strings.HasPrefix(method, "_grease/") || strings.HasPrefix(tag, "_grease") {
				if m["id"] != nil || tag != "" && params["sessionId"] != "s" {
					t.Errorf("seed %d: added %s", seed, got)
				}
				seen["method"] = seen["method"] || tag == ""
				seen["update"] = seen["update"] || tag != ""
				continue
			}
			where(m, params, seen)
			if strings.Contains(fmt.Sprint(strip(m, params)), "_grease") {
				t.Errorf("seed %d: grease in the wrong place: %s", seed, got)
			}
			if !reflect.DeepEqual(ungrease(m), decoded(t, before[0])) {
				t.Errorf("seed %d: %s became %s", seed, before[0], got)
			}
		}
		before = before[1:]
	}
	if len(before) > 0 {
		t.Errorf("seed %d: %d frames are missing", seed, len(before))
	}
}

func where(m, params map[string]any, seen map[string]bool) {
	greasy := func(what string, v any) {
		obj, _ := v.(map[string]any)
		for k := range obj {
			seen[what] = seen[what] || strings.HasPrefix(k, "_grease")
		}
	}
	greasy("envelope", m)
	greasy("params", params)
	greasy("result", m["result"])
	if caps, ok := params["capabilities"].(map[string]any); ok {
		greasy("nested", caps["a"])
		greasy("meta", caps["_meta"])
	}
	if update, ok := params["update"].(map[string]any); ok {
		greasy("own meta", update["_meta"])
	}
}

// strip returns what must not have grease.
func strip(m, params map[string]any) (out []any) {
	if m["method"] == "_vendor/x" || m["method"] == "mcp/message" {
		out = append(out, params)
	}
	out = append(out, m["error"])
	if id, _ := m["id"].(float64); m["result"] != nil && (id == 2 || id == 99) {
		out = append(out, m["result"])
	}
	if r, ok := m["result"].(map[string]any); ok && m["id"] == "x" {
		out = append(out, r["content"])
	}
	if s, ok := params["requestedSchema"].(map[string]any); ok {
		out = append(out, s["properties"])
	}
	if u, ok := params["update"].(map[string]any); ok {
		out = append(out, u["rawInput"])
	}
	return out
}

// Frames that are too long pass as they are, and memory stays bounded.
func TestGreaseBounds(t *testing.T) {
	l := &loop{}
	g := Grease(l, 1)
	long := `{"jsonrpc":"2.0","method":"x","params":{"t":"` + strings.Repeat("x", greaseFrame) + `"}}`
	for range 20 {
		if err := g.WriteFrame([]byte(long)); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range l.out {
		if f != long {
			t.Fatal("a long frame was changed")
		}
	}
	for i := range 2 * greaseOpen {
		if err := g.WriteFrame(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"session/list"}`, i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(g.(*greased).asked[1]); n != greaseOpen {
		t.Errorf("%d requests are remembered", n)
	}
}

// FuzzGrease holds that grease can be taken away again.
func FuzzGrease(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[{"name":"x","_meta":{}}]}}`, uint64(1))
	f.Add(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{}}}`, uint64(2))
	f.Fuzz(func(t *testing.T, frame string, seed uint64) {
		if strings.Contains(frame, "_grease") || strings.Contains(frame, `\u`) || strings.Contains(frame, "_meta") {
			return
		}
		l := &loop{}
		g := Grease(l, seed)
		g.(*greased).ready = true
		if err := g.WriteFrame([]byte(frame)); err != nil {
			t.Fatal(err)
		}
		got := l.out[len(l.out)-1]
		if got == frame {
			return
		}
		for _, f := range l.out {
			if !json.Valid([]byte(f)) {
				t.Fatalf("not JSON: %s", f)
			}
		}
		var a, b any
		if json.Unmarshal([]byte(frame), &a) != nil || json.Unmarshal([]byte(got), &b) != nil {
			return // numbers beyond float64
		}
		if !reflect.DeepEqual(a, ungrease(b)) {
			t.Fatalf("%s became %s", frame, got)
		}
	})
}
