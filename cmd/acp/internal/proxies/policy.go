package proxies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/record/hop"
	"github.com/goacp/acp/cmd/acp/internal/record/tap"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/trace"
)

// policy is the proxy that decides by rules, as acp tap does.
func policy() Kind {
	return Kind{
		Name:  "policy",
		Short: "Decide permission requests, files and terminals by rules",
		Long: `Answer the permission requests that the rules decide, and pass the others to the client.
The proxy refuses to read, write or run anything outside of the directories of the session,
or where a rule denies it, and asks the client where a rule wants that. It judges as acp tap
does, whose rules it takes. What an agent does by itself passes no proxy: use the rules of
the agent, or a sandbox, for that.

With --audit FILE you can see later why something was allowed or refused: for each decision
of the rules, and before it takes effect, the proxy appends a line of JSON to FILE, with the
time, what the agent wanted, the answer, and the rule that gave it. What looks like a secret
is masked. Only you can read the file.`,
		Example: "policy --allow 'command:go test *' --deny 'path:**/.env'",
		Flags: func(f *pflag.FlagSet) func(Env) (func() (*Running, error), error) {
			file := f.String("policy", "", "decide by the JSON policy in `FILE`")
			allow := f.StringArray("allow", nil, "allow what `RULE` matches, such as 'command:go test *' (repeatable)")
			deny := f.StringArray("deny", nil, "deny what `RULE` matches, even if it is allowed elsewhere (repeatable)")
			otherwise := f.String("default", "", "do `WHAT` with requests that no rule matches: ask, allow or deny")
			audit := f.String("audit", "", "append each decision of the rules to `FILE`, as a line of JSON")
			clear := f.Bool("no-redact", false, "keep secrets in --audit")
			return func(env Env) (func() (*Running, error), error) {
				said := config.Permissions{Policy: *file, Default: *otherwise, Allow: *allow, Deny: *deny}
				rules := config.ReadRules(said, env.Dir)
				if *otherwise != "" && *otherwise != "ask" && *otherwise != "allow" && *otherwise != "deny" {
					return nil, errDefault
				}
				if _, err := rules.Policy(); err != nil {
					return nil, err
				}
				if *clear && *audit == "" {
					return nil, errors.New("--no-redact is for --audit")
				}
				for _, w := range rules.Warnings() {
					env.note("policy", w)
				}
				return func() (*Running, error) {
					p, err := rules.Policy()
					if err != nil {
						return nil, err
					}
					if *audit == "" {
						return &Running{Proxy: newGuarded(p, nil)}, nil
					}
					log := new(tap.Audit)
					if !*clear {
						log.Redactor = new(trace.Redactor)
					}
					// Whoever asks for a log does not want decisions without it.
					if err := log.Open(env.file(*audit)); err != nil {
						return nil, fmt.Errorf("--audit: %w", err)
					}
					return &Running{Proxy: newGuarded(p, log.Write), close: func() error {
						for _, problem := range log.Close() {
							env.note("policy", problem)
						}
						return nil
					}}, nil
				}, nil
			}
		},
	}
}

var errDefault = errors.New("--default is ask, allow or deny")

// A guarded shows everything that passes to the guard of acp tap, as frames with ids of its own.
type guarded struct {
	guard *tap.Guard
	audit func(*tap.Entry) // nil without a log
	ids   atomic.Int64

	client, agent sync.Mutex // the guard sees one frame of each side at a time
}

func newGuarded(p *acphost.Policy, audit func(*tap.Entry)) *acp.Proxy {
	g := &guarded{guard: tap.NewGuard(p, acphost.TerminalCommand, audit), audit: audit}
	return &acp.Proxy{Name: "policy", Initialize: g.initialize, Request: g.request, Notify: g.notify}
}

func (g *guarded) fromClient(frame []byte) {
	g.client.Lock()
	defer g.client.Unlock()
	g.guard.FromClient(frame)
}

func (g *guarded) fromAgent(frame []byte) tap.Verdict {
	g.agent.Lock()
	defer g.agent.Unlock()
	return g.guard.FromAgent(frame)
}

func (g *guarded) initialize(ctx context.Context, in *acp.ProxyInit) error {
	id := g.ids.Add(1)
	g.fromClient(hop.Request(id, "initialize", initRequest(in)))
	err := in.Next(ctx)
	g.fromAgent(hop.Answer(id, initResult(in), err))
	return err
}

func (g *guarded) notify(ctx context.Context, m *acp.ProxyMessage, next func(context.Context) error) error {
	frame := hop.Request(0, m.Method, m.Params)
	if m.Direction == acp.ToAgent {
		g.fromClient(frame)
		return next(ctx)
	}
	if lends(m.Method) {
		if g.audit != nil {
			e := &tap.Entry{Time: time.Now(), Method: m.Method, Decision: tap.DecisionRefuse, By: tap.ByFrame, Reason: "it is not a request"}
			if m.Session != nil {
				e.Session = string(m.Session.ID())
			}
			g.audit(e)
		}
		return nil
	}
	if !g.fromAgent(frame).Pass {
		return nil // nobody waits for an answer
	}
	return next(ctx)
}

// lends reports whether a client that gets a message would use a file or run something.
func lends(method string) bool {
	return strings.HasPrefix(method, "fs/") || strings.HasPrefix(method, "terminal/")
}

func (g *guarded) request(ctx context.Context, m *acp.ProxyMessage, next func(context.Context) error) error {
	id := g.ids.Add(1)
	frame := hop.Request(id, m.Method, m.Params)
	if m.Direction == acp.ToAgent {
		g.fromClient(frame)
		err := next(ctx)
		g.fromAgent(hop.Answer(id, m.Result, err))
		return err
	}
	v := g.fromAgent(frame)
	switch {
	case v.Ask != nil:
		if err := g.ask(ctx, m, v.Ask); err != nil {
			return err
		}
	case v.Answer != nil:
		return answered(m, v.Answer)
	case !v.Pass:
		return jsonrpc.ErrInternal
	}
	err := next(ctx)
	g.fromClient(hop.Answer(id, m.Result, err))
	return err
}

// ask asks the client about a request. An error is the agent's answer.
func (g *guarded) ask(ctx context.Context, m *acp.ProxyMessage, question []byte) error {
	var q struct {
		ID     string          `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(question, &q); err != nil {
		return jsonrpc.ErrInternal
	}
	answer := map[string]any{"jsonrpc": "2.0", "id": q.ID}
	var result json.RawMessage
	var err error = jsonrpc.ErrInternal // without a session nobody can be asked, and the guard must not wait
	if m.Session != nil {
		err = m.Session.Call(ctx, acp.ToClient, q.Method, q.Params, &result)
	}
	if err != nil {
		answer["error"] = map[string]any{"code": jsonrpc.CodeInternalError, "message": "Internal error"}
	} else {
		answer["result"] = result
	}
	line, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	g.client.Lock()
	is, release, reply := g.guard.Settle(line)
	g.client.Unlock()
	switch {
	case reply != nil:
		return answered(m, reply)
	case !is || release == nil:
		return jsonrpc.ErrInternal
	}
	return nil
}

// answered answers a request with a frame of the guard's.
func answered(m *acp.ProxyMessage, frame []byte) error {
	var a struct {
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(frame, &a); err != nil {
		return err
	}
	if a.Error == nil {
		m.Result = a.Result
		return nil
	}
	said := new(jsonrpc.Error)
	if err := json.Unmarshal(a.Error, said); err != nil {
		return jsonrpc.ErrInternal
	}
	return said
}
