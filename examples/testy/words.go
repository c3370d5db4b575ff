package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// words are what the first word of a prompt may be, those aside that accept
// deals with. The ones that begin with ! are those of the test suite.
var words = map[string]func(*script, context.Context) error{
	"!chunks":      (*script).chunks,      // !chunks N: N pieces of text
	"!burst":       (*script).chunks,      // the same
	"!big":         (*script).big,         // !big N: N bytes
	"!unicode":     (*script).unicode,     // text that is hard to encode
	"!stop":        (*script).stopWith,    // !stop REASON
	"!usage":       (*script).usage,       // the turn has used tokens
	"!updates":     (*script).updates,     // one of every update
	"!badupdate":   (*script).badUpdate,   // updates nobody can read
	"!lenient":     (*script).lenient,     // updates that can be read in part
	"!perm":        (*script).perm,        // asks for permission
	"!permtool":    (*script).permTool,    // the same under a tool call
	"!permcustom":  (*script).permCustom,  // the same in words of its own
	"!permcancel":  (*script).permCancel,  // withdraws the question
	"!read":        (*script).read,        // !read FILE: ten lines of it
	"!write":       (*script).write,       // !write FILE TEXT
	"!term":        (*script).term,        // !term COMMAND ARG…
	"!elicit":      (*script).elicit,      // shows a form
	"!eliciturl":   (*script).elicitURL,   // shows a link
	"!ext":         (*script).ext,         // !ext TEXT: a request of its own
	"!extnote":     (*script).extNote,     // !extnote TEXT: notifications of its own
	"!unknown":     (*script).unknown,     // a request nobody knows
	"!parallel":    (*script).parallel,    // !parallel N: N requests at once
	"!hang":        (*script).hang,        // waits to be cancelled
	"!tool":        (*script).tool,        // !tool ID: a tool call that can be cancelled
	"!terminal":    (*script).terminal,    // !terminal ID: the same in the background
	"!order":       (*script).order,       // an update right before the end
	"!blocks":      (*script).blocks,      // the types of the prompt's blocks
	"!customblock": (*script).customBlock, // its second block
	"!meta":        (*script).meta,        // its _meta
	"!mcp":         (*script).mcp,         // !mcp SERVER METHOD PARAMS
	"!mcpcancel":   (*script).mcpCancel,   // !mcpcancel SERVER
	"!raw":         (*script).raw,         // !raw LINE: writes it
	"!cursor":      (*script).cursor,      // !cursor ID: the session can be forked behind the answer
	"!suggest":     (*script).suggest,     // !suggest TEXT: suggests that prompt; nothing without a text
	"<skill>":      (*script).skill,       // the skill review, instead of a text

	"echo":           func(s *script, _ context.Context) error { return s.say(s.rest) },
	"sleep":          (*script).sleep, // sleep MILLISECONDS
	"read":           (*script).readAll,
	"write":          (*script).write,
	"inspect-prompt": func(s *script, _ context.Context) error { return s.sayJSON(s.Blocks()) },
}

const maxCount = 1_000_000

func (s *script) chunks(context.Context) error {
	for i := range s.number(0, 100, maxCount) {
		text := strconv.Itoa(i)
		if i > 0 && s.dialect() == 2 {
			text = "," + text
		}
		if err := s.say(text); err != nil {
			return err
		}
	}
	return nil
}

func (s *script) big(context.Context) error {
	return s.say(strings.Repeat("x", s.number(0, 1_000_000, 32<<20)))
}

func (s *script) unicode(context.Context) error {
	return s.say("h\u00e9llo \u4e16\u754c \U0001f600 \u2028\u2029 \x00 \"quoted\" \\n")
}

func (s *script) stopWith(context.Context) error {
	switch reason := s.arg(0, ""); reason {
	case "none":
		s.stop = ""
	case "error":
		if s.dialect() == 2 && s.version() == 1 {
			// Or else it looks as if the prompt had been refused.
			if err := s.Think("about to fail"); err != nil {
				return err
			}
		}
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, "model down").WithData(map[string]int{"a": 1})
	default:
		s.stop = acp.StopReason(reason)
	}
	return nil
}

func (s *script) usage(context.Context) error {
	s.SetUsage(acp.Usage{TotalTokens: 30, InputTokens: 10, OutputTokens: 20})
	return nil
}

func yesNo() []acp.PermissionOption {
	return []acp.PermissionOption{
		{OptionID: "allow", Name: "Allow", Kind: acp.PermissionOptionKindAllowOnce},
		{OptionID: "reject", Name: "Reject", Kind: acp.PermissionOptionKindRejectOnce},
	}
}

func (s *script) perm(context.Context) error {
	d, err := s.Ask(acp.Permission{Title: "Run?", Description: "d", Command: "ls", Cwd: "/tmp", Options: yesNo()})
	if err != nil {
		return err
	}
	answer := outcome(d)
	if !d.Cancelled {
		answer += ":" + string(d.Option.OptionID)
	}
	return s.say("perm:" + answer)
}

func outcome(d acp.PermissionAnswer) string {
	if d.Cancelled {
		return "cancelled"
	}
	return "selected"
}

func (s *script) permTool(context.Context) error {
	call := s.ToolCall(acp.ToolCall{Title: "Edit", Kind: acp.ToolKindEdit, Status: acp.ToolCallStatusPending})
	d, err := call.Ask(acp.Permission{Title: "Edit?", Options: yesNo()})
	if err != nil {
		return err
	}
	if err := call.Complete(); err != nil {
		return err
	}
	return s.say("perm:" + outcome(d))
}

func (s *script) permCustom(ctx context.Context) error {
	if s.version() == 1 { // which has no such questions
		return s.echo(ctx)
	}
	d, err := s.Ask(acp.Permission{
		Title:   "?",
		Subject: &acpv2.UnknownRequestPermissionSubject{Type: "_vendor", Raw: json.RawMessage(`{"type":"_vendor","q":1}`)},
		Options: []acp.PermissionOption{{OptionID: "a", Name: "A", Kind: "_custom"}},
	})
	if err != nil {
		return err
	}
	return s.say("perm:" + outcome(d))
}

// permCancel asks by hand, since a question is withdrawn with its turn only.
func (s *script) permCancel(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	cancelled, err := s.askByHand(asking)
	switch {
	case err != nil:
		return s.say(fmt.Sprintf("permcancel:error:%d", code(err)))
	case cancelled:
		return s.say("permcancel:result:cancelled")
	}
	return s.say("permcancel:result:selected")
}

func (s *script) askByHand(ctx context.Context) (cancelled bool, err error) {
	if s.version() == 2 {
		res, err := acpv2.MethodSessionRequestPermission.Call(ctx, s.conn, &acpv2.RequestPermissionRequest{
			SessionID: s.Session().ID(), Title: "Withdrawn", Options: yesNo(),
		}, jsonrpc.AwaitAnswer())
		if err != nil {
			return false, err
		}
		_, cancelled = res.Outcome.(*acpv2.CancelledPermissionOutcome)
		return cancelled, nil
	}
	res, err := acpv1.MethodSessionRequestPermission.Call(ctx, s.conn, &acpv1.RequestPermissionRequest{
		SessionID: acpv1.SessionID(s.Session().ID()),
		ToolCall:  acpv1.ToolCallUpdate{ToolCallID: "perm-2", Title: acpv1.Set("Withdrawn")},
		Options:   []acpv1.PermissionOption{{OptionID: "allow", Name: "Allow", Kind: acpv1.PermissionOptionKindAllowOnce}},
	}, jsonrpc.AwaitAnswer())
	if err != nil {
		return false, err
	}
	_, cancelled = res.Outcome.(*acpv1.CancelledPermissionOutcome)
	return cancelled, nil
}

func (s *script) read(context.Context) error {
	text, err := s.ReadLines(s.rest, 1, 10)
	if said, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return said // the suite wants to hear what the client has said
	}
	if err != nil {
		return err
	}
	return s.say("read:" + text)
}

// path returns a path that may be relative to the session's directory.
func (s *script) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(s.Session().Cwd(), name)
}

// readAll and write say what has failed: the file is not there, for example.
func (s *script) readAll(context.Context) error {
	text, err := s.ReadFile(s.path(s.rest))
	if err != nil {
		return s.say("read failed: " + err.Error())
	}
	return s.say(text)
}

func (s *script) write(context.Context) error {
	file, text, _ := strings.Cut(s.rest, " ")
	if err := s.WriteFile(s.path(file), text); err != nil {
		return s.say("write failed: " + err.Error())
	}
	return s.say("written")
}

func (s *script) sleep(ctx context.Context) error {
	return sleep(ctx, time.Duration(s.number(0, 1000, int(time.Hour/time.Millisecond)))*time.Millisecond)
}

func (s *script) term(context.Context) error {
	t, err := s.Run(acp.Exec{
		Command: s.arg(0, "echo"), Args: s.args[1:], Env: []acp.EnvVariable{{Name: "A", Value: "B"}}, OutputLimit: 1000,
	})
	if err != nil {
		return err
	}
	exit, err := t.Wait()
	state, stateErr := t.State()
	err = errors.Join(err, stateErr, t.Kill(), t.Release())
	if err != nil {
		return err
	}
	status := "null"
	if exit.ExitCode != nil {
		status = strconv.FormatInt(*exit.ExitCode, 10)
	}
	return s.say(fmt.Sprintf("term:%s:%s:%t", status, strings.TrimSpace(state.Output), state.Truncated))
}

func (s *script) elicit(context.Context) error {
	form := acp.ElicitationSchema{
		Properties: []acp.ElicitationProperty{
			{Name: "name", Schema: &acpv2.StringPropertySchema{MinLength: new(uint32(1))}},
			{Name: "n", Schema: &acpv2.IntegerPropertySchema{}},
			{Name: "ok", Schema: &acpv2.BooleanPropertySchema{Default: new(true)}},
		},
		Required: []string{"name"},
	}
	answer, err := s.Elicit(acp.FormRequest{Message: "name?", Schema: form})
	if err != nil {
		return err
	}
	if answer.Content == nil {
		return s.say("elicit:" + action(answer) + ":null")
	}
	var fields []string // in the form's order
	for _, p := range form.Properties {
		if v, ok := answer.Content[p.Name]; ok {
			fields = append(fields, fmt.Sprintf("%q:%s", p.Name, v))
		}
	}
	return s.say("elicit:" + action(answer) + ":{" + strings.Join(fields, ",") + "}")
}

func action(e *acp.ElicitationAnswer) string {
	switch {
	case e.Accepted:
		return "accept"
	case e.Declined:
		return "decline"
	}
	return "cancel"
}

func (s *script) elicitURL(context.Context) error {
	answer, done, err := s.ElicitURL(acp.LinkRequest{Message: "go", ID: "e1", URL: "https://example.com/x"})
	if err != nil {
		return err
	}
	if err := done(); err != nil {
		return err
	}
	return s.say("eliciturl:" + action(answer))
}

func (s *script) hang(ctx context.Context) error {
	if err := s.say("hanging"); err != nil {
		return err
	}
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), acp.ErrCancelled) {
		return context.Cause(ctx)
	}
	if s.dialect() == 1 {
		return s.say("late-update-after-cancel")
	}
	return s.say("+late")
}

func (s *script) tool(ctx context.Context) error {
	if s.version() == 1 { // nobody can cancel it
		return s.echo(ctx)
	}
	cancelled := make(chan struct{})
	call := s.ToolCall(acp.ToolCall{
		ID: acp.ToolCallID(s.arg(0, "tc1")), Title: "Long", Cancel: func() { close(cancelled) },
	})
	select {
	case <-cancelled:
		return call.SetStatus(acp.ToolCallStatusCancelled)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// terminal leaves a command behind that runs on when the turn is over.
func (s *script) terminal(ctx context.Context) error {
	if s.version() == 1 {
		return s.echo(ctx)
	}
	session := s.Session()
	t, err := session.Run(acp.Exec{ID: acp.TerminalID(s.arg(0, "bt1")), Command: "sleep", Args: []string{"999"}})
	if err != nil {
		return err
	}
	if err := session.SetBackground(&acpv2.BackgroundTerminal{TerminalID: t.ID()}); err != nil {
		return err
	}
	go func() {
		_, _ = t.Wait()
		_ = session.SetBackground()
		_ = t.Release()
	}()
	return nil
}

func (s *script) order(context.Context) error { return s.say("last") }

func (s *script) blocks(context.Context) error {
	var types []string
	for _, b := range s.Blocks() {
		types = append(types, typeOf(b))
	}
	return s.say(strings.Join(types, ","))
}

func (s *script) customBlock(context.Context) error {
	if len(s.Blocks()) < 2 {
		return s.say("null")
	}
	return s.sayJSON(s.Blocks()[1])
}

func (s *script) meta(context.Context) error { return s.sayJSON(s.Meta()) }

func (s *script) raw(ctx context.Context) error {
	if err := s.agent.raw([]byte(s.rest)); err != nil {
		return err
	}
	if err := sleep(ctx, 20*time.Millisecond); err != nil {
		return err
	}
	return s.say("after-raw")
}

// clientEcho is a request clients of the test suite answer.
func (s *script) clientEcho(ctx context.Context, params any) (result json.RawMessage, err error) {
	err = s.conn.Call(ctx, "_tspeer/client_echo", params, &result)
	return result, err
}

func (s *script) ext(ctx context.Context) error {
	result, err := s.clientEcho(ctx, map[string]string{"v": s.rest})
	if err != nil {
		return err
	}
	return s.say("ext:" + string(result))
}

func (s *script) extNote(ctx context.Context) error {
	if err := s.conn.Notify(ctx, "_tspeer/client_note", map[string]string{"v": s.rest}); err != nil {
		return err
	}
	if err := s.conn.Notify(ctx, "_tspeer/unknown_note", struct{}{}); err != nil {
		return err
	}
	return s.say("noted")
}

func (s *script) unknown(ctx context.Context) error {
	err := s.conn.Call(ctx, "_tspeer/not_implemented", struct{}{}, nil)
	if err == nil {
		return s.say("unknown:ok")
	}
	return s.say(fmt.Sprintf("unknown:%d", code(err)))
}

func (s *script) parallel(ctx context.Context) error {
	n := s.number(0, 20, 10_000)
	right := make([]bool, n)
	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() {
			result, err := s.clientEcho(ctx, map[string]int{"i": i})
			var answer struct{ Echoed struct{ I *int } }
			right[i] = err == nil && json.Unmarshal(result, &answer) == nil && answer.Echoed.I != nil && *answer.Echoed.I == i
		})
	}
	calls.Wait()
	all := true
	for _, ok := range right {
		all = all && ok
	}
	return s.say(fmt.Sprintf("parallel:%t", all))
}

// mcp calls an MCP server of the client's and says what came of it.
func (s *script) mcp(ctx context.Context) error {
	params := json.RawMessage("{}")
	if len(s.args) > 2 {
		params = json.RawMessage(strings.Join(s.args[2:], " "))
	}
	type failure struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data,omitempty"`
	}
	var report struct {
		Out  any      `json:"out"`
		Seen []string `json:"seen"`
	}
	report.Seen = []string{}
	result, err := s.Session().CallMCP(ctx, acp.MCPServerACPID(s.arg(0, "")), s.arg(1, ""), params,
		func(method string, _ json.RawMessage) { report.Seen = append(report.Seen, method) })
	var inner *acp.MCPFailure
	var outer *jsonrpc.Error
	switch {
	case errors.As(err, &inner):
		report.Out = map[string]failure{"error": {inner.Code, inner.Message, inner.Data}}
	case errors.As(err, &outer):
		report.Out = struct {
			Outer int             `json:"outer"`
			Data  json.RawMessage `json:"data,omitempty"`
		}{outer.Code, outer.Data}
	case err != nil:
		return err
	default:
		report.Out = map[string]json.RawMessage{"result": result}
	}
	return s.sayJSON(report)
}

func (s *script) mcpCancel(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	time.AfterFunc(30*time.Millisecond, cancel)
	_, err := s.Session().CallMCP(ctx, acp.MCPServerACPID(s.arg(0, "")), "tools/call", map[string]string{"name": "slow"}, nil)
	if err == nil {
		return s.say("mcpcancel:ok")
	}
	return s.say(fmt.Sprintf("mcpcancel:%d", code(err)))
}
