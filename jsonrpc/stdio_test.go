package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// TestStdio runs another process on Stdio, in both framings: it answers in the
// framing it was spoken to, also what was still under way at EOF, and exits
// cleanly (S4, S46).
func TestStdio(t *testing.T) {
	req := `{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"s"}}`
	res := `{"jsonrpc":"2.0","id":7,"result":{}}`
	for name, tt := range map[string]struct{ in, out string }{
		"lines":   {req, res + "\n"},
		"headers": {"Content-Length: 77\r\n\r\n" + req, "Content-Length: 36\r\n\r\n" + res},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "JSONRPC_BENCH=conn")
			cmd.Stdin = strings.NewReader(tt.in)
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.out, string(out)); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("shared standard error", func(t *testing.T) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "JSONRPC_BENCH=conn")
		cmd.Stdin = strings.NewReader(req)
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != res+"\n" {
			t.Errorf("%q, %v", out, err)
		}
	})
}

// TestPollable: files keep their mode, pipes become interruptible.
func TestPollable(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if p := pollable(f); p != io.ReadWriteCloser(f) {
		t.Error("a file was duplicated")
	}
	if newTryWriter(f) != nil || newTryWriter(io.Discard) != nil {
		t.Error("attempts on what blocks")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close(); _ = w.Close() }()
	if p := pollable(r); p != io.ReadWriteCloser(r) {
		t.Error("a pollable pipe was duplicated")
	}
}

// TestFallbacks: raw handlers for what nobody else takes.
func TestFallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := echoMux()
		var notes []string
		mux.Fallback(func(_ context.Context, r *Request) (any, error) {
			if r.Method == "_vendor/x" {
				return map[string]any{"method": r.Method, "params": r.Params}, nil
			}
			return nil, MethodNotFound(r.Method)
		})
		mux.FallbackNotification(func(_ context.Context, r *Request) (any, error) {
			notes = append(notes, r.Method+string(r.Params.(json.RawMessage)))
			return nil, errors.New("ignored")
		})
		p := newRawPeer(Config{Mux: mux, Lane: laneOf})
		defer p.close()
		p.write(`{"jsonrpc":"2.0","id":1,"method":"_vendor/x","params":{"b": 1.0,"a":[]}}` + "\n")
		p.expect(t, `{"jsonrpc":"2.0","id":1,"result":{"method":"_vendor/x","params":{"b":1.0,"a":[]}}}`)
		p.write(`{"jsonrpc":"2.0","id":2,"method":"_vendor/x"}` + "\n")
		p.expect(t, `{"jsonrpc":"2.0","id":2,"result":{"method":"_vendor/x","params":null}}`)
		p.write(notFoundReq("3") + "\n")
		p.expect(t, notFound("3", "session/bogus"))
		p.write(`{"jsonrpc":"2.0","method":"_vendor/n","params":[1]}` + "\n" + `{"params":{"x":1},"jsonrpc":"2.0","method":"_vendor/m"}` + "\n")
		p.expect(t)
		if diff := cmp.Diff([]string{"_vendor/n[1]", `_vendor/m{"x":1}`}, notes); diff != "" {
			t.Error(diff)
		}
		// A name with handlers of both kinds takes either.
		prompt2 := Notification[note]{"session/prompt"}
		mux2 := echoMux()
		prompt2.Handle(mux2, func(_ context.Context, n *note) error { notes = append(notes, n.Text); return nil })
		p.conn.SetMux(mux2)
		p.write(`{"jsonrpc":"2.0","method":"session/prompt","params":{"sessionId":"s","text":"note"}}` + "\n" +
			`{"jsonrpc":"2.0","method":"session/prompt","params":{"sessionId":"s","text":"req"},"id":1}` + "\n" +
			`{"jsonrpc":"2.0","method":"session/prompt","params":{"text":"req"},"id":2}` + "\n")
		got := p.take()
		if len(got) != 2 || notes[2] != "note" || !strings.Contains(strings.Join(got, ""), `"id":1,"result":{"text":"s:req"}`) {
			t.Error(got, notes)
		}
	})
}

func (p *rawPeer) expect(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, p.take()); diff != "" {
		t.Error(diff)
	}
}
