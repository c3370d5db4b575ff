package tap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/grant"
	"github.com/goacp/acp/internal/told"
	"github.com/goacp/acp/internal/wire"
	"github.com/goacp/acp/jsonrpc"
)

// The methods that a guard decides about. It refuses unknown methods with these prefixes.
const (
	methodPermission = "session/request_permission"
	methodUpdate     = "session/update"
	prefixFiles      = "fs/"
	prefixTerminals  = "terminal/"
)

// A Guard decides what an agent may ask of a client, by a policy and by where its sessions work:
//
//   - A permission request that a rule, or the default of the policy, allows or denies it answers in
//     the client's place, as [acphost.Policy] does. What is to be asked goes to the client.
//   - Reading and writing files and starting commands it refuses where the path or the directory leads
//     out of the directories of the session, symbolic links included, or where the session is not
//     known, or where a rule denies it. Everything else goes to the client, which decides as ever.
//   - What a rule wants asked of these it asks the client, by a permission request in the agent's name,
//     and lets through once that is allowed, if it then still leads where it did. In version 1 only: in
//     version 2 there are no such calls.
//   - What could be read in two ways it refuses, and what it does not know of these methods.
//
// The client learns nothing of what was refused. Between the last look at a path and the client's use of
// it links can be changed: a client that is to be safe from that must look itself.
//
// Its methods may be called at once for either direction.
type Guard struct {
	policy  *acphost.Policy
	audit   func(*Entry)
	command func(*acpv1.CreateTerminalRequest) string

	mu        sync.Mutex
	rooms     bounded[*room]       // by session
	pending   bounded[opening]     // by the id of the client's request
	cancelled bounded[struct{}]    // sessions whose turn the client has cancelled
	version   string               // that was agreed on, "" before
	calls     bounded[*told.Calls] // what is known of tool calls, by session
	held      map[string]*held     // requests that wait for the answer to a question, by the question's id
	heldBytes int                  // that these hold
	asks      atomic.Int64         // how many are held

	flying   map[string]*inquiry // requests of the agent that the client has not answered, by the key of their ids
	confused bool                // it is unknown which requests the client's answers belong to
	granted  bounded[*grant.Set] // what the user has decided, by session
}

// NewGuard returns a guard, which owns the policy from then on. audit, unless nil, is called with
// each decision before it takes effect; command returns what a request for a terminal would run, as
// rules read it.
func NewGuard(policy *acphost.Policy, command func(*acpv1.CreateTerminalRequest) string, audit func(*Entry)) *Guard {
	if audit == nil {
		audit = func(*Entry) {}
	}
	policy.Ask = func(ctx context.Context, _ acphost.Request) (acpv2.PermissionOptionID, error) {
		if asked, ok := ctx.Value(askedKey{}).(*bool); ok {
			*asked = true
		}
		return "", nil
	}
	policy.Remember = acphost.RememberNever // what the user answers passes by
	return &Guard{
		policy: policy, audit: audit, command: command,
		rooms: bounded[*room]{most: maxSessions}, pending: bounded[opening]{most: maxPending},
		cancelled: bounded[struct{}]{most: maxSessions}, calls: bounded[*told.Calls]{most: maxTold},
		granted: bounded[*grant.Set]{most: maxDeciding},
	}
}

type askedKey struct{}

// decide returns the verdict of the policy; asked reports that the user must be asked.
func (g *Guard) decide(r acphost.Request) (d acphost.Decision, asked bool) {
	d = g.policy.Decide(context.WithValue(context.Background(), askedKey{}, &asked), r)
	return d, asked
}

// A Verdict says what happens to a frame of the agent.
type Verdict struct {
	Pass   bool   // it goes to the client, as it is
	Ask    []byte // the question to the client before the decision, without a line end; nil if there is none
	Answer []byte // the answer to the agent, without a line end; nil if there is none
	Note   string // what was done in the client's place, in a few words; "" if nothing
}

var pass = Verdict{Pass: true}

// FromAgent decides about a line that the agent wrote, without its end.
func (g *Guard) FromAgent(line []byte) Verdict {
	if isText(line) {
		return pass
	}
	line = bytes.Trim(line, " \t\r\n")
	if line[0] == '[' {
		return g.misread(&envelope{}, "batches are not let through")
	}
	e := parse(line)
	switch {
	case e.fault != "":
		return g.misread(&e, e.fault)
	case e.method == "":
		g.answered(&e)
		return pass
	case e.method == methodUpdate:
		g.update(&e)
		return pass
	}
	v, q := pass, (*inquiry)(nil)
	switch {
	case e.method == methodPermission:
		v, q = g.permission(&e)
	case strings.HasPrefix(e.method, prefixFiles), strings.HasPrefix(e.method, prefixTerminals):
		v = g.call(&e)
	}
	g.flies(&e, &v, q)
	return v
}

// misread is the verdict on what could be read in two ways.
func (g *Guard) misread(e *envelope, why string) Verdict {
	x := entry(e, DecisionRefuse, ByFrame)
	x.Reason = cut(why)
	g.audit(x)
	v := Verdict{Note: "not let through: " + x.Reason}
	if e.method != "" || e.result == nil && !e.failed {
		// Its id may be that of another reading.
		v.Answer = failure([]byte("null"), jsonrpc.ErrInvalidRequest.WithData(map[string]string{"reason": why}))
	}
	return v
}

// tooLong records that a line was too long to be examined, and returns what to report of it.
func (g *Guard) tooLong(size int64) string {
	x := entry(&envelope{}, DecisionRefuse, ByFrame)
	x.Reason = fmt.Sprintf("a line of %d bytes is longer than %d", size, maxGuarded)
	g.audit(x)
	return "not let through: " + x.Reason
}

// refuse is the verdict on what does not reach the client.
func (g *Guard) refuse(e *envelope, x *Entry, err error) Verdict {
	var answer *jsonrpc.Error
	switch {
	case errors.As(err, &answer):
	case errors.Is(err, fs.ErrNotExist):
		answer = jsonrpc.ErrResourceNotFound
	default:
		answer = jsonrpc.ErrInternal
	}
	x.Decision = DecisionRefuse
	if x.Reason == "" {
		x.Reason = cut(err.Error())
	}
	g.audit(x)
	v := Verdict{Note: e.method + " refused: " + x.Reason}
	if e.id != nil {
		v.Answer = failure(e.id, answer)
	}
	return v
}

// roomIn returns where a session works.
func (g *Guard) roomIn(session string) *room {
	g.mu.Lock()
	defer g.mu.Unlock()
	r, _ := g.rooms.get(session)
	return r
}

// call is the verdict on a call that makes the client use a file or run a command.
func (g *Guard) call(e *envelope) Verdict {
	switch e.method {
	case acpv1.MethodTerminalOutput.Name, acpv1.MethodTerminalKill.Name, acpv1.MethodTerminalRelease.Name, acpv1.MethodTerminalWaitForExit.Name:
		return pass // of a terminal that was permitted
	}
	x := entry(e, DecisionPass, ByRoots)
	r, err := g.act(e, x)
	if err != nil {
		return g.refuse(e, x, err)
	}
	return g.byRule(e, x, r)
}

// act returns what a call would do, in the words of rules and with its paths as they resolve now.
// An error is the agent's answer.
func (g *Guard) act(e *envelope, x *Entry) (acphost.Request, error) {
	switch e.method {
	case acpv1.MethodFSReadTextFile.Name:
		return g.file(e, x, "read")
	case acpv1.MethodFSWriteTextFile.Name:
		return g.file(e, x, "edit")
	case acpv1.MethodTerminalCreate.Name:
		return g.terminal(e, x)
	}
	x.Reason = "the policy does not know this method"
	return acphost.Request{}, jsonrpc.MethodNotFound(e.method)
}

// file is [Guard.act] of a file method.
func (g *Guard) file(e *envelope, x *Entry, kind string) (r acphost.Request, err error) {
	session, path := "", ""
	if fault := members(e.params, fileNames, func(name string, d *wire.Decoder) {
		switch name {
		case "sessionId":
			session = d.Str()
		case "path":
			path = d.Str()
		default:
			d.Skip()
		}
	}); fault != "" {
		return r, badParams(x, fault)
	}
	x.Session, x.Kind, x.Paths = cut(session), kind, []string{cut(path)}
	in := g.roomIn(session)
	if in == nil {
		return r, noSession(x, session)
	}
	real, err := in.files.Resolve(context.Background(), path)
	if err != nil {
		return r, err
	}
	paths := []string{path}
	if real != path {
		paths = append(paths, real)
	}
	return acphost.Request{Session: session, Title: e.method, Kind: kind, Paths: paths, Cwd: in.cwd}, nil
}

// terminal is [Guard.act] of a request for a terminal.
func (g *Guard) terminal(e *envelope, x *Entry) (r acphost.Request, err error) {
	if fault := members(e.params, terminalNames, func(_ string, d *wire.Decoder) { d.Skip() }); fault != "" {
		return r, badParams(x, fault)
	}
	var req acpv1.CreateTerminalRequest
	if err := req.UnmarshalJSON(e.params); err != nil {
		return r, badParams(x, err.Error())
	}
	session, command := string(req.SessionID), g.command(&req)
	x.Session, x.Kind, x.Command, x.Cwd = cut(session), "execute", cut(command), cut(req.Cwd)
	in := g.roomIn(session)
	if in == nil {
		return r, noSession(x, session)
	}
	cwd := in.cwd
	if req.Cwd != "" {
		if cwd, err = in.files.Resolve(context.Background(), req.Cwd); err != nil {
			return r, inMember("cwd", err)
		}
	}
	r = acphost.Request{Session: session, Title: command, Kind: "execute", Command: command, Cwd: cwd}
	return r, nil
}

// inMember returns an error about a path as one about another member.
func inMember(name string, err error) error {
	var answer *jsonrpc.Error
	if !errors.As(err, &answer) || answer.Code != jsonrpc.CodeInvalidParams {
		return err
	}
	var data struct {
		Reason string `json:"reason"`
	}
	_ = json.Unmarshal(answer.Data, &data)
	return jsonrpc.ErrInvalidParams.WithData(map[string]string{"path": "params." + name, "reason": data.Reason})
}

// byRule is the verdict on what is within the directories: rules can still deny it, or require
// asking.
func (g *Guard) byRule(e *envelope, x *Entry, r acphost.Request) Verdict {
	if err := g.denied(x, r); err != nil {
		return g.refuse(e, x, err)
	}
	if v := g.policy.Judge(r); v.Effect == acphost.EffectAsk {
		return g.question(e, x, r, v.Rule)
	}
	g.audit(x)
	return pass
}

// denied returns an error for the agent if a rule denies a call.
func (g *Guard) denied(x *Entry, r acphost.Request) error {
	r.Options = []acpv2.PermissionOption{
		{OptionID: "allow", Kind: acpv2.PermissionOptionKindAllowOnce}, {OptionID: "reject", Kind: acpv2.PermissionOptionKindRejectOnce},
	}
	d, asked := g.decide(r)
	if asked || d.Effect != acphost.EffectDeny || d.By != acphost.ByRule {
		return nil
	}
	x.By, x.Rule, x.Reason = string(d.By), cut(d.Rule), "denied by "+cut(d.Rule)
	data := map[string]string{"reason": "denied by a rule"}
	return jsonrpc.Errorf(jsonrpc.CodeInternalError, "Permission denied").WithData(data)
}

func badParams(x *Entry, why string) error {
	x.Reason = cut("params: " + why)
	return jsonrpc.ErrInvalidParams.WithData(map[string]string{"path": "params", "reason": why})
}

func noSession(x *Entry, session string) error {
	x.Reason = "there is no such session"
	return jsonrpc.ErrResourceNotFound.WithData(map[string]string{"sessionId": session})
}

// failure returns an answer with an error.
func failure(id []byte, err *jsonrpc.Error) []byte {
	b := append(append([]byte(`{"jsonrpc":"2.0","id":`), id...), `,"error":`...)
	b, e := err.AppendJSON(b)
	if e != nil {
		return nil
	}
	return append(b, '}')
}

// success returns an answer with a result.
func success(id []byte, result interface{ AppendJSON([]byte) ([]byte, error) }) []byte {
	b := append(append([]byte(`{"jsonrpc":"2.0","id":`), id...), `,"result":`...)
	b, err := result.AppendJSON(b)
	if err != nil {
		return nil
	}
	return append(b, '}')
}

// Entry is a line of the audit log: a decision of a [Guard].
type Entry struct {
	Time   time.Time `json:"time"`
	Method string    `json:"method,omitempty"`
	// Decision is "allow" or "deny" for a permission request that was answered, "ask" for one that
	// went to the client, "pass" for a call that went there, and "refuse" for one that did not.
	Decision string `json:"decision"`
	// By is what decided: "rule", "default", "roots", "user", "cancelled", or "frame" if it could not be read.
	By     string `json:"by"`
	Rule   string `json:"rule,omitempty"`   // its name
	Reason string `json:"reason,omitempty"` // why it was refused

	Session    string `json:"session,omitempty"`
	ToolCallID string `json:"toolCallId,omitempty"`
	ToolName   string `json:"toolName,omitempty"`
	Title      string `json:"title,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Command    string `json:"command,omitempty"` // what would be run
	// Shown is the command that the agent shows if it is uncertain what would be run;
	// CommandUnknown says that it shows none.
	Shown          string   `json:"shown,omitempty"`
	CommandUnknown bool     `json:"commandUnknown,omitempty"`
	Cwd            string   `json:"cwd,omitempty"`
	Paths          []string `json:"paths,omitempty"` // 64 of them at most
	OptionID       string   `json:"optionId,omitempty"`
	OptionKind     string   `json:"optionKind,omitempty"`
}

// The decisions, and who makes them if not the policy.
const (
	DecisionAllow  = "allow"
	DecisionDeny   = "deny"
	DecisionAsk    = "ask"
	DecisionPass   = "pass"
	DecisionRefuse = "refuse"

	ByRoots     = "roots"
	ByFrame     = "frame"
	ByCancelled = "cancelled"
	ByUser      = "user" // the answer to a question of the guard's
)

// Bounds of an entry.
const (
	maxEntryText  = 4 << 10 // bytes
	maxEntryPaths = 64
)

func entry(e *envelope, decision, by string) *Entry {
	return &Entry{Time: time.Now(), Method: cut(e.method), Decision: decision, By: by}
}

func cut(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxEntryText)], "\uFFFD") }
