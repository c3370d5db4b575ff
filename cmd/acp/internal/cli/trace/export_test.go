package trace

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/record/file"
	"github.com/goacp/acp/trace"
)

// exportOf returns the events that a recording is exported as, and what was said of it.
func exportOf(t *testing.T, text string, stdin bool) (events []string, told string) {
	t.Helper()
	dir := t.TempDir()
	name := "in"
	if stdin {
		name = "-"
	} else if err := os.WriteFile(filepath.Join(dir, "in"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, stderr bytes.Buffer
	o := &Options{App: &app.App{Cwd: dir, In: strings.NewReader(text), Out: &out, Err: &stderr}, Verb: verbExport, As: asConductor, Files: []string{name, "-"}}
	if err := o.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"), stderr.String()
}

const exportHead = `{"acpTrace":1,"started":"2026-11-21T10:00:00Z"}` + "\n"

// TestExport: frames become events of a conductor.
func TestExport(t *testing.T) {
	for _, c := range []struct {
		name  string
		in    []string
		want  []string
		stdin bool
		left  string
	}{
		{name: "a client and an agent", in: []string{
			`{"t":1,"e":"start","text":"x"}`,
			`{"t":500000000,"d":">","f":{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion": 1.0}}}`,
			`{"t":600000000,"d":"<","text":"loading"}`,
			`{"t":700000000,"d":"<","f":{"jsonrpc":"2.0","id":0,"result":{"a":"<b>"}}}`,
			`{"t":800000000,"d":"<","f":{"jsonrpc":"2.0","id":0,"method":"fs/x","params":{"sessionId":"s"}}}`,
			`{"t":700000000,"d":">","f":{"jsonrpc":"2.0","id":0,"error":{"code":1}}}`,
			`{"t":900000000,"d":">","f":{"jsonrpc":"2.0","method":"session/cancel"}}`,
			`{"t":900000000,"d":">","f":[1]}`,
		}, want: []string{
			`{"type":"request","ts":0.5,"protocol":"acp","from":"Client","to":"Agent","id":0,"method":"initialize","params":{"protocolVersion":1.0}}`,
			`{"type":"response","ts":0.7,"from":"Agent","to":"Client","id":0,"is_error":false,"payload":{"a":"<b>"}}`,
			`{"type":"request","ts":0.8,"protocol":"acp","from":"Agent","to":"Client","id":0,"method":"fs/x","session":"s","params":{"sessionId":"s"}}`,
			`{"type":"response","ts":0.8,"from":"Client","to":"Agent","id":0,"is_error":true,"payload":{"code":1}}`,
			`{"type":"notification","ts":0.9,"protocol":"acp","from":"Client","to":"Agent","method":"session/cancel","params":null}`,
		}, left: "3 records"},
		{name: "a chain", in: []string{
			`{"t":1000000000,"d":">","hop":["editor","policy"],"f":{"id":1,"method":"proxy/initialize"}}`,
			`{"t":1000000000,"d":">","hop":["policy","redact"],"f":{"id":1,"method":"proxy/initialize"}}`,
			`{"t":1000000000,"d":">","hop":["redact","gemini"],"f":{"id":1,"method":"initialize"}}`,
			`{"t":1000000000,"d":"<","hop":["redact","gemini"],"f":{"id":1,"method":"x/y"}}`,
			`{"t":2000000000,"d":"<","hop":["policy","redact"],"f":{"id":1,"result":{}}}`,
		}, want: []string{
			`{"type":"request","ts":1,"protocol":"acp","from":"Client","to":"Proxy(0)","id":1,"method":"proxy/initialize","params":null}`,
			`{"type":"request","ts":1,"protocol":"acp","from":"Proxy(0)","to":"Proxy(1)","id":1,"method":"proxy/initialize","params":null}`,
			`{"type":"request","ts":1,"protocol":"acp","from":"Proxy(1)","to":"Agent","id":1,"method":"initialize","params":null}`,
			`{"type":"request","ts":1,"protocol":"acp","from":"Agent","to":"Proxy(1)","id":"1 of Agent","method":"x/y","params":null}`,
			`{"type":"response","ts":2,"from":"Proxy(1)","to":"Proxy(0)","id":1,"is_error":false,"payload":{}}`,
		}},
		{name: "a chain of standard input keeps its names", stdin: true, in: []string{`{"t":0,"d":">","hop":["editor","policy"],"f":{"method":"x"}}`},
			want: []string{`{"type":"notification","ts":0,"protocol":"acp","from":"editor","to":"policy","method":"x","params":null}`}},
		{name: "so do several chains", in: []string{`{"t":0,"d":">","hop":["a","b"],"f":{"method":"x"}}`, `{"t":0,"d":">","hop":["a","c"],"f":{"method":"x"}}`},
			want: []string{
				`{"type":"notification","ts":0,"protocol":"acp","from":"a","to":"b","method":"x","params":null}`,
				`{"type":"notification","ts":0,"protocol":"acp","from":"a","to":"c","method":"x","params":null}`}},
		{name: "and a circle", in: []string{`{"t":0,"d":">","hop":["a","b"],"f":{"method":"x"}}`, `{"t":0,"d":"<","hop":["b","a"],"f":{"method":"x"}}`},
			want: []string{
				`{"type":"notification","ts":0,"protocol":"acp","from":"a","to":"b","method":"x","params":null}`,
				`{"type":"notification","ts":0,"protocol":"acp","from":"a","to":"b","method":"x","params":null}`}},
		{name: "the connection of a proxy", in: []string{
			`{"t":0,"d":">","f":{"id":1,"method":"_proxy/initialize","params":{}}}`,
			`{"t":0,"d":"<","f":{"id":1,"method":"_proxy/successor","params":{"method":"initialize","params":{"protocolVersion":1}}}}`,
			`{"t":0,"d":">","f":{"id":1,"result":{"protocolVersion":1}}}`,
			`{"t":0,"d":">","f":{"method":"proxy/successor","params":{"method":"mcp/message","params":{"connectionId":"c","method":"tools/list"}}}}`,
			`{"t":0,"d":"<","f":{"id":1,"result":{}}}`,
		}, want: []string{
			`{"type":"request","ts":0,"protocol":"acp","from":"Client","to":"Proxy(0)","id":1,"method":"_proxy/initialize","params":{}}`,
			`{"type":"request","ts":0,"protocol":"acp","from":"Proxy(0)","to":"Agent","id":1,"method":"initialize","params":{"protocolVersion":1}}`,
			`{"type":"response","ts":0,"from":"Agent","to":"Proxy(0)","id":1,"is_error":false,"payload":{"protocolVersion":1}}`,
			`{"type":"notification","ts":0,"protocol":"mcp","from":"Agent","to":"Proxy(0)","method":"tools/list","params":null}`,
			`{"type":"response","ts":0,"from":"Proxy(0)","to":"Client","id":1,"is_error":false,"payload":{}}`,
		}},
		{name: "two parts", in: []string{`{"t":0,"d":">","f":{"method":"x"}}`, `{"acpTrace":1,"started":"2026-11-21T10:01:00Z"}`, `{"t":500000000,"d":">","f":{"method":"x"}}`},
			want: []string{
				`{"type":"notification","ts":0,"protocol":"acp","from":"Client","to":"Agent","method":"x","params":null}`,
				`{"type":"notification","ts":60.5,"protocol":"acp","from":"Client","to":"Agent","method":"x","params":null}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, told := exportOf(t, exportHead+strings.Join(c.in, "\n"), c.stdin)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			if c.left == "" && told != "" || !strings.Contains(told, c.left) {
				t.Errorf("told %q, want %q", told, c.left)
			}
		})
	}
}

// TestExportAgain: the events of a conductor are read, and written again as they were.
func TestExportAgain(t *testing.T) {
	events := []string{
		`{"type":"request","ts":0.5,"protocol":"acp","from":"Client","to":"Proxy(0)","id":"a","method":"_proxy/initialize","params":{"protocolVersion":1}}`,
		`{"type":"request","ts":0.5,"protocol":"acp","from":"Proxy(0)","to":"Agent","id":"b","method":"initialize","params":null}`,
		`{"type":"response","ts":1.25,"from":"Agent","to":"Proxy(0)","id":"b","is_error":false,"payload":{"protocolVersion":1}}`,
		`{"type":"request","ts":2,"protocol":"mcp","from":"Agent","to":"Proxy(0)","id":7,"method":"tools/call","params":{"name":"x"}}`,
		`{"type":"response","ts":2,"from":"Proxy(0)","to":"Agent","id":7,"is_error":true,"payload":{"code":-1}}`,
		`{"type":"notification","ts":2.5,"protocol":"acp","from":"Proxy(0)","to":"Client","method":"session/update","session":"s","params":{"sessionId":"s"}}`,
	}
	got, told := exportOf(t, strings.Join(events, "\n")+"\n", false)
	if d := cmp.Diff(events, got); d != "" || told != "" {
		t.Error(d, told)
	}
}

func TestExportRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "in"), []byte(exportHead), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		as, in, out, want string
	}{
		{"agent", "in", "-", "--as agent"},
		{asConductor, "none", "-", "no such file"},
		{asConductor, "in", "in", "exists already"},
		{asConductor, "in", ".", "is a directory"},
	} {
		o := &Options{App: &app.App{Cwd: dir, Out: io.Discard, Err: io.Discard}, Verb: verbExport, As: c.as, Files: []string{c.in, c.out}}
		if err := o.run(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) || exitcode.Of(err) != exitcode.Usage {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// FuzzExport: whatever is recorded, each line that is exported is an event.
func FuzzExport(f *testing.F) {
	f.Add(`{"t":1,"d":"<","f":{"id":1,"method":"_proxy/successor","params":{"method":"initialize"}}}`)
	f.Add(`{"t":1,"d":"<","hop":["a","b"],"f":{"id":1,"method":"mcp/message","params":{"method":"x"}}}`)
	f.Add(`{"t":1,"e":"mcp","hop":["a","b"],"text":"to b: {\"id\":1,\"method\":\"x\"}"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var out bytes.Buffer
		o := &Options{App: &app.App{In: strings.NewReader(exportHead + text), Out: &out, Err: io.Discard}, Verb: verbExport, As: asConductor, Files: []string{"-", "-"}}
		if err := o.run(t.Context()); err != nil && exitcode.Of(err) != exitcode.Usage {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			var e exported
			if json.Unmarshal([]byte(line), &e) != nil || e.Type == "" || e.From == "" && e.To == "" && !strings.Contains(text, `""`) {
				t.Fatalf("%s", line)
			}
		}
	})
}

// TestExportLongID: of a request with a very long id nothing is kept.
func TestExportLongID(t *testing.T) {
	for _, tt := range []struct{ size, kept int }{{file.MaxID, 1}, {file.MaxID + 1, 0}} {
		x := &exporter{peer: agentName, open: map[openKey]*openCall{}}
		frame := `{"jsonrpc":"2.0","id":` + strings.Repeat("1", tt.size) + `,"method":"session/prompt","params":{}}`
		if ev := x.event(&trace.Record{Kind: trace.Frame, Dir: trace.ToAgent, Data: []byte(frame)}); ev == nil || len(x.open) != tt.kept {
			t.Errorf("%d bytes: %d are kept", tt.size, len(x.open))
		}
	}
}
