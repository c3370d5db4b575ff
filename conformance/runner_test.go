package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/trace"
)

// rulesOf loads rules from a text, as a file of a side.
func rulesOf(t *testing.T, side Side, text string) *catalog {
	t.Helper()
	c, err := loadRules(map[string]string{"rules/" + string(side) + "/t.txtar": text})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// oneRule is a rule t/x with a scenario.
func oneRule(metadata, scenario string) string {
	return "-- x --\nSomething holds.\nlevel must\ncite S1\n" + metadata + "\n\n" + scenario + "\n"
}

// answers is an agent that answers each request as f says, with more than one
// frame or none; nothing is sent for "".
func answers(f func(m *flying) []string) func(context.Context) (*Peer, error) {
	return func(context.Context) (*Peer, error) {
		ours, theirs := jsonrpc.Pipe()
		go func() {
			defer func() { _ = theirs.Close() }()
			w := &between{methods: map[string]string{}, count: map[string]int{}}
			for {
				frame, err := theirs.ReadFrame()
				if err != nil {
					return
				}
				for _, line := range f(w.fly(Client, string(frame.Data))) {
					if line == "close" {
						return
					}
					if theirs.WriteFrame([]byte(line)) != nil {
						return
					}
				}
			}
		}()
		return &Peer{Stream: ours}, nil
	}
}

// polite answers initialize, the checker's own requests, and else as f says.
func polite(f func(m *flying) []string) func(context.Context) (*Peer, error) {
	return answers(func(m *flying) []string {
		switch m.method {
		case "initialize":
			return []string{`{"jsonrpc":"2.0","id":` + m.id + `,"result":{"protocolVersion":1,"agentInfo":{"name":"p","version":"2"},"agentCapabilities":{"loadSession":true}}}`}
		case "session/new":
			return []string{`{"jsonrpc":"2.0","id":` + m.id + `,"result":{"sessionId":"s1"}}`}
		case "_check/alive":
			return []string{`{"jsonrpc":"2.0","id":` + m.id + `,"error":{"code":-32601,"message":"no"}}`}
		}
		return f(m)
	})
}

func respond(m *flying, what string) string {
	return `{"jsonrpc":"2.0","id":` + m.id + `,` + what + `}`
}

// counting is a scenario in which an agent is to count, and counts an agent's part of it.
const counting = "session\ncall $p session/prompt {\"sessionId\": $session, \"prompt\": []}\nended $p\ncounted $p 3"

func counts(text string) func(m *flying) []string {
	return func(m *flying) []string {
		return []string{
			`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":` + encode(text) + `}}}}`,
			respond(m, `"result":{"stopReason":"end_turn"}`),
		}
	}
}

// TestWhy holds what results say, for each way in which a step can go wrong.
func TestWhy(t *testing.T) {
	for _, tc := range []struct {
		name, metadata, scenario string
		peer                     func(m *flying) []string
		status                   Status
		why                      string
	}{
		{"result for an error", "", "call $r _x\nerror $r -32601", func(m *flying) []string { return []string{respond(m, `"result":{"a":1}`)} },
			Fail, `_x was answered with the result {"a":1}, expected the error -32601`},
		{"error for a result", "", "call $r _x\nresult $r", func(m *flying) []string {
			return []string{respond(m, `"error":{"code":-5,"message":"no\n\u001b[31m"}`)}
		},
			Fail, `_x was answered with the error -5 "no  [31m", expected a result`},
		{"another code", "", "call $r _x\nerror $r -32601|-32602", func(m *flying) []string { return []string{respond(m, `"error":{"code":-5,"message":"no"}`)} },
			Fail, `_x was answered with the error -5 "no", expected the error -32601 or -32602`},
		{"another result", "", `call $r _x` + "\n" + `result $r {"a": string}`, func(m *flying) []string { return []string{respond(m, `"result":{"a":1}`)} },
			Fail, `the result of _x: a is 1, expected string`},
		{"both", "", "call $r _x\nresult $r", func(m *flying) []string { return []string{respond(m, `"result":1,"error":{"code":1,"message":""}`)} },
			Fail, `_x was answered with neither result nor error alone: {"jsonrpc":"2.0","id":2,"result":1,"error":{"code":1,"message":""}}`},
		{"no answer", "", "call $r _x\nresult $r", func(*flying) []string { return nil },
			Fail, `the answer to _x did not come within 10s`},
		{"no answer in a shorter time", "", "within 2s\ncall $r _x\nresult $r", func(*flying) []string { return nil },
			Fail, `the answer to _x did not come within 2s`},
		{"end", "", "call $r _x\nresult $r", func(*flying) []string { return []string{"close"} },
			Fail, `the peer closed the connection where the answer to _x was due`},
		{"never", "", `notify _x` + "\n" + `never frame {"method": "_y", ...}`, func(*flying) []string { return []string{`{"jsonrpc":"2.0","method":"_y"}`} },
			Fail, `the notification _y came where it must not: never frame {"method": "_y", ...}`},
		{"quiet", "", "notify _x\nquiet 1s", func(*flying) []string {
			time.Sleep(100 * time.Millisecond) // virtual: not while the notification is being sent
			return []string{`noise`}
		},
			Fail, `the line "noise", which is not JSON came where nothing was to come for 1s`},
		{"await", "", "notify _x\nawait fs/read_text_file $q", func(*flying) []string { return nil },
			Unseen, `the peer never sent fs/read_text_file`},
		{"expect", "", "notify _x\n" + `expect _y {"a": 1}`, func(*flying) []string { return []string{`{"jsonrpc":"2.0","method":"_y","params":{"a":2}}`} },
			Fail, `_y {"a": 1} did not come within 10s; what came instead: a is 2, expected 1`},
		{"need", "", `call $r _x` + "\n" + `result $r {"a": $a}` + "\nneed $a 2", func(m *flying) []string { return []string{respond(m, `"result":{"a":1}`)} },
			Unseen, `a: it is 1, expected 2`},
		{"is", "", `call $r _x` + "\n" + `result $r {"a": $a}` + "\nis $a 2", func(m *flying) []string { return []string{respond(m, `"result":{"a":1}`)} },
			Fail, `a: it is 1, expected 2`},
		{"isnt", "", `call $r _x` + "\n" + `result $r {"a": $a}` + "\nisnt $a 1", func(m *flying) []string { return []string{respond(m, `"result":{"a":1}`)} },
			Fail, `a is 1, expected something else`},
		{"closed", "", "closed", nil, Fail, `the peer did not close the connection within 10s`},
		{"settled", "", "repeat 3\ncall $r _x\nend\nsettled", func(m *flying) []string {
			if m.n == 0 {
				return nil
			}
			return []string{respond(m, `"result":1`)}
		}, Fail, `the answer to _x, and 0 more, did not come within 10s`},
		{"capturing again", "", "repeat 2\ncall $r _x\nresult $r {\"a\": $a}\nend\nis $a 2", func(m *flying) []string {
			return []string{respond(m, `"result":{"a":`+strconv.Itoa(m.n+1)+`}`)}
		}, Pass, ""},
		{"join", "", "let $a {\"b\": 1}\njoin $x \"/\" $a \"\\u2602\" $version\nis $x \"/{\\\"b\\\":1}☂1\"", nil, Pass, ""},
		{"together", "", "together\ncall $r _x\ncall $s _x\nend\nresult $s 1\nresult $r 1", func(m *flying) []string { return []string{respond(m, `"result":1`)} }, Pass, ""},
		{"deaf for a while", "", "deaf 1s\ncall $r _x\nresult $r 1", func(m *flying) []string { return []string{respond(m, `"result":1`)} }, Pass, ""},
		{"counted", "", counting, counts("0, 1, 2. Three!"), Pass, ""},
		{"counted in one word", "", counting, counts("012"), Pass, ""},
		{"counted on", "", counting, counts("0 1 2 3 20"), Pass, ""},
		{"counted too little", "", counting, counts("0 1"), Fail, `the agent counted to 1, expected 2`},
		{"counted otherwise", "", counting, counts("0 2 1"), Fail, `the agent counted to 0, and then 2 1`},
		{"counted twice", "", counting, counts("0 1 1 2"), Fail, `the agent counted to 1, and then 1 2`},
		{"not counted", "", counting, counts("I have 5 apples"), Unseen, `the agent did not count`},
		{"nothing counted", "", counting, counts(""), Unseen, `the agent did not count`},
		{"no prompt", "", "session\nprompt $p text\nended $p", nil,
			Unseen, `no prompt is configured that makes the agent do this: text (the agent answers with a short text)`},
		{"needs", "needs session.fork", "alive", nil, Skip, `the agent does not offer session.fork`},
		{"lacks", "lacks session.load", "alive", nil, Skip, `the agent offers session.load`},
		{"raw", "", `raw "x"`, nil, Skip, `bytes cannot be written past this connection`},
		{"eof", "", `eof`, nil, Skip, `this connection cannot be closed in one direction`},
		{"exit", "", `exit 0`, nil, Skip, `the end of the peer's process cannot be seen on this connection`},
		{"not a turn", "", "call $p _x\nended $p", nil, Broken, `line 8: $p is no prompt`},
		{"passes", "needs v1 loadSession", "call $r _x\nresult $r {}", func(m *flying) []string { return []string{respond(m, `"result":{}`)} }, Pass, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				peer := tc.peer
				if peer == nil {
					peer = func(*flying) []string { return nil }
				}
				o := Options{Versions: []int{1}, catalog: rulesOf(t, Agent, oneRule(tc.metadata, tc.scenario))}
				report, err := CheckAgent(t.Context(), polite(peer), o)
				if err != nil || len(report.Results) != 1 {
					t.Fatalf("%v, %d results: %s", err, len(report.Results), report.Broken)
				}
				r := report.Results[0]
				if (r.Purpose == "text") != (tc.name == "no prompt") {
					t.Errorf("the purpose is %q", r.Purpose)
				}
				if r.Status != tc.status || r.Why != tc.why {
					t.Errorf("%s: %q\nwant %s: %q\n%s", r.Status, r.Why, tc.status, tc.why, seenText(r))
				}
				if report.Failed() != (tc.status == Fail) {
					t.Errorf("failed: %t", report.Failed())
				}
				if report.Name != "p" || report.Release != "2" {
					t.Errorf("the peer is %s %s", report.Name, report.Release)
				}
			})
		})
	}
}

// TestNoPeer holds what is said of what is no agent, in a line and in a bounded
// time.
func TestNoPeer(t *testing.T) {
	flood := strings.Repeat("x", 1000)
	for _, tc := range []struct {
		name string
		open func(context.Context) (*Peer, error)
		want string
	}{
		{"does not start", func(context.Context) (*Peer, error) { return nil, errors.New("no such\nfile") },
			"the agent could not be started: no such file"},
		{"silent", answers(func(*flying) []string { return nil }), "the answer to initialize did not come within 10s"},
		{"gone", answers(func(*flying) []string { return []string{"close"} }), "the peer closed the connection where the answer to initialize was due"},
		{"usage", answers(func(*flying) []string { return []string{"Usage:\tx [-y]", "close"} }),
			`this is not an ACP agent: it sent the line "Usage: x [-y]", which is not JSON`},
		{"echo", answers(func(m *flying) []string { return []string{m.line} }), "this is not an ACP agent: it sends back what it is sent"},
		{"noise", answers(func(*flying) []string {
			return []string{"\x00\xff\x1b]0;title\a" + flood}
		}), "this is not an ACP agent: it sent the line "},
		{"flood", func(context.Context) (*Peer, error) {
			return &Peer{Stream: &floodStream{quit: make(chan struct{})}}, nil
		},
			`this is not an ACP agent: it sent the line "y", which is not JSON`},
		{"refuses", answers(func(m *flying) []string { return []string{respond(m, `"error":{"code":-32000,"message":"log in"}`)} }),
			`the agent refused initialize with -32000 "log in"`},
		{"ended", func(ctx context.Context) (*Peer, error) {
			p, err := answers(func(*flying) []string { return []string{"close"} })(ctx)
			p.Ended = func() string { return "exit status 127: no such\ncommand" }
			return p, err
		}, "the peer closed the connection where the answer to initialize was due (exit status 127: no such command)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				report, err := CheckAgent(t.Context(), tc.open, Options{})
				if err != nil {
					t.Fatal(err)
				}
				if !strings.HasPrefix(report.Broken, tc.want) || strings.ContainsAny(report.Broken, "\n\x1b") || len(report.Broken) > 700 {
					t.Errorf("broken: %q, want %q", report.Broken, tc.want)
				}
				want := CauseOther
				switch {
				case strings.Contains(tc.want, "not an ACP"):
					want = CauseNoPeer
				case strings.Contains(tc.want, "within"):
					want = CauseLate
				}
				if report.Cause != want {
					t.Errorf("cause %q, want %q", report.Cause, want)
				}
				if !report.Failed() || len(report.Versions) > 0 {
					t.Errorf("failed: %t, versions %v", report.Failed(), report.Versions)
				}
				if d := time.Since(start); d > 3*time.Minute {
					t.Errorf("it took %v to find out", d)
				}
			})
		})
	}
}

// floodStream is a peer that never stops.
type floodStream struct{ quit chan struct{} }

func (s *floodStream) ReadFrame() (jsonrpc.Frame, error) {
	select {
	case <-s.quit:
		return jsonrpc.Frame{}, io.EOF
	default:
		return jsonrpc.Frame{Data: []byte("y")}, nil
	}
}
func (s *floodStream) WriteFrame([]byte) error { <-s.quit; return io.ErrClosedPipe }
func (s *floodStream) Close() error {
	defer func() { _ = recover() }() // more than once
	close(s.quit)
	return nil
}

// TestFloodFails holds the bound of what a scenario keeps.
func TestFloodFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := polite(func(m *flying) []string {
			var out []string
			for range maxKept / 2 {
				out = append(out, `{"jsonrpc":"2.0","method":"_flood"}`)
			}
			return out
		})
		o := Options{Versions: []int{1}, catalog: rulesOf(t, Agent, oneRule("", "call $r _x\ncall $s _x\ncall $t _x\nresult $r"))}
		report, err := CheckAgent(t.Context(), open, o)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("more came than %d frames or %d MiB that nobody asked for", maxKept, maxKeptBytes>>20)
		if r := report.Results[0]; r.Status != Fail || r.Why != want {
			t.Errorf("%s: %s", r.Status, r.Why)
		}
	})
}

// TestVersions holds how the versions of an agent are found.
func TestVersions(t *testing.T) {
	only := func(version string) func(context.Context) (*Peer, error) {
		return answers(func(m *flying) []string {
			switch {
			case m.method == "initialize" && version == "2" && encode(m.get("params.protocolVersion")) == "1":
				return []string{respond(m, `"error":{"code":-32022,"message":"no"}`)}
			case m.method == "initialize":
				return []string{respond(m, `"result":{"protocolVersion":`+version+`}`)}
			}
			return []string{respond(m, `"error":{"code":-32601,"message":"no"}`)}
		})
	}
	for _, tc := range []struct {
		version string
		want    []int
		skipped string
	}{
		{"1", []int{1}, "the agent does not speak version 2, it answered 1"},
		{"2", []int{2}, `the agent does not speak version 1: the agent refused initialize with -32022 "no"`},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := Options{catalog: rulesOf(t, Agent, oneRule("", "alive"))}
			report, err := CheckAgent(t.Context(), only(tc.version), o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, report.Versions); diff != "" || report.Failed() {
				t.Errorf("versions %s %s", diff, report.Broken)
			}
			skipped := report.Results[2-tc.want[0]]
			if skipped.Status != Skip || skipped.Why != tc.skipped {
				t.Errorf("version %d: %s: %s", skipped.Version, skipped.Status, skipped.Why)
			}
		})
	}
}

// TestBlame holds that a scenario is not blamed for what one before it did.
func TestBlame(t *testing.T) {
	rules := "-- a --\nOne.\nlevel must\ncite S1\n\nnotify _poison\n-- b --\nTwo.\nlevel must\ncite S1\n\ncall $r _x\nresult $r\n"
	synctest.Test(t, func(t *testing.T) {
		opened := 0
		open := func(ctx context.Context) (*Peer, error) {
			opened++
			poisoned := false
			return polite(func(m *flying) []string {
				poisoned = poisoned || m.method == "_poison"
				if poisoned {
					return nil
				}
				return []string{respond(m, `"result":1`)}
			})(ctx)
		}
		report, err := CheckAgent(t.Context(), open, Options{Versions: []int{1}, catalog: rulesOf(t, Agent, rules)})
		if err != nil || report.Failed() || opened != 2 {
			t.Errorf("%v, %d connections: %s", err, opened, report.Results[1].Why)
		}
	})
}

// TestCancelled holds that a check ends with its context, leaving nothing.
func TestCancelled(t *testing.T) {
	cause := errors.New("enough")
	for _, after := range []time.Duration{0, time.Second, 12 * time.Second, 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			timer := time.AfterFunc(after, func() { cancel(cause) })
			defer timer.Stop()
			start := time.Now()
			_, err := CheckAgent(ctx, openAgent(func(w *between, f *flying) {
				if f.method == "initialize" {
					w.pass(f)
				}
			}), Options{})
			if !errors.Is(err, cause) || time.Since(start) > after+closeGrace {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
	}
}

// TestAnswersInBackground holds what a client of the checker does by itself.
func TestAnswersInBackground(t *testing.T) {
	asks := []struct{ ask, want string }{
		{`"method":"fs/read_text_file","params":{"path":"/acp-check-0.txt","line":2,"limit":1}`, `"result":{"content":"two\n"}`},
		{`"method":"fs/read_text_file","params":{"path":"/acp-check-0.txt","line":-5,"limit":99999999999999999999}`, `"result":{"content":"one\ntwo\nthree"}`},
		{`"method":"fs/read_text_file","params":{"path":"/none"}`, `"error":{"code":-32002,"message":"there is no such file"}`},
		{`"method":"fs/write_text_file","params":{"path":"/none","content":"x"}`, `"result":{}`},
		{`"method":"session/request_permission","params":{"options":[{"optionId":"r","kind":"reject_once"},{"optionId":"a","kind":"allow_always"},{"optionId":"o","kind":"allow_once"}]}`,
			`"result":{"outcome":{"outcome":"selected","optionId":"o"}}`},
		{`"method":"session/request_permission","params":{"options":7}`, `"result":{"outcome":{"outcome":"cancelled"}}`},
		{`"method":"session/request_permission","params":[]`, `"result":{"outcome":{"outcome":"cancelled"}}`},
		{`"method":"terminal/create","params":{}`, `"result":{"terminalId":"term-1"}`},
		{`"method":"elicitation/create"`, `"result":{"action":"decline"}`},
		{`"method":"_other"`, `"error":{"code":-32601,"message":"Method not found","data":{"method":"_other"}}`},
	}
	synctest.Test(t, func(t *testing.T) {
		var got []string
		open := polite(func(m *flying) []string {
			if m.reply {
				got = append(got, strings.TrimSuffix(strings.SplitN(m.line, ",", 3)[2], "}"))
				return nil
			}
			var out []string
			for i, a := range asks {
				out = append(out, fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d",%s}`, i, a.ask))
			}
			return append(out, respond(m, `"result":{}`))
		})
		o := Options{Versions: []int{1}, catalog: rulesOf(t, Agent, oneRule("", `file $f "one\ntwo\nthree"`+"\ncall $r _x\nresult $r\nalive"))}
		if report, err := CheckAgent(t.Context(), open, o); err != nil || report.Failed() {
			t.Fatal(err, report.Broken)
		}
		var want []string
		for _, a := range asks {
			want = append(want, a.want)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestHooks holds that results and frames are told of.
func TestHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		var frames []string
		o := Options{Versions: []int{1}, catalog: rulesOf(t, Agent, oneRule("", "alive")),
			OnResult: func(r *Result) { told = append(told, r.Rule.ID+" "+string(r.Status)) },
			Record: func(dir trace.Direction, data []byte) {
				v, _ := decode(string(data)).(map[string]any)
				frames = append(frames, fmt.Sprintf("%c %v", dir, v["method"]))
			}}
		if _, err := CheckAgent(t.Context(), polite(nil), o); err != nil {
			t.Fatal(err)
		}
		want := []string{"> initialize", "< <nil>", "> _check/alive", "< <nil>"}
		if diff := cmp.Diff(want, frames); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"agent/t/x pass"}, told); diff != "" {
			t.Error(diff)
		}
	})
}

func TestNames(t *testing.T) {
	for _, tc := range []struct {
		pattern, id string
		want        bool
	}{
		{"agent/a/b", "agent/a/b", true},
		{"agent/a", "agent/a/b", true},
		{"agent/a/", "agent/a/b", true},
		{"agent/a", "agent/ab/c", false},
		{"agent/*/b*", "agent/a/bc", true},
		{"*", "agent/a/b", false},
		{"", "agent/a/b", false},
		{"[", "agent/a/b", false},
	} {
		if got := Names(tc.pattern, tc.id); got != tc.want {
			t.Errorf("%q names %q: %t", tc.pattern, tc.id, got)
		}
	}
}

func TestSelection(t *testing.T) {
	_, err := CheckAgent(t.Context(), polite(nil), Options{Only: []string{"agent/none"}})
	if err == nil || err.Error() != "no rule fits the selection" {
		t.Error(err)
	}
}

// TestReportJSON holds the form of a report: members are only ever added.
func TestReportJSON(t *testing.T) {
	r := &Report{Side: Agent, Name: "n", Took: time.Second, Results: []*Result{{
		Rule: &Rule{ID: "agent/a/b", Level: Must, Text: "T.", Cites: []string{"S1"}}, Version: 1, Status: Fail, Why: "w", First: "f",
		Saw: []Seen{{Out: true, Data: "{}"}}, Took: 2 * time.Millisecond,
	}}}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	none := `{"broken":0,"fail":0,"pass":0,"skip":0,"unseen":0}`
	want := `{"side":"agent","name":"n","release":"","versions":[],"failed":true,"counts":{"may":` + none +
		`,"must":{"broken":0,"fail":1,"pass":0,"skip":0,"unseen":0},"quirk":` + none + `,"should":` + none + `},` +
		`"results":[{"rule":"agent/a/b","version":1,"level":"must","status":"fail","why":"w","first":"f","text":"T.","cites":["S1"],` +
		`"saw":[{"out":true,"data":"{}"}],"tookMs":2}],"tookMs":1000}`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Error(diff)
	}
}
