package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/internal/wire"
)

const (
	stillThere = `{"jsonrpc":"2.0","id":99,"method":"_echo","params":{"x":1}}` + "\n"
	isThere    = `{"jsonrpc":"2.0","id":99,"result":{"x":1}}`
)

// tooDeepFor returns a value that is nested beyond the limit.
func tooDeepFor(n int) string { return strings.Repeat(`{"a":[`, n/2) + strings.Repeat("]}", n/2) }

// TestTooDeep holds that valid JSON beyond the limit of nesting is dealt with like
// a frame that is too long: a request is answered under its own id, and nothing
// else is answered (S9), but all of it is reported.
func TestTooDeep(t *testing.T) {
	deep := tooDeepFor(600)
	long := `"` + strings.Repeat(`\n\"}`, 20<<10) + `"` // the frame is handed over, escapes go
	refused := func(id string) []string {
		return []string{`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32600,"message":"Invalid request: message nested too deeply","data":{"limit":512}}}`}
	}
	for _, tt := range []struct {
		name, in string
		want     []string
		kind     EventKind
		method   string
	}{
		{"request", `{"jsonrpc":"2.0","id":"a\n","method":"session/prompt","params":{"sessionId":"s","x":` + deep + `}}`, refused(`"a\n"`), EventTooDeep, "session/prompt"},
		{"id behind it", `{"jsonrpc":"2.0","method":"session/prompt","params":{"sessionId":"s","x":` + deep + `},"id":7}`, refused("7"), EventTooDeep, "session/prompt"},
		{"method behind it", `{"id":7,"params":{"x":` + deep + `},"method":"_\u0065cho","jsonrpc":"2.0"}`, refused("7"), EventTooDeep, "_echo"},
		{"unknown method", `{"jsonrpc":"2.0","id":7,"method":"x/y","params":` + deep + `}`, refused("7"), EventTooDeep, "x/y"},
		{"unknown member", `{"jsonrpc":"2.0","id":7,"method":"x/y","more":` + deep + `}`, refused("7"), EventTooDeep, "x/y"},
		{"long request", `{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"s","text":` + long + `,"x":` + deep + `}}`, refused("7"), EventTooDeep, "session/prompt"},
		{"notification", `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","x":` + deep + `}}`, nil, EventTooDeep, "session/update"},
		{"cancellation", `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1,"x":` + deep + `}}`, nil, EventTooDeep, "$/cancel_request"},
		{"response to nothing", `{"jsonrpc":"2.0","id":44,"result":` + deep + `}`, nil, EventTooDeep, ""},
		{"error without an id", `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x","data":` + deep + `}}`, nil, EventTooDeep, ""},
		{"response without a result", `{"jsonrpc":"2.0","id":44,"_meta":` + deep + `}`, nil, EventTooDeep, ""},
		{"batch", `[` + deep + `]`, []string{batchError}, EventInvalidFrame, ""},
		{"no message", `{"x":` + deep + `}`, []string{invalidReq}, EventInvalidFrame, ""},
		{"deep id", `{"jsonrpc":"2.0","method":"session/prompt","id":` + deep + `}`, []string{invalidReq}, EventInvalidFrame, ""},
		{"deep method", `{"jsonrpc":"2.0","method":` + deep + `}`, []string{invalidReq}, EventInvalidFrame, ""},
		{"not JSON", `{"jsonrpc":"2.0","id":7,"method":"x/y","params":` + deep[1:] + `}`, []string{parseError}, EventInvalidFrame, ""},
		{"not JSON behind it", `{"jsonrpc":"2.0","id":7,"method":"x/y","params":` + deep + `,}`, []string{parseError}, EventInvalidFrame, ""},
		{"ends early", `{"jsonrpc":"2.0","id":7,"method":"x/y","params":` + deep, []string{parseError}, EventInvalidFrame, ""},
		{"array that is not JSON", "[" + deep, []string{parseError}, EventInvalidFrame, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ev events
				var log strings.Builder
				p := newRawPeer(Config{Mux: echoMux(), Logger: slog.New(slog.NewTextHandler(&log, nil)), Settings: Settings{Diagnose: ev.add}})
				p.write(tt.in + "\n")
				if diff := cmp.Diff(tt.want, p.take()); diff != "" {
					t.Error(diff)
				}
				if len(ev.all) != 1 || ev.all[0].Kind != tt.kind || ev.all[0].Method != tt.method || ev.all[0].Size != int64(len(tt.in)) {
					t.Errorf("reported %+v", ev.all)
				}
				if tt.kind == EventTooDeep && (!strings.Contains(log.String(), "nested too deeply") || p.conn.Stats().TooDeep != 1) {
					t.Errorf("log %q, stats %+v", log.String(), p.conn.Stats())
				}
				p.write(stillThere)
				if diff := cmp.Diff([]string{isThere}, p.take()); diff != "" {
					t.Errorf("the connection did not live on: %s", diff)
				}
				p.close()
			})
		})
	}
}

// TestTooDeepResponse holds that a response beyond the limit of nesting ends its
// call, wherever the id stands and whatever the result is decoded into.
func TestTooDeepResponse(t *testing.T) {
	deep := tooDeepFor(600)
	for name, in := range map[string]string{
		"result":         `{"jsonrpc":"2.0","id":0,"result":{"text":"a","x":` + deep + `}}`,
		"id behind it":   `{"jsonrpc":"2.0","result":{"text":"a\n","x":` + deep + `},"id":0}`,
		"error":          `{"jsonrpc":"2.0","id":0,"error":{"code":1,"message":"x","data":` + deep + `}}`,
		"unknown member": `{"jsonrpc":"2.0","id":0,"result":{},"x":` + deep + `}`,
		"long":           `{"jsonrpc":"2.0","id":0,"result":{"text":"` + strings.Repeat(`\"`, 64<<10) + `","x":` + deep + `}}`,
		"at the limit":   `{"jsonrpc":"2.0","id":0,"result":{"x":` + tooDeepFor(wire.MaxDepth-2) + `}}`,
	} {
		for kind, call := range map[string]func(context.Context, *Conn) error{
			"typed": func(ctx context.Context, c *Conn) error { _, err := prompt.Call(ctx, c, &note{}); return err },
			"raw":   func(ctx context.Context, c *Conn) error { return c.Call(ctx, prompt.Name, nil, nil) },
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newRawPeer(Config{})
					defer p.close()
					done := make(chan error, 1)
					go func() { done <- call(bg, p.conn) }()
					p.take()
					p.write(in + "\n")
					if got := p.take(); len(got) > 0 {
						t.Errorf("answered a response: %q", got)
					}
					select {
					case err := <-done:
						if errors.Is(err, ErrTooDeep) == (name == "at the limit") {
							t.Error(err)
						}
					default:
						t.Error("the call hangs")
					}
					if n := len(p.conn.calls.pending); n > 0 {
						t.Errorf("%d calls are left", n)
					}
				})
			})
		}
	}
}

// FuzzTooDeep holds that a message of any depth settles the call it answers, is
// never answered if it is a response, and leaves the connection alive.
func FuzzTooDeep(f *testing.F) {
	f.Add(`"jsonrpc":"2.0"`, `"id":0,"result":`, uint16(600), `1`)
	f.Add(`"method":"x"`, `"id":0,"params":`, uint16(600), `"a"`)
	f.Add(`"id":0`, `"error":`, uint16(3), `{`)
	f.Fuzz(func(t *testing.T, first, second string, depth uint16, core string) {
		n := int(depth) % 1200
		in := fmt.Sprintf("{%s,%s%s%s%s}", first, second, strings.Repeat("[", n), core, strings.Repeat("]", n))
		if strings.ContainsAny(in, "\r\n") || strings.Contains(in, "99") {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			p := newRawPeer(Config{Mux: echoMux()})
			p.write(in + "\n")
			p.take()
			p.write(stillThere)
			if got := p.take(); len(got) != 1 || got[0] != isThere {
				t.Errorf("%q", got)
			}
			p.close()
		})
	})
}
