package tap

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/shellline"
)

// TestAnsweredBefore: what the user has decided when the agent asked is not asked again when the agent
// does it: once for what was asked about, for as long as the session is open if it was “always”.
func TestAnsweredBefore(t *testing.T) {
	const (
		asksRun   = `> session/request_permission {"toolCall":{"toolCallId":"1","kind":"execute","rawInput":{"command":"rm x"}},OPTIONS}`
		asksWrite = `> session/request_permission {"toolCall":{"toolCallId":"1","kind":"edit","locations":[{"path":"ROOT/.env"}]},OPTIONS}`
		asksRead  = `> session/request_permission {"toolCall":{"toolCallId":"1","kind":"read","locations":[{"path":"ROOT/.env"}]},OPTIONS}`
		runs      = `> terminal/create {"command":"rm x"}`
		runsOther = `> terminal/create {"command":"rm y"}`
		runsThere = `> terminal/create {"command":"rm x","cwd":"MORE"}`
		runsShell = `> terminal/create {"command":"sh -c 'rm  x'"}`
		writes    = `> fs/write_text_file {"path":"ROOT/.env","content":"x"}`
		reads     = `> fs/read_text_file {"path":"ROOT/.env"}`
		prompt    = `< 70 session/prompt`
		ends      = `> 70 {"stopReason":"end_turn"}`
		cancel    = `< session/cancel`
	)
	answers := func(option string) string { return `< {"outcome":{"outcome":"selected","optionId":"` + option + `"}}` }
	once, always, never := answers("once"), answers("always"), answers("never")
	for _, tt := range []struct {
		name  string
		lines []string // in order; a call that the user is asked about is allowed
		want  string   // what becomes of the calls
	}{
		{"a command", []string{asksRun, once, runs, runs}, "pass ask"},
		{"with a shell around it", []string{asksRun, once, runsShell}, "pass"},
		{"another command", []string{asksRun, once, runsOther, runs}, "ask pass"},
		{"another directory", []string{asksRun, once, runsThere}, "ask"},
		{"a file", []string{asksWrite, once, writes, writes}, "pass ask"},
		{"reading in pieces", []string{asksRead, once, reads, reads, reads}, "pass pass pass"},
		{"reading is not writing", []string{asksRead, once, writes}, "ask"},
		{"rejected", []string{asksRun, never, runs, runs}, "refuse ask"},
		{"dismissed", []string{asksRun, `< {"outcome":{"outcome":"cancelled"}}`, runs}, "ask"},
		{"an error", []string{asksRun, `< error`, runs}, "ask"},
		{"an answer of none of the options", []string{asksRun, answers("other"), runs}, "ask"},
		{"no answer yet", []string{asksRun, runs}, "ask"},
		{"always", []string{prompt, asksRun, always, runs, runs, ends, prompt, runs}, "pass pass pass"},
		{"always, then rejected", []string{asksRun, always, asksRun, never, runs, runs}, "refuse ask"},
		{"the turn ends", []string{prompt, asksRun, once, ends, runs}, "ask"},
		{"the next turn begins", []string{prompt, asksRun, once, prompt, runs}, "ask"},
		{"cancelled before the answer", []string{prompt, asksRun, cancel, once, runs}, "ask(refuse cancelled removing the turn was cancelled)"},
		{"cancelled after the answer", []string{prompt, asksRun, once, cancel, runs}, "ask(refuse cancelled removing the turn was cancelled)"},
		{"an id twice", []string{asksWrite, asksRun, once, runs, writes}, "ask ask"},
		{"an id of another spelling", []string{asksWrite, strings.Replace(asksRun, ">", "> 1.0", 1), once, runs, writes}, "ask ask"},
		{"an id of a text", []string{asksWrite, strings.Replace(asksRun, ">", `> "1"`, 1), once, runs, writes}, "ask ask"},
		{"an id that is too long", []string{asksWrite, strings.Replace(asksRun, ">", "> 1."+strings.Repeat("0", maxID), 1), once, runs, writes}, "ask ask"},
		{"an id of a call that is not answered", []string{`> 1 terminal/create {"command":"ls"}`, asksRun, once, runs}, "pass ask"},
		{"an id again once it is answered", []string{asksWrite, never, asksRun, once, runs}, "pass"},
		{"an option twice", []string{strings.Replace(asksRun, "OPTIONS", `"options":[{"optionId":"once","name":"No","kind":"reject_once"},{"optionId":"once","name":"Yes","kind":"allow_once"}]`, 1), once, runs}, "ask"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t, 1, askRules()...)
			p.policy.Commands = shellline.Parser{}
			fill := strings.NewReplacer("ROOT", filepath.ToSlash(p.root), "MORE", filepath.ToSlash(p.more),
				"OPTIONS", `"options":[{"optionId":"once","name":"Yes","kind":"allow_once"},{"optionId":"always","name":"Always","kind":"allow_always"},{"optionId":"never","name":"No","kind":"reject_once"}]`)
			var got []string
			for i, line := range tt.lines {
				if what := p.line(100+i, fill.Replace(line)); what != "" {
					got = append(got, what)
				}
			}
			if got := strings.Join(got, " "); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// line passes a line on that is written as "> id method params" by the agent and as "< id method" by the
// client, without a method for an answer. The id of permission requests and answers is 1 unless it is
// there. It returns what becomes of a call.
func (p *place) line(id int, line string) string {
	p.t.Helper()
	side, rest, _ := strings.Cut(line, " ")
	spelled := fmt.Sprint(id)
	if word, more, ok := strings.Cut(rest, " "); ok && !strings.ContainsAny(word, "/{") {
		spelled, rest = word, more
	} else if strings.HasPrefix(rest, "session/request") || strings.HasPrefix(rest, "{") || rest == "error" {
		spelled = "1"
	}
	method, params, _ := strings.Cut(rest, " ")
	frame := ""
	switch {
	case rest == "error":
		frame = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no"}}`, spelled)
	case strings.HasPrefix(rest, "{"):
		frame = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, spelled, rest)
	case side == "<" && method == "session/cancel":
		frame = `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}`
	case side == "<":
		frame = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{"sessionId":"s","prompt":[]}}`, spelled, method)
	default:
		frame = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{"sessionId":"s",%s}`, spelled, method, strings.TrimPrefix(params, "{"))
	}
	if side == "<" {
		p.FromClient([]byte(frame))
		return ""
	}
	v := p.agent("%s", frame)
	switch {
	case strings.HasPrefix(rest, "{"):
		return ""
	case method == methodPermission:
		if !v.Pass {
			p.t.Errorf("%s does not reach the client: %s", frame, p.last())
		}
		return ""
	case v.Ask != nil:
		if is, release, _ := p.Settle(allowing(idOf(p.t, v))); !is || release == nil {
			return "ask(" + p.last() + ")"
		}
		return "ask"
	case v.Pass:
		return "pass"
	}
	return "refuse"
}

// TestManyInquiries: what is remembered of requests that are not answered is bounded; beyond that no
// answer counts any more.
func TestManyInquiries(t *testing.T) {
	for _, tt := range []struct {
		open int
		want string
	}{
		{maxFlying - 1, "pass"},
		{maxFlying, "ask"},
	} {
		p := newPlace(t, 1, askRules()...)
		for i := range tt.open {
			p.line(0, fmt.Sprintf(`> "r%d" terminal/create {"command":"ls"}`, i))
		}
		p.line(0, `> session/request_permission {"toolCall":{"toolCallId":"1","kind":"execute","rawInput":{"command":"rm x"}},`+v1Options+`}`)
		p.line(0, `< {"outcome":{"outcome":"selected","optionId":"yes"}}`)
		if got := p.line(2, `> terminal/create {"command":"rm x"}`); got != tt.want {
			t.Errorf("with %d open requests: %s, want %s", tt.open, got, tt.want)
		}
		if len(p.flying) > maxFlying {
			t.Errorf("%d requests are remembered", len(p.flying))
		}
	}
}
