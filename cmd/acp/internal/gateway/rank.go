package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/internal/skills"
	"github.com/goacp/acp/jsonrpc"
)

// A role bounds what a prompt can cause, and not only which methods a client may call: otherwise somebody who may not
// approve would do by the text of a prompt what the methods refuse. Three things see to that:
//
//   - A command that an agent announces with a role in _meta (see [ownmeta.Ranked]) is refused to those who have less.
//   - An agent that says that it knows ranks gets the rank of the sender with each prompt, and asks about everything that
//     somebody who may not approve wants, whatever its mode is. The built-in agent does.
//   - A prompt of somebody who may not approve reaches any other agent, in a mode in which that may not ask, only after
//     somebody who may approve has allowed it.

// reasonRole is the reason of failures about what a client may not do.
const reasonRole = "role"

// rank is what the client is in the session, as a bound of what its prompts can cause.
func (w *Who) rank() string {
	switch {
	case !w.may(MayPrompt):
		return RoleViewer
	case !w.may(MayApprove):
		return RolePrompter
	case w.owns():
		return RoleOwner
	}
	return RoleApprover
}

// reaches reports whether a rank includes a role. Neither includes one that is not known, and one that is not known
// includes nothing.
func reaches(rank, role string) bool {
	i := slices.Index(shareRoles, role)
	return i >= 0 && slices.Index(shareRoles, rank) >= i
}

// allowCommand returns why a client may not send a prompt that begins with a command, or nil. Editors put texts before what
// the user has typed, so any text of the prompt may.
func (w *watcher) allowCommand(ctx context.Context, who *Who, content []acp.ContentBlock) error {
	rank := who.rank()
	var names []string
	for _, b := range content {
		if t, ok := b.(*acp.TextContent); ok {
			if name, ok := strings.CutPrefix(strings.TrimLeftFunc(t.Text, unicode.IsSpace), "/"); ok {
				if i := strings.IndexFunc(name, unicode.IsSpace); i >= 0 {
					name = name[:i]
				}
				names = append(names, name)
			}
		}
	}
	if rank == RoleOwner || len(names) == 0 && !strings.Contains(textOf(content), "/") {
		return nil
	}
	p, err := w.here(ctx)
	if err != nil {
		return err
	}
	now, err := p.greeting(ctx)
	if err != nil {
		return err
	}
	for _, c := range now.Commands {
		var name string
		var meta json.RawMessage
		used := false
		switch c := c.(type) {
		case *acp.SlashCommand:
			name, meta = c.Name, c.Meta
			used = slices.Contains(names, name)
		case *acpv2.Skill: // an agent may take them anywhere
			name, meta = c.Name, c.Meta
			used = slices.Contains(names, name) || skills.Uses(content, name)
		}
		var needs ownmeta.Ranked
		if used && ownmeta.Read(meta, &needs) && needs.Role != "" && !reaches(rank, needs.Role) {
			return who.errRole("use /" + name)
		}
	}
	return nil
}

// rankMeta is _meta of a prompt for the agent.
func (b *backend) rankMeta(t *turn) json.RawMessage {
	if !b.knowsRanks() {
		return nil
	}
	return ownmeta.Of(ownmeta.Rank{Rank: cmp.Or(t.rank, RolePrompter)})
}

// knowsRanks reports whether the agent asks about what somebody wants who may not approve.
func (b *backend) knowsRanks() bool {
	var says ownmeta.Ranks
	return ownmeta.Read(b.conn.Meta(), &says) && says.Ranks
}

// allows reports whether a prompt may reach the agent without asking anybody.
func (s *session) allows(t *turn, b *backend) bool {
	if t.agent != nil || reaches(t.rank, RoleApprover) || b.knowsRanks() {
		return true
	}
	_, asks := modeOf(b.session.Options())
	return asks
}

// allowMode returns why a prompt must not reach the agent, or nil. It may wait for somebody who may approve.
func (s *session) allowMode(t *turn, b *backend) error {
	if s.allows(t, b) {
		return nil
	}
	mode, _ := modeOf(b.session.Options())
	who := cmp.Or(t.from, t.by)
	p := &acp.Permission{
		Title: fmt.Sprintf("Let the agent answer %s in the mode %s?", who, mode),
		Description: fmt.Sprintf("%s may not approve what the agent does, and in this mode the agent may do things without asking. "+
			"The prompt: %s", who, clip(oneLine(t.content))),
		Options: []acp.PermissionOption{
			{OptionID: "allow_once", Name: "Allow", Kind: acp.PermissionOptionKindAllowOnce},
			{OptionID: "reject_once", Name: "Reject", Kind: acp.PermissionOptionKindRejectOnce},
		},
	}
	d, err := s.ask(t.ctx, b, &ask{title: p.Title, permission: p})
	if err == nil && d.Option != "allow_once" {
		err = fmt.Errorf("nobody who may approve has allowed that the agent answers %s in the mode %s, in which it may do things without asking", who, mode)
	}
	return err
}

// modesThatAsk are the modes of agents in which these ask before they change something, or change nothing; in small letters and
// without signs. Any other name may be that of a mode that asks nobody.
var modesThatAsk = []string{
	"ask", "default", "plan", "readonly", "manual", "approve", "chat", "normal", "untrusted", "onrequest", "architect",
}

// modeOf returns the mode of an agent with options, and whether it asks in it. One without modes is taken to ask: what it does
// is up to whoever has configured it.
func modeOf(options []acp.SessionConfigOption) (mode string, asks bool) {
	for _, o := range options {
		k, ok := o.Kind.(*acp.SessionConfigSelect)
		if !ok || o.Category != acp.SessionConfigOptionCategoryMode && o.ConfigID != "mode" {
			continue
		}
		mode = string(k.CurrentValue)
		short := mode[strings.LastIndexAny(mode, "/#")+1:] // some are URLs
		plain := strings.Map(func(c rune) rune {
			if !unicode.IsLetter(c) {
				return -1
			}
			return unicode.ToLower(c)
		}, short)
		if !slices.Contains(modesThatAsk, plain) {
			return mode, false
		}
	}
	return mode, true
}

// oneLine returns the texts of a prompt in one line.
func oneLine(content []acp.ContentBlock) string {
	var all []string
	for _, b := range content {
		if t, ok := b.(*acp.TextContent); ok {
			all = append(all, strings.Fields(clip(t.Text))...)
		}
	}
	return strings.Join(all, " ")
}

// A Refusal is something that a client may not do.
type Refusal struct {
	User, Device string
	Method       string
	Session      string // as the client has named it; "" if the method is about none
	Text         string // for people
	More         int    // how many like it came since the one before that was reported
}

const (
	// refusedEvery bounds how often the same refusal of a client is reported: nobody can fill the log of who did what with
	// them.
	refusedEvery = 10 * time.Second
	// maxRefusals bounds those that are remembered. If there are more all are forgotten.
	maxRefusals = 1024
)

// refusals are what was refused of late. The zero value is none.
type refusals struct {
	mu   sync.Mutex
	last map[Refusal]*refusedSince
}

type refusedSince struct {
	at   time.Time
	more int
}

// take reports whether a refusal is to be reported, and how many like it were not.
func (r *refusals) take(f Refusal) (more int, ok bool) {
	f.Session = "" // clients may make up as many as they want
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	before := r.last[f]
	if before != nil && now.Sub(before.at) < refusedEvery {
		before.more++
		return 0, false
	}
	if before != nil {
		more = before.more
	}
	if r.last == nil || len(r.last) >= maxRefusals {
		r.last = make(map[Refusal]*refusedSince)
	}
	r.last[f] = &refusedSince{at: now}
	return more, true
}

// refused reports that a client may not do something.
func (g *Gateway) refused(ctx context.Context, who *Who, method, session string, err error) {
	if g.cfg.Audit.Refused == nil {
		return
	}
	f := Refusal{User: who.User, Device: who.Name, Method: method, Session: session, Text: err.Error()}
	if more, ok := g.refusals.take(f); ok {
		f.More = more
		g.cfg.Audit.Refused(f)
	}
}

// noteRefusals is a middleware that reports what is refused to clients because of their role, whatever refuses it.
func (g *Gateway) noteRefusals(next jsonrpc.Handler) jsonrpc.Handler {
	return func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		res, err := next(ctx, r)
		if f, ok := errors.AsType[*jsonrpc.Failure](err); ok && f.Reason == reasonRole {
			who := g.who(ctx)
			g.refused(ctx, &who, r.Method, sessionIn(r.Params), f)
		}
		return res, err
	}
}

// sessionIn returns the session that the parameters of a request name, or "".
func sessionIn(params any) string {
	v := reflect.Indirect(reflect.ValueOf(params))
	if v.Kind() != reflect.Struct {
		return ""
	}
	if f := v.FieldByName("SessionID"); f.IsValid() && f.Kind() == reflect.String {
		return f.String()
	}
	return ""
}
