package acptest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp"
	"github.com/goacp/acp/internal/pattern"
	"github.com/goacp/acp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

// A conversation looks the same whichever side is recorded and whenever it is.
func TestGoldenConversation(t *testing.T) {
	for _, version := range []int{1, 2} {
		name := fmt.Sprintf("talk-v%d", version)
		var first string
		for range 3 {
			synctest.Test(t, func(t *testing.T) {
				var rec *Recording
				converse(t, version, func(s jsonrpc.Stream) jsonrpc.Stream {
					s, rec = Record(s)
					return s
				})
				Golden(t, name, rec)
				switch got := rec.String(); {
				case first == "":
					first = got
				case first != got:
					t.Error(cmp.Diff(first, got))
				}
			})
		}
	}
}

// TestGoldenCrossing: an agent that says something unasked when a session opens
// has one golden file, however that crosses what the client sends next.
func TestGoldenCrossing(t *testing.T) {
	agent := &acp.Agent{
		NewSession: func(_ context.Context, s *acp.AgentSession) error {
			return s.SetCommands(acp.SlashCommand{Name: "plan", Description: "make a plan"})
		},
		Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) { return acp.StopEndTurn, t.Say("yes") },
	}
	orders := map[string]int{}
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			var rec *Recording
			conn, _ := Pair(t, agent, &acp.Client{MaxVersion: 1}, func(s jsonrpc.Stream) jsonrpc.Stream {
				s, rec = Record(s)
				return s
			})
			s, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/tmp"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Prompt(t.Context(), acp.Text("well?")).Wait(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			Golden(t, "crossing", rec)
			orders[rec.String()]++
		})
	}
	t.Logf("%d orders", len(orders))
}

// TestGoldenOrder: frames that crossed are the same conversation; those of one
// side in another order, one more, one less or another one are not.
func TestGoldenOrder(t *testing.T) {
	const (
		hello  = `> {"id":1,"method":"initialize"}`
		prompt = `> {"id":2,"method":"session/prompt","params":{"sessionId":"s"}}`
		one    = `< {"method":"session/update","params":{"sessionId":"s","update":{"messageId":"a"}}}`
		two    = `< {"method":"session/update","params":{"sessionId":"s","update":{"messageId":"b"}}}`
		asks   = `< {"id":1,"method":"session/request_permission","params":{}}`
		yes    = `> {"id":1,"result":{}}`
	)
	record := func(frames ...string) *Recording {
		rec := &Recording{}
		for _, f := range frames {
			rec.add(Recorded{Out: f[0] == '>', Data: f[2:]})
		}
		return rec
	}
	want := record(hello, one, prompt, asks, two, yes).String()
	for _, tt := range []struct {
		name string
		rec  *Recording
		same bool
	}{
		{"equal", record(hello, one, prompt, asks, two, yes), true},
		{"crossed", record(hello, prompt, one, asks, two, yes), true},
		{"requests crossed", record(hello, one, asks, prompt, two, yes), true},
		{"the answer later", record(hello, one, prompt, asks, yes, two), true},
		{"one side in another order", record(hello, one, prompt, two, asks, yes), false},
		{"one less", record(hello, one, prompt, asks, yes), false},
		{"one more", record(hello, one, prompt, asks, two, yes, yes), false},
		{"another", record(hello, one, prompt, asks, one, yes), false},
		{"none", record(), false},
	} {
		if got := sameButCrossed(tt.rec, want); got != tt.same {
			t.Errorf("%s: %v:\n%s", tt.name, got, tt.rec)
		}
	}
}

func TestTranscript(t *testing.T) {
	temp := func(path string) string { return pattern.Quote(filepath.Join(os.TempDir(), filepath.FromSlash(path))) }
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	rec := &Recording{}
	in := func(s string) { rec.add(Recorded{Data: s}) }
	out := func(s string) { rec.add(Recorded{Out: true, Data: s}) }
	in(`{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"clientInfo":{"name":"c","version":"1.2"},"version":"kept"}}`)
	out(`{"jsonrpc":"2.0","id":7,"result":{"agentInfo":{"name":"a","version":"9"}}}`)
	in(`{"jsonrpc":"2.0","id":"a-b","method":"session/new","params":{"cwd":` + temp("T123/001/sub") + `,"other":` + temp("T123/001") + `,"third":` + temp("U9") + `,"here":` + pattern.Quote(filepath.Join(cwd, "x")) + `}}`)
	out(`{"jsonrpc":"2.0","id":"a-b","result":{"sessionId":"sess-0123456789","updatedAt":"2026-01-02T03:04:05.6Z"}}`)
	out(`{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"sess-0123456789","toolCall":{"toolCallId":"t"},"other":{"toolCallId":"sess-01234567890"},"title":"in sess-0123456789 and sess-01234567890, not t"}}`)
	in(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"a-b"}}`)
	out(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}`)
	out(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"requestId":"a-b"}}`)
	out(`{"jsonrpc":"2.0","id":"m","method":"mcp/message","params":{"requestId":"XYZ"}}`)
	in(`{"jsonrpc":"2.0","method":"mcp/message","params":{"requestId":"XYZ"}}`)
	in(`{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"Internal error","data":{"correlationId":"0123456789abcdef"}}}`)
	in(`{"jsonrpc":"2.0","id":12,"result":null}`)
	in(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
	in(`{"jsonrpc":"2.0"}`)
	in("<noise>\n")
	want := `-> id1 initialize {"clientInfo":{"name":"c","version":"VERSION"},"version":"kept"}
<- id1 initialize = {"agentInfo":{"name":"a","version":"VERSION"}}
-> id2 session/new {"cwd":"/tmp1/sub","other":"/tmp1","third":"/tmp2","here":"/cwd/x"}
<- id2 session/new = {"sessionId":"sess1","updatedAt":"TIME"}
<- id3 session/request_permission {"sessionId":"sess1","toolCall":{"toolCallId":"call1"},"other":{"toolCallId":"call2"},"title":"in sess1 and call2, not t"}
-> $/cancel_request {"requestId":"id2"}
<- $/cancel_request {"requestId":"id3"}
<- id4 elicitation/create {"requestId":"id2"}
<- id5 mcp/message {"requestId":"mcp1"}
-> mcp/message {"requestId":"mcp1"}
-> id3 session/request_permission ! -32603 "Internal error" {"correlationId":"correlation1"}
-> 12 ? = null
-> id6 x
-> "{\"jsonrpc\":\"2.0\"}"
-> "<noise>\n"
`
	if d := cmp.Diff(want, strings.ReplaceAll(rec.String(), `\\`, "/")); d != "" {
		t.Error(d)
	}
	if got := (&Recording{frames: []Recorded{{Out: true, Data: `{"method":"a"}`}, {Data: `{"method":"b"}`}}}).String(); got != "-> a\n<- b\n" {
		t.Errorf("without initialize: %s", got)
	}
}

// FuzzTranscript holds that every frame is a line, and that the text of a
// recording is always the same.
func FuzzTranscript(f *testing.F) {
	f.Add(`{"id":1,"method":"a\nb","params":{"sessionId":"0123456789","x":["0123456789"]}}`, `{"id":{"a": 1},"result":[]}`)
	f.Add(`{"id":1,"error":{"code":1,"message":"\u2028"}}`, `{"method":"$/cancel_request","params":{"requestId":1}}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		r := &Recording{}
		r.add(Recorded{Data: a})
		r.add(Recorded{Out: true, Data: b})
		r.add(Recorded{Out: true, Data: a})
		text := r.String()
		if strings.Count(text, "\n") != 3 || strings.ContainsAny(text, "\r\v\f\x00") {
			t.Fatalf("%q", text)
		}
		if text != r.String() {
			t.Fatal("another text")
		}
	})
}

func TestRecordBounds(t *testing.T) {
	r := &Recording{}
	big := strings.Repeat("x", recordBytes/4)
	for range 6 {
		r.add(Recorded{Data: big})
	}
	if frames, lost := r.Frames(); len(frames) != 4 || lost != 2 {
		t.Errorf("%d frames, %d lost", len(frames), lost)
	}
	r = &Recording{}
	for range recordFrames + 3 {
		r.add(Recorded{})
	}
	if frames, lost := r.Frames(); len(frames) != recordFrames || lost != 3 {
		t.Errorf("%d frames, %d lost", len(frames), lost)
	}
	t.Chdir(t.TempDir())
	if got := failing(func(tb testing.TB) { Golden(tb, "lost", r) }); !strings.Contains(got, "lacks 3 frames") {
		t.Error(got)
	}
}

// inDir runs f in a directory of its own, with the flag -update as given.
func inDir(t *testing.T, update bool, f func()) {
	t.Helper()
	old, _ := updating()
	if err := flag.Set(updateFlag, fmt.Sprint(update)); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = flag.Set(updateFlag, fmt.Sprint(old)) }()
	f()
}

func TestGoldenFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	rec := func(methods ...string) *Recording {
		r := &Recording{}
		for _, m := range methods {
			r.add(Recorded{Out: true, Data: `{"method":` + pattern.Quote(m) + `}`})
		}
		return r
	}
	golden := func(name string, r *Recording) string {
		return failing(func(tb testing.TB) { Golden(tb, name, r) })
	}
	inDir(t, false, func() {
		if got := golden("a/b", rec("x")); !strings.Contains(got, "there is no") || !strings.Contains(got, "-> x\n") || !strings.Contains(got, "with -update") {
			t.Error(got)
		}
		if got := golden("../b", rec("x")); !strings.Contains(got, "no name") {
			t.Error(got)
		}
	})
	inDir(t, true, func() {
		if got := golden("a/b", rec("1", "2", "3", "4")); got != "" {
			t.Error(got)
		}
	})
	inDir(t, false, func() {
		if got := golden("a/b", rec("1", "2", "3", "4")); got != "" {
			t.Error(got)
		}
		got := golden("a/b", rec("1", "2", "3", "5", "6"))
		want := "line 4, - is what is expected and + what was recorded:\n  -> 2\n  -> 3\n- -> 4\n+ -> 5\n+ -> 6\n"
		if !strings.Contains(got, want) {
			t.Error(got)
		}
		if got := golden("a/b", rec("1", "2", "3")); !strings.Contains(got, "line 4") || !strings.Contains(got, "- -> 4") {
			t.Error(got)
		}
		if err := os.WriteFile(filepath.Join("testdata", "crlf.golden"), []byte("-> 1\r\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		if got := golden("crlf", rec("1")); got != "" {
			t.Error(got)
		}
		if err := os.Mkdir(filepath.Join("testdata", "dir.golden"), 0o777); err != nil {
			t.Fatal(err)
		}
		if got := golden("dir", rec("1")); got == "" {
			t.Error("read a directory")
		}
	})
	inDir(t, true, func() {
		if got := golden("dir", rec("1")); got == "" {
			t.Error("wrote a directory")
		}
		if got := golden("crlf.golden/x", rec("1")); got == "" {
			t.Error("made a directory of a file")
		}
	})
}

// The flag may exist already, in any form, or not at all.
func TestUpdateFlag(t *testing.T) {
	old := flag.CommandLine
	defer func() { flag.CommandLine = old }()
	flag.CommandLine = flag.NewFlagSet("test", flag.ContinueOnError)
	if on, exists := updating(); on || exists {
		t.Error("a flag that does not exist")
	}
	t.Chdir(t.TempDir())
	if got := failing(func(tb testing.TB) { Golden(tb, "x", &Recording{}) }); !strings.Contains(got, "acptest.UpdateFlag()") {
		t.Error(got)
	}
	UpdateFlag()
	UpdateFlag()
	if on, exists := updating(); on || !exists {
		t.Error("the flag is missing")
	}
	if err := flag.CommandLine.Parse([]string{"-update"}); err != nil {
		t.Error(err)
	}
	if on, _ := updating(); !on {
		t.Error("the flag is off")
	}
	flag.CommandLine = flag.NewFlagSet("test", flag.ContinueOnError)
	own := flag.String(updateFlag, "", "")
	UpdateFlag()
	*own = "yes"
	if on, exists := updating(); on || !exists {
		t.Error("somebody else's flag")
	}
}
