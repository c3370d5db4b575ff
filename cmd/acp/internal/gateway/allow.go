package gateway

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/internal/sleep"
	"github.com/goacp/acp/jsonrpc"
)

// A Policy says what a user may do. Errors are for the client and say which rule or quota refuses. Its
// methods may be called from any goroutine.
type Policy interface {
	// Agent, Directory and MCPServer return why a session of the user may not have one, or nil.
	Agent(name string) error
	Directory(dir string) error
	MCPServer(server acp.MCPServer) error
	// MayUse and MayWorkIn report whether Agent and Directory would refuse something. Nothing is refused by that.
	MayUse(agent string) bool
	MayWorkIn(dir string) bool
	// Prompt returns why the user may not send a prompt now, or nil.
	Prompt() error
	// Permission answers a question of an agent of the user, or reports false: then people are asked.
	Permission(ctx context.Context, session, cwd string, req *acp.PermissionRequest) (option acp.PermissionOptionID, by string, decided bool)
	// Limits are the user's quotas. Refused reports that one has refused something.
	Limits() Limits
	Refused(reason, detail string)
}

// Limits are the quotas of a user; 0 is no limit.
type Limits struct {
	Agents   int   // that run at once, on one node
	Sessions int   // that are kept
	Bytes    int64 // of the logs of these
	Events   int   // that an agent may send in a second, over a longer time
}

// usageFor is how long a count of what a user has in the database is used. What the user's agents say meanwhile is
// added to it, on the node where they run.
const usageFor = time.Minute

// maxUsers bounds the users whose usage is remembered.
const maxUsers = 4096

// A tenancy is what the users of a gateway have here. Its zero value is ready for use.
type tenancy struct {
	lobby    lobby
	previews previews
	mu       sync.Mutex
	users    map[string]*tenant
}

// A tenant is a user of the gateway.
type tenant struct {
	agents  int // that run, or start
	usage   engine.Usage
	counted time.Time
}

// tenant returns what is known of a user. The caller holds t.mu.
func (t *tenancy) tenant(user string) *tenant {
	if t.users == nil {
		t.users = make(map[string]*tenant)
	}
	u := t.users[user]
	if u == nil {
		for name, old := range t.users {
			if len(t.users) < maxUsers {
				break
			}
			if old.agents == 0 { // it is counted again when it is needed
				delete(t.users, name)
			}
		}
		u = new(tenant)
		t.users[user] = u
	}
	return u
}

// spent adds to the logs of a user.
func (t *tenancy) spent(user string, bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if u := t.users[user]; u != nil {
		u.usage.Bytes += int64(bytes)
	}
}

// policy returns the policy of a user, or nil if there is none.
func (g *Gateway) policy(user string, groups []string) Policy {
	if g.cfg.Policy == nil {
		return nil
	}
	return g.cfg.Policy(user, groups)
}

// quota returns the refusal of a quota.
func quota(p Policy, name string, retry time.Duration, format string, args ...any) error {
	f := &jsonrpc.Failure{Message: fmt.Sprintf(format, args...), Reason: "quota." + name, RetryAfter: retry, Scope: "user"}
	p.Refused(f.Reason, f.Message)
	return f
}

// usage returns what a user has in the database.
func (g *Gateway) usage(ctx context.Context, user string) (engine.Usage, error) {
	t := &g.tenancy
	t.mu.Lock()
	u := t.tenant(user)
	usage, fresh := u.usage, time.Since(u.counted) < usageFor
	t.mu.Unlock()
	if fresh {
		return usage, nil
	}
	usage, err := g.cfg.Log.Usage(ctx, user)
	if err != nil {
		return usage, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	u = t.tenant(user)
	u.usage, u.counted = usage, time.Now()
	return usage, nil
}

// allowBytes returns why nothing may be added to the logs of a user, or nil.
func (g *Gateway) allowBytes(ctx context.Context, p Policy, user string) error {
	limit := p.Limits().Bytes
	if limit == 0 {
		return nil
	}
	u, err := g.usage(ctx, user)
	if err == nil && u.Bytes >= limit {
		err = quota(p, "log", time.Minute, "the sessions of %s have %d MiB, which is the most: delete some", user, limit>>20)
	}
	return err
}

// allowSession returns why a client may not begin a session, or nil.
func (g *Gateway) allowSession(ctx context.Context, who *Who, agent string, dirs []string, mcp []acp.MCPServer) error {
	p := g.policy(who.User, who.Groups)
	if p == nil {
		return nil
	}
	if err := p.Agent(agent); err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := p.Directory(dir); err != nil {
			return err
		}
	}
	for _, server := range mcp {
		if err := p.MCPServer(server); err != nil {
			return err
		}
	}
	if limit := p.Limits().Sessions; limit > 0 {
		// Counted anew: the number is small, and another node may have added to it.
		u, err := g.cfg.Log.Usage(ctx, who.User)
		if err != nil {
			return err
		}
		if u.Sessions >= limit {
			return quota(p, "sessions", 0, "%s has %d sessions, which is the most: delete one", who.User, limit)
		}
	}
	return g.allowBytes(ctx, p, who.User)
}

// allowPrompt returns why a client may not send a prompt to a session, or nil. paid says that the prompt was counted before.
func (g *Gateway) allowPrompt(ctx context.Context, who *Who, paid bool) error {
	p := g.policy(who.User, who.Groups)
	if p == nil {
		return nil
	}
	if !paid {
		if err := p.Prompt(); err != nil {
			return err
		}
	}
	if who.owner != who.User {
		p = g.policy(who.owner, nil)
	}
	return g.allowBytes(ctx, p, who.owner)
}

// rule returns the answer that the rules of the session's owner give to a question, or nil.
func (s *session) rule(ctx context.Context, req *acp.PermissionRequest) *decision {
	s.mu.Lock()
	info, groups := s.info, s.known.Groups
	s.mu.Unlock()
	p := s.g.policy(info.Owner, groups)
	if p == nil {
		return nil
	}
	option, by, decided := p.Permission(ctx, s.id, info.Cwd, req)
	if !decided {
		return nil
	}
	return &decision{Option: option, by: by}
}

// events returns how many updates an agent of a user may send in a second, or 0.
func (g *Gateway) events(user string, groups []string) int {
	if p := g.policy(user, groups); p != nil {
		return p.Limits().Events
	}
	return 0
}

// owner returns to whom the session belongs.
func (s *session) owner() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info.Owner
}

// A pace holds back an agent that sends more than its user's quota, over a longer time. Its zero value is ready for
// use, also by several goroutines: subagents speak at once, and share it.
type pace struct {
	mu    sync.Mutex
	at    time.Time
	spent float64 // events, less what has come back since
}

// paceBurst is for how many seconds' events an agent may send at once.
const paceBurst = 30

// wait waits until the agent may send another event, of which there are n in a second.
func (p *pace) wait(ctx context.Context, n int) {
	if n <= 0 {
		return
	}
	if over := p.spend(n); over > 0 {
		sleep.For(ctx, time.Duration(over/float64(n)*float64(time.Second)))
	}
}

// spend notes an event. It returns how many there have been too many.
func (p *pace) spend(n int) (over float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.spent = max(0, p.spent-now.Sub(p.at).Seconds()*float64(n))
	p.at = now
	p.spent++
	return p.spent - float64(n*paceBurst)
}

// A Tenant is for whom an agent is started: see [TenantOf].
type Tenant struct {
	User        string
	Groups      []string
	Directories []string // the session's; the first one is where it works
}

type tenantKey struct{}

// TenantOf returns for whom Start or Hold of a [Config] is called.
func TenantOf(ctx context.Context) (Tenant, bool) {
	t, ok := ctx.Value(tenantKey{}).(Tenant)
	return t, ok
}

func withTenant(ctx context.Context, t Tenant) context.Context {
	t.User = cmp.Or(t.User, "local")
	return context.WithValue(ctx, tenantKey{}, t)
}

// forTenant returns a context for Start and Hold.
func (s *session) forTenant(ctx context.Context, info engine.Session) context.Context {
	s.mu.Lock()
	t := Tenant{User: info.Owner, Groups: s.known.Groups, Directories: append([]string{info.Cwd}, s.known.Directories...)}
	s.mu.Unlock()
	return withTenant(ctx, t)
}
