//go:build unix

package real

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/trace"
)

var update = flag.Bool("update", false, "write testdata/handshake anew")

// A handshake is each initialize, and its answer. There are several if the first one comes to another version.
type handshake struct {
	mu       sync.Mutex
	text     strings.Builder
	ids      map[string]bool // of those without an answer
	answered bool            // one of them with success
}

// frame takes the next frame.
func (h *handshake) frame(toAgent bool, frame []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var m struct {
		ID     json.RawMessage
		Method string
		Result json.RawMessage
	}
	var out bytes.Buffer
	if json.Unmarshal(frame, &m) != nil || json.Indent(&out, frame, "", "  ") != nil {
		return // what a launcher prints
	}
	id := string(m.ID)
	switch {
	case toAgent && m.Method == "initialize":
		if h.ids == nil {
			h.ids = map[string]bool{}
		}
		h.ids[id] = true
		fmt.Fprintf(&h.text, "-> %s\n", out.Bytes())
	case !toAgent && m.Method == "" && h.ids[id]:
		delete(h.ids, id)
		h.answered = h.answered || m.Result != nil
		fmt.Fprintf(&h.text, "<- %s\n", out.Bytes())
	}
}

// String returns all of it, or nothing if there was no success.
func (h *handshake) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.answered {
		return ""
	}
	return h.text.String()
}

// TestHandshake compares how our clients and each agent initialize with testdata/handshake, so that a change of
// what we advertise shows as a difference. With -update it writes these files.
func TestHandshake(t *testing.T) {
	need(t)
	for _, a := range agents {
		t.Run(a.name, func(t *testing.T) {
			var got strings.Builder
			for _, v := range a.versions {
				fmt.Fprintf(&got, "== package acp, version %d\n%s\n", v, libraryHandshake(t, a, v))
			}
			for _, as := range []struct {
				name string
				run  func(t *testing.T, h *house)
			}{{"acp exec", execOnce}, {"acp chat", chatOnce}, {"acp serve", serveOnce}} {
				fmt.Fprintf(&got, "== %s\n%s\n", as.name, programHandshake(t, a, as.run))
			}
			compareHandshake(t, filepath.Join("testdata", "handshake", a.name+".txt"), got.String())
		})
	}
}

func compareHandshake(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("if that is meant: ACP_REAL=1 GOWORK=off go test -run TestHandshake ./real -update\n%s", d)
	}
}

// libraryHandshake connects with a client that lends files and terminals.
func libraryHandshake(t *testing.T, a agent, version int) string {
	t.Helper()
	var h handshake
	p := dialWrapped(t, a, version, func(tr acp.Transport) acp.Transport {
		return acp.WrapTransport(tr, func(s jsonrpc.Stream) jsonrpc.Stream { return jsonrpc.Tap(s, h.frame) })
	})
	_ = p.conn.Close()
	p.place.gone(t)
	return ended(t, &h, p.place)
}

// programHandshake has the program start the agent through acp tap.
func programHandshake(t *testing.T, a agent, run func(*testing.T, *house)) string {
	t.Helper()
	house := newHouse(t, a)
	file := filepath.Join(house.home, "handshake.acptrace")
	house.agent = slices.Concat([]string{program(t), "tap", "--no-redact", "-o", file, "--"}, house.agent)
	run(t, house)
	house.gone(t)
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := trace.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var h handshake
	for {
		rec, err := r.Next()
		if err != nil {
			return ended(t, &h, house.place)
		}
		if rec.Kind == trace.Frame {
			h.frame(rec.Dir == trace.ToAgent, rec.Data)
		}
	}
}

// execOnce has a turn.
func execOnce(t *testing.T, h *house) {
	if r := h.exec(t, nil, "standin: say one two three"); r.code != exitDone {
		t.Fatalf("status %d\n%s", r.code, tail(r.stderr))
	}
}

// chatOnce has a turn in a conversation.
func chatOnce(t *testing.T, h *house) {
	cmd := exec.CommandContext(limited(t), program(t), slices.Concat([]string{"chat", "--plain", "--connect-timeout", "3m", "--"}, h.agent)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = h.work, h.env, goneLimit
	cmd.Stdin = strings.NewReader("standin: say one two three\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, tail(string(out)))
	}
}

// serveOnce begins a session of a gateway.
func serveOnce(t *testing.T, h *house) {
	g := newGate(t, h)
	c := g.connect(nil)
	if _, err := c.conn.NewSession(limited(t), acp.SessionConfig{Cwd: h.work}); err != nil {
		t.Fatal(err)
	}
	_ = c.conn.Close()
	_ = g.cmd.Process.Signal(os.Interrupt)
	_ = g.cmd.Wait()
}

// builtVersion is the version of a program that was built from a clone.
var builtVersion = regexp.MustCompile(`("name": "acp",\s+(?:"title": "[^"]*",\s+)?"version": )"[^"]*"`)

// ended returns a handshake without what differs from machine to machine.
func ended(t *testing.T, h *handshake, p *place) string {
	t.Helper()
	text := h.String()
	if text == "" {
		t.Fatalf("initialize was not answered with success:\n%s", h.text.String())
	}
	for _, of := range []struct{ path, name string }{
		{node(t), "$node"}, {module(t), "$modules"}, {p.home, "$home"}, {filepath.Dir(p.home), "$dir"}, {programs.dir, "$programs"},
	} {
		text = strings.ReplaceAll(text, of.path, of.name)
	}
	return builtVersion.ReplaceAllString(text, `$1"$$version"`)
}
