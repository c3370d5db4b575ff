package tap

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/trace"
)

// askRules want files named .env, and rm, to be asked about.
func askRules() []acphost.Rule {
	return []acphost.Rule{
		{Name: "secrets", Effect: acphost.EffectAsk, Paths: []string{"**/.env"}},
		{Name: "removing", Effect: acphost.EffectAsk, Commands: []string{"rm *"}},
		{Name: "all", Effect: acphost.EffectAllow},
	}
}

// TestAskedOfClient: what a rule wants asked of files and terminals is asked of the client by a permission
// request, and what it answers decides: the request goes on as it was written, or the agent gets an
// error. The answer does not reach the agent, whatever pieces it comes in.
func TestAskedOfClient(t *testing.T) {
	read := `{"jsonrpc":"2.0","id":7,"method":"fs/read_text_file","params":{"sessionId":"s","path":"ROOT/.env"}}`
	write := `{"jsonrpc":"2.0","id":"w","method":"fs/write_text_file","params":{"sessionId":"s","path":"ROOT/.env","content":"A=1"}}`
	run := `{"jsonrpc":"2.0","id":8,"method":"terminal/create","params":{"sessionId":"s","command":"rm x"}}`
	plain := `{"jsonrpc":"2.0","id":9,"method":"fs/read_text_file","params":{"sessionId":"s","path":"ROOT/a"}}`
	for _, tt := range []struct {
		name    string
		says    []string // of the agent
		outcome string   // of each question
		client  []string // what it gets, of questions the title
		agent   []string // what that gets, id and error
	}{
		{"allowed", []string{write}, "allow", []string{"? Edit ROOT/.env", write}, nil},
		{"rejected", []string{write}, "reject", []string{"? Edit ROOT/.env"}, []string{`"w" Permission denied`}},
		{"dismissed", []string{run}, "", []string{"? rm x"}, []string{`8 Permission denied`}},
		{"a command", []string{run}, "allow", []string{"? rm x", run}, nil},
		{"read twice", []string{read, read}, "allow", []string{"? Read ROOT/.env", read, read}, nil},
		{"read twice, rejected", []string{read, read}, "reject", []string{"? Read ROOT/.env"}, []string{"7 Permission denied", "7 Permission denied"}},
		{"not asked about", []string{plain}, "reject", []string{plain}, nil},
	} {
		for _, piece := range []int{1, 1 << 20} {
			t.Run(fmt.Sprint(tt.name, " in pieces of ", piece), func(t *testing.T) {
				p := newPlace(t, 1, askRules()...)
				rooted := func(s string) string { return strings.ReplaceAll(s, "ROOT", filepath.ToSlash(p.root)) }
				e := p.between()
				var client, agent []string
				send := func(line string) {
					for b := []byte(line + "\n"); len(b) > 0; b = b[min(piece, len(b)):] {
						_, _ = e.toTap.Write(b[:min(piece, len(b))])
					}
				}
				lines := bufio.NewReader(e.clientIn)
				next := func() string {
					line, err := lines.ReadString('\n')
					if err != nil {
						t.Fatal(err)
					}
					return strings.TrimSuffix(line, "\n")
				}
				heard := make(chan string, 64)
				e.Go(func() {
					defer close(heard)
					for s := bufio.NewScanner(e.agentIn); s.Scan(); {
						heard <- s.Text()
					}
				})
				hears := func() string { // what the agent is told next
					line := <-heard
					var a struct {
						ID     json.RawMessage
						Method string
						Error  struct{ Message string }
					}
					if err := json.Unmarshal([]byte(line), &a); err != nil {
						t.Fatalf("%s: %v", line, err)
					}
					return strings.TrimSpace(string(a.ID) + a.Method + " " + a.Error.Message)
				}
				for _, line := range tt.says {
					_, _ = fmt.Fprintln(e.agentOut, rooted(line))
					if len(client) == len(tt.client) { // it is answered in the client's place
						agent = append(agent, hears())
						continue
					}
					got := next()
					var q struct {
						ID     json.RawMessage
						Method string
						Params struct{ ToolCall struct{ Title string } }
					}
					if err := json.Unmarshal([]byte(got), &q); err != nil {
						t.Fatal(err)
					}
					if q.Method != methodPermission {
						client = append(client, got)
						continue
					}
					client = append(client, "? "+q.Params.ToolCall.Title)
					outcome := `{"outcome":"cancelled"}`
					if tt.outcome != "" {
						outcome = fmt.Sprintf(`{"outcome":"selected","optionId":%q}`, tt.outcome)
					}
					send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":%s}}`, q.ID, outcome))
					if tt.outcome == "allow" {
						client = append(client, next())
					} else {
						agent = append(agent, hears())
					}
				}
				send(`{"jsonrpc":"2.0","method":"client/last"}`)
				if got := hears(); got != "client/last" {
					t.Errorf("the agent gets %q", got)
				}
				_, _ = e.agentOut.Close(), e.toTap.Close()
				_, _ = io.Copy(io.Discard, e.clientIn)
				e.Wait()
				if diff := cmp.Diff(rooted(strings.Join(tt.client, "\n")), strings.Join(client, "\n")); diff != "" {
					t.Error("the client:", diff)
				}
				if diff := cmp.Diff(strings.Join(tt.agent, "\n"), strings.Join(agent, "\n")); diff != "" {
					t.Error("the agent:", diff)
				}
				if p.asking() {
					t.Error("a question is open")
				}
				for _, f := range e.sink.frames[trace.ToAgent] {
					if strings.Contains(string(f), "acp-tap-") {
						return
					}
				}
				if strings.HasPrefix(tt.client[0], "?") {
					t.Error("the answer is not in the recording")
				}
			})
		}
	}
}

// idOf is the id of the question that a verdict asks.
func idOf(t *testing.T, v Verdict) string {
	t.Helper()
	var q struct{ ID string }
	if err := json.Unmarshal(v.Ask, &q); err != nil {
		t.Fatalf("%+v: %v", v, err)
	}
	return q.ID
}

// allowing is the client's answer to a question.
func allowing(id string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%q,"result":{"outcome":{"outcome":"selected","optionId":"allow"}}}`, id)
}

// TestAskedBounded: so many questions may be open, an answer about reading counts for a turn only, nothing
// is allowed in a turn that was cancelled, and where the client cannot be asked it is refused.
func TestAskedBounded(t *testing.T) {
	frame := func(p *place, id int, name string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"fs/read_text_file","params":{"sessionId":"s","path":"%s/%s/.env"}}`, id, filepath.ToSlash(p.root), name)
	}
	p := newPlace(t, 1, askRules()...)
	if err := os.Mkdir(filepath.Join(p.root, "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	v := p.agent("%s", frame(p, 1, "a"))
	if v.Pass || v.Ask == nil || p.last() != "ask rule secrets" {
		t.Fatalf("%+v, %s", v, p.last())
	}
	if is, release, _ := p.Settle(allowing(idOf(t, v))); !is || string(release) != frame(p, 1, "a") || p.last() != "pass user secrets" {
		t.Errorf("%t, %s, %s", is, release, p.last())
	}
	if is, _, _ := p.Settle(allowing(idOf(t, v))); is {
		t.Error("a question is answered twice")
	}
	if v := p.agent("%s", frame(p, 2, "a")); !v.Pass || p.last() != "pass user secrets" {
		t.Errorf("again: %+v, %s", v, p.last())
	}
	p.FromClient([]byte(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}`))
	v = p.agent("%s", frame(p, 4, "a"))
	if v.Ask == nil {
		t.Errorf("in the next turn: %+v", v)
	}
	p.FromClient([]byte(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}`))
	if is, release, reply := p.Settle(allowing(idOf(t, v))); !is || release != nil || reply == nil || p.last() != "refuse cancelled secrets the turn was cancelled" {
		t.Errorf("in a turn that was cancelled: %t, %s, %s, %s", is, release, reply, p.last())
	}
	p.FromClient([]byte(`{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}`))
	for i := range maxAsked + 1 {
		name := fmt.Sprint("d", i)
		if err := os.Mkdir(filepath.Join(p.root, name), 0o700); err != nil {
			t.Fatal(err)
		}
		v := p.agent("%s", frame(p, 100+i, name))
		if asked := v.Ask != nil; asked != (i < maxAsked) || asked == (v.Answer != nil) {
			t.Fatalf("question %d: %+v", i, v)
		}
	}
	p = newPlace(t, 2, askRules()...)
	if v := p.agent("%s", frame(p, 1, ".")); v.Pass || v.Ask != nil || v.Answer == nil || !strings.Contains(p.last(), "which the tap cannot do here") {
		t.Errorf("version 2: %+v, %s", v, p.last())
	}
}

// TestHeldBytes: the calls that wait for an answer take 64 MiB at most. One that would take them beyond
// that is answered with an error, and there is room again once the user has answered.
func TestHeldBytes(t *testing.T) {
	p := newPlace(t, 1, askRules()...)
	write := func(id, size int) Verdict {
		text := strings.Repeat("x", size)
		return p.agent(`{"jsonrpc":"2.0","id":%d,"method":"fs/write_text_file","params":{"sessionId":"s","path":"%s/.env","content":"%s"}}`, id, filepath.ToSlash(p.root), text)
	}
	const each = 30 << 20
	first, second := write(1, each), write(2, each)
	if first.Ask == nil || second.Ask == nil {
		t.Fatal("what there is room for is not asked about")
	}
	v := write(3, each)
	if c, id := code(t, v); v.Ask != nil || c != -32603 || id != "3" || !strings.Contains(string(v.Answer), "more than 67108864 bytes together") {
		t.Errorf("beyond the bound: %s", v.Answer)
	}
	if p.last() != "refuse rule secrets the calls that wait for an answer would take more than 67108864 bytes together" {
		t.Error(p.last())
	}
	if v := write(4, 100); v.Ask == nil {
		t.Errorf("a small one: %s", v.Answer)
	}
	_, _, reply := p.Settle(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%q,"result":{"outcome":{"outcome":"cancelled"}}}`, idOf(t, first)))
	if reply == nil {
		t.Error("the agent is not answered")
	}
	if v := write(5, each); v.Ask == nil {
		t.Errorf("once there is room: %s", v.Answer)
	}
}

// TestReadsOfASession: a prompt in one session forgets what was decided about reading in that one only.
func TestReadsOfASession(t *testing.T) {
	p := newPlace(t, 1, askRules()...)
	p.FromClient(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"o","method":"session/new","params":{"cwd":%q,"mcpServers":[]}}`, p.root))
	p.agent(`{"jsonrpc":"2.0","id":"o","result":{"sessionId":"other"}}`)
	asks := func(session string) bool {
		v := p.agent(`{"jsonrpc":"2.0","id":1,"method":"fs/read_text_file","params":{"sessionId":%q,"path":"%s/.env"}}`, session, filepath.ToSlash(p.root))
		if v.Ask == nil {
			return false
		}
		p.Settle(allowing(idOf(t, v)))
		return true
	}
	for _, session := range []string{"s", "other"} {
		if !asks(session) || asks(session) {
			t.Errorf("%s: not asked about once", session)
		}
	}
	p.FromClient([]byte(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}`))
	if asks("other") {
		t.Error("a prompt elsewhere has forgotten what was decided")
	}
	if !asks("s") {
		t.Error("the next turn of the session does not ask")
	}
}
