package check

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/conformance"
)

// A stalling reader has nothing more when its text was read, and says so.
type stalling struct {
	text  io.Reader
	stall func()
}

func (s *stalling) Read(b []byte) (int, error) {
	if n, err := s.text.Read(b); err == nil {
		return n, nil
	}
	s.stall()
	return 0, nil
}

// TestLintInterrupted: a recording that is still written to is judged by what there is. That a
// request has no answer yet is not held against anybody.
func TestLintInterrupted(t *testing.T) {
	const text = `{"acpTrace":1,"started":"2026-01-01T00:00:00Z"}
{"t":0,"d":">","f":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}}
{"t":1,"d":"<","f":{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}}}
{"t":2,"d":">","f":{"jsonrpc":"1.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}}
`
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := &Options{
		App:   &app.App{In: &stalling{bytes.NewReader([]byte(text)), cancel}, Err: new(bytes.Buffer), Cwd: t.TempDir()},
		Files: []string{"-"},
	}
	report, err := o.lint(ctx)
	if err != nil {
		t.Fatal(err)
	}
	failed := map[string]bool{}
	passed := 0
	for _, r := range report.Results {
		switch {
		case r.Status == conformance.Fail && r.Rule.Level == conformance.Must:
			failed[r.Rule.ID] = true
		case r.Status == conformance.Pass:
			passed++
		}
	}
	if !report.Interrupted || len(failed) != 1 || !failed["client/envelope/jsonrpc"] || passed == 0 {
		t.Errorf("interrupted %v, failed %v, %d passed", report.Interrupted, failed, passed)
	}
}

// TestLintMissing: that a question cannot be read is no fault of who answers it.
func TestLintMissing(t *testing.T) {
	const (
		head   = `{"acpTrace":1,"started":"2026-01-01T00:00:00Z"}` + "\n"
		asked  = `{"t":0,"d":">","f":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}}` + "\n"
		opened = `{"t":1,"d":"<","f":{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}}}` + "\n"
	)
	for _, c := range []struct {
		name, text string
		want       int // examples of an answer to nothing
	}{
		{"in order", head + asked + opened, 0},
		{"not asked", head + opened, 1},
		{"damaged", head + asked[:40] + "\n" + opened, 0},
		{"damaged in the part before", head + asked[:40] + "\n" + head + opened, 1},
		{"of a connection before", head + asked + `{"t":0,"e":"start"}` + "\n" + opened + strings.Replace(opened, `{}`, `{"loadSession":true}`, 1), 2},
		{"the same again and again", head + asked + `{"t":0,"e":"start"}` + "\n" + strings.Repeat(opened, 5), 1},
	} {
		o := &Options{App: &app.App{In: bytes.NewReader([]byte(c.text)), Err: new(bytes.Buffer), Cwd: t.TempDir()}, Files: []string{"-"}}
		report, err := o.lint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range report.Results {
			if r.Rule.ID == "agent/envelope/response-known" && len(r.Saw) != c.want {
				t.Errorf("%s: %v, %d examples, want %d", c.name, r.Status, len(r.Saw), c.want)
			}
		}
	}
}

// TestLintNumbers: frames are numbered through all connections of a recording, as
// acp trace show does.
func TestLintNumbers(t *testing.T) {
	const (
		head   = `{"acpTrace":1,"started":"2026-01-01T00:00:00Z"}` + "\n"
		asked  = `{"t":0,"d":">","f":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}}` + "\n"
		opened = `{"t":1,"d":"<","f":{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}}}` + "\n"
		list   = `{"t":2,"d":">","f":{"jsonrpc":"2.0","id":2,"method":"session/list","params":{}}}` + "\n"
		start  = `{"t":0,"e":"start"}` + "\n"
	)
	for _, c := range []struct{ name, text, want string }{
		{"the only connection", head + list, "frame 1: "},
		{"another part", head + asked + opened + head + list, "frame 3: "},
		{"started again", head + start + asked + opened + start + list, "frame 3: "},
		{"the third", head + asked + opened + start + asked + opened + head + asked + list, "frame 6: "},
	} {
		o := &Options{App: &app.App{In: bytes.NewReader([]byte(c.text)), Err: new(bytes.Buffer), Cwd: t.TempDir()}, Files: []string{"-"}}
		report, err := o.lint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range report.Results {
			if r.Rule.ID == "client/handshake/first" && !strings.HasPrefix(r.Why, c.want) {
				t.Errorf("%s: %q, want %q", c.name, r.Why, c.want)
			}
		}
	}
}
