// Package policy decides what the users of a gateway may do: which agents they may use, in which
// directories, with which MCP servers, what their agents may do without asking, and how much of everything.
// It knows nothing of sessions: the gateway asks it.
package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/shellline"
	"github.com/goacp/acp/jsonrpc"
)

// The quotas of a user where the settings have 0.
const (
	LiveAgents       = 4
	Sessions         = 500
	LogMiB           = 2048
	PromptsPerMinute = 60
	EventsPerSecond  = 100
)

// Everybody is the name of the rights of users and groups that have none of their own.
const Everybody = "*"

// nothing, as the only entry of a list, permits nothing.
const nothing = "none"

// Options say where a policy holds.
type Options struct {
	// Many says that there are several users. Then directories must be named, and all users have
	// quotas; otherwise only those that are set.
	Many bool
	// Private are directories of the server itself, such as those with its database. No session may work
	// in one, nor in a directory that one is in.
	Private []string
	// Refused is called with what was refused, at most once in ten seconds for each user and reason; nil
	// discards it. It may be called from any goroutine.
	Refused func(user, reason, detail string)
}

// A Set has the policies of all users. Its methods may be called from any goroutine. There is nothing to
// close.
type Set struct {
	cfg     config.Serve
	options Options

	mu    sync.Mutex
	users map[string]*meter // by the name of the user
}

// maxMeters bounds the users that are remembered. Those of whom nothing has been heard for longest are
// forgotten; their rates begin anew.
const maxMeters = 4096

// New returns the policies of settings. An error says which setting is wrong.
func New(cfg config.Serve, o Options) (*Set, error) {
	s := &Set{cfg: cfg, options: o, users: make(map[string]*meter)}
	for i, dir := range o.Private {
		s.options.Private[i] = resolved(dir)
	}
	for _, part := range []struct {
		name string
		all  map[string]config.Rights
	}{{"users", cfg.Users}, {"groups", cfg.Groups}} {
		for name, r := range part.all {
			if err := check(r); err != nil {
				return nil, fmt.Errorf("serve.%s.%s: %w", part.name, name, err)
			}
		}
	}
	return s, nil
}

// check returns what is wrong with rights.
func check(r config.Rights) error {
	for _, dir := range r.Directories {
		if dir != nothing && !filepath.IsAbs(dir) {
			return fmt.Errorf("the directory %q is not absolute", dir)
		}
	}
	for _, n := range []int{r.LiveAgents, r.Sessions, r.LogMiB, r.Prompts, r.Events} {
		if n < 0 {
			return errors.New("a quota is negative")
		}
	}
	_, err := rules(r)
	return err
}

// rules returns the permission rules, those that deny first.
func rules(r config.Rights) (*acphost.Policy, error) {
	p, err := config.ReadRules(config.Permissions{Default: cmp.Or(r.Default, string(acphost.EffectAsk)), Allow: r.Allow, Deny: r.Deny}, "").Policy()
	if err != nil {
		return nil, err
	}
	p.Commands = shellline.Parser{}
	return p, nil
}

// User returns the policy of a user who is in groups. Rights under the user's own name count alone. Without
// them those of all the user's groups are combined: what one of them permits is permitted, what one of them
// denies by a rule is denied, and the largest quota counts. Without these it is what everybody has.
func (s *Set) User(name string, groups []string) *Policy {
	r, ok := s.cfg.Users[name]
	if !ok {
		for _, g := range slices.Sorted(slices.Values(groups)) {
			if of, has := s.cfg.Groups[g]; has {
				if !ok {
					r = of
				} else {
					r = combined(r, of)
				}
				ok = true
			}
		}
	}
	if !ok {
		r, ok = s.cfg.Users[Everybody]
	}
	if !ok {
		r = s.cfg.Groups[Everybody]
	}
	p := &Policy{set: s, user: name, rights: r}
	p.rules, _ = rules(r) // they were checked
	return p
}

// combined returns what either of two rights permits.
func combined(a, b config.Rights) config.Rights {
	either := func(a, b []string) []string {
		switch {
		case len(a) == 0 || len(b) == 0:
			return nil // everything
		case slices.Equal(a, []string{nothing}):
			return b
		case slices.Equal(b, []string{nothing}):
			return a
		}
		return slices.Concat(a, b)
	}
	most := func(a, b, def int) int { return max(cmp.Or(a, def), cmp.Or(b, def)) }
	r := a
	r.Agents, r.MCP = either(a.Agents, b.Agents), either(a.MCP, b.MCP)
	// No directories may mean none: they are only added up.
	r.Directories = slices.Concat(a.Directories, b.Directories)
	if len(r.Directories) > 1 {
		r.Directories = slices.DeleteFunc(r.Directories, func(d string) bool { return d == nothing })
	}
	r.Allow, r.Deny = slices.Concat(a.Allow, b.Allow), slices.Concat(a.Deny, b.Deny)
	if a.Default != b.Default { // the more careful one
		order := []string{"deny", "ask", "", "allow"}
		r.Default = order[min(slices.Index(order, a.Default), slices.Index(order, b.Default))]
	}
	r.LiveAgents, r.Sessions = most(a.LiveAgents, b.LiveAgents, LiveAgents), most(a.Sessions, b.Sessions, Sessions)
	r.LogMiB, r.Prompts = most(a.LogMiB, b.LogMiB, LogMiB), most(a.Prompts, b.Prompts, PromptsPerMinute)
	r.Events = most(a.Events, b.Events, EventsPerSecond)
	r.Env = maps.Clone(a.Env)
	for k, v := range b.Env {
		if r.Env == nil {
			r.Env = make(map[string]string)
		}
		r.Env[k] = v
	}
	return r
}

// A Policy is what one user may do. Its methods may be called from any goroutine. Errors are
// [*jsonrpc.Failure], with a reason, for the client.
type Policy struct {
	set    *Set
	user   string
	rights config.Rights
	rules  *acphost.Policy
}

// refuse returns the error of something that is refused, and reports it.
func (p *Policy) refuse(reason string, retry time.Duration, format string, args ...any) error {
	f := &jsonrpc.Failure{Message: fmt.Sprintf(format, args...), Reason: reason, RetryAfter: retry, Scope: "user"}
	p.Refused(reason, f.Message)
	return f
}

// Refused reports that something was refused.
func (p *Policy) Refused(reason, detail string) {
	if report := p.set.options.Refused; report != nil && p.set.meter(p.user).report(reason) {
		report(p.user, reason, detail)
	}
}

// permits reports whether a list has a name. A list without entries has all.
func permits(list []string, name string) bool {
	return len(list) == 0 || slices.Contains(list, name)
}

// Agent returns why the user may not use an agent, or nil.
func (p *Policy) Agent(name string) error {
	if p.MayUse(name) {
		return nil
	}
	return p.refuse("policy.agent", 0, "%s may not use the agent %s", p.user, name)
}

// MayUse reports whether the user may use an agent.
func (p *Policy) MayUse(agent string) bool { return permits(p.rights.Agents, agent) }

// Names reports whether the rights of the user name an agent, rather than permit all.
func (p *Policy) Names(agent string) bool { return slices.Contains(p.rights.Agents, agent) }

// Directory returns why no session of the user may work in a directory, or nil. Links are followed. A
// directory that does not exist is permitted by its parents.
func (p *Policy) Directory(dir string) error {
	if why := p.notIn(dir); why != "" {
		return p.refuse("policy.directory", 0, "%s", why)
	}
	return nil
}

// MayWorkIn reports whether sessions of the user may work in a directory.
func (p *Policy) MayWorkIn(dir string) bool { return p.notIn(dir) == "" }

// notIn returns why no session of the user may work in a directory, or "".
func (p *Policy) notIn(dir string) string {
	if !filepath.IsAbs(dir) {
		return "the directory is not absolute"
	}
	real := resolved(dir)
	for _, private := range p.set.options.Private {
		if within(private, real) || p.set.options.Many && within(real, private) {
			if p.set.options.Many { // others learn nothing about where these are
				return fmt.Sprintf("%s may not work in the directory %s", p.user, dir)
			}
			return fmt.Sprintf("the directory %s has files of the server", dir)
		}
	}
	if len(p.rights.Directories) == 0 && !p.set.options.Many {
		return ""
	}
	for _, allowed := range p.rights.Directories {
		if allowed != nothing && within(resolved(allowed), real) {
			return ""
		}
	}
	return fmt.Sprintf("%s may not work in the directory %s", p.user, dir)
}

// resolved returns a path without links, or "" for a link that leads nowhere: where it will lead nobody
// knows. What does not exist yet is as it is written.
func resolved(path string) string {
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if _, err := os.Lstat(path); err == nil {
		return ""
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	if parent = resolved(parent); parent == "" {
		return ""
	}
	return filepath.Join(parent, filepath.Base(path))
}

// within reports whether a path is a directory or in it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return dir != "" && path != "" && err == nil && filepath.IsLocal(rel)
}

// Limits are the quotas of the user; 0 is no limit.
type Limits struct {
	Agents, Sessions int
	Bytes            int64 // of logs
	Events           int   // in a second
}

// Limits returns the quotas.
func (p *Policy) Limits() Limits {
	r := &p.rights
	return Limits{
		Agents: p.quota(r.LiveAgents, LiveAgents), Sessions: p.quota(r.Sessions, Sessions),
		Bytes: int64(p.quota(r.LogMiB, LogMiB)) << 20, Events: p.quota(r.Events, EventsPerSecond),
	}
}

// quota returns a quota. A single user has those that are set only.
func (p *Policy) quota(set, def int) int {
	if set == 0 && !p.set.options.Many {
		return 0
	}
	return cmp.Or(set, def)
}

// Prompt returns why the user may not send a prompt now, or nil.
func (p *Policy) Prompt() error {
	n := p.quota(p.rights.Prompts, PromptsPerMinute)
	if n == 0 {
		return nil
	}
	if wait := p.set.meter(p.user).take(n, time.Minute); wait > 0 {
		return p.refuse("quota.prompts", wait, "%s may send %d prompts in a minute", p.user, n)
	}
	return nil
}

// Env returns the variables of the user's agents, as the settings have them.
func (p *Policy) Env() map[string]string { return p.rights.Env }

// Permission decides a permission request of an agent of the user. It reports false if users are to decide.
func (p *Policy) Permission(ctx context.Context, session, cwd string, req *acp.PermissionRequest) (option acp.PermissionOptionID, by string, decided bool) {
	d := p.rules.Decide(ctx, acphost.RequestIn(session, cwd, req))
	switch d.By {
	case acphost.ByRule, acphost.ByDefault:
	default:
		return "", "", false // the rules say: ask
	}
	if d.Option != nil {
		option = d.Option.OptionID
	}
	return option, "policy: " + cmp.Or(d.Rule, "default") + ": " + string(d.Effect), true
}
