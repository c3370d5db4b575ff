package backend

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

// An AuthError says that the agent requires a login, and how the user can log in.
type AuthError struct {
	Agent   string
	Methods []acp.AuthMethod
	Reason  string // why nothing was tried, or ""
	Err     error  // what the agent answered
	again   bool   // after a login
	said    string // the end of the agent's standard error then, or ""
}

// Error says in one line what is missing and what to do, with the command to type.
func (e *AuthError) Error() string {
	var ways []string
	others := false // methods other than variables, which can only be set elsewhere
	for _, m := range e.Methods {
		d := Describe(m)
		ways = append(ways, d.label())
		others = others || d.Kind != MethodEnv
	}
	login := "run acp auth login " + roster.Quote(e.Agent)
	switch {
	case len(ways) == 0:
		return e.Agent + " wants a login, but names no way to log in"
	case e.again:
		says := ""
		if e.said != "" {
			says = " (its standard error ends with: " + e.said + ")"
		}
		return fmt.Sprintf("%s says that the login has worked, but still wants one%s; %s to try another way", e.Agent, says, login)
	case e.Reason != "" && others:
		return fmt.Sprintf("%s wants a login: %s, or %s", e.Agent, e.Reason, login)
	case e.Reason != "":
		return fmt.Sprintf("%s wants a login: %s", e.Agent, e.Reason)
	}
	return fmt.Sprintf("%s wants a login: %s (ways: %s)", e.Agent, login, strings.Join(ways, "; "))
}

// Unwrap returns what the agent answered.
func (e *AuthError) Unwrap() error { return e.Err }

// authenticated makes a call. If the agent requires a login, it logs in and makes the call again,
// once. Calls that need a login at the same time share one.
func (h *Host) authenticated(ctx context.Context, call func() error) error {
	h.mu.Lock()
	before := h.logins
	h.mu.Unlock()
	err := call()
	if !errors.Is(err, jsonrpc.ErrAuthRequired) {
		return err
	}
	h.loggingIn.Lock()
	h.mu.Lock()
	done := h.logins != before
	h.mu.Unlock()
	if !done {
		if failed := h.loginFor(ctx, err); failed != nil {
			h.loggingIn.Unlock()
			return failed
		}
	}
	h.loggingIn.Unlock()
	if err = call(); errors.Is(err, jsonrpc.ErrAuthRequired) {
		return h.wantsAgain(err)
	}
	return err
}

// wantsAgain returns the error of an agent that requires a login after it has logged in.
func (h *Host) wantsAgain(err error) error {
	on := h.current()
	on.stderr.since(0, stderrWait)
	return &AuthError{Agent: h.name(), Methods: h.Conn().AuthMethods(), Err: err, again: true, said: on.stderr.last()}
}

// loginFor logs in with the method that is configured or chosen, because the agent answered cause.
func (h *Host) loginFor(ctx context.Context, cause error) error {
	methods := h.Conn().AuthMethods()
	fail := func(format string, args ...any) error {
		e := &AuthError{Agent: h.name(), Methods: methods, Err: cause}
		if format != "" {
			e.Reason = fmt.Sprintf(format, args...)
		}
		return e
	}
	if len(methods) == 0 {
		return fail("")
	}
	id := acp.AuthMethodID(h.cfg.Agent.Auth)
	if id == "" {
		var alone []Method // that do not need the user
		var missing []string
		for _, m := range methods {
			switch d := h.describe(m); d.Kind {
			case MethodAgent:
				alone = append(alone, d)
			case MethodEnv:
				if unset := h.unset(d); len(unset) > 0 {
					missing = append(missing, unset...)
				} else {
					alone = append(alone, d)
				}
			}
		}
		choose := h.cfg.Front.ChooseLogin
		switch {
		case len(alone) == 1 && (len(methods) == 1 || choose == nil):
			id = alone[0].ID
		case choose == nil && len(alone) == 0 && len(missing) > 0:
			return fail("set %s in the environment", strings.Join(missing, ", "))
		case choose == nil:
			return fail("")
		default:
			chosen, err := choose(ctx, h.Conn().Agent(), methods)
			if err != nil {
				return err
			}
			if chosen == "" {
				return fail("")
			}
			id = chosen
		}
		return h.login(ctx, id, cause)
	}
	// The setting names a method. What an agent describes runs only when the user has seen it.
	if i := slices.IndexFunc(methods, func(m acp.AuthMethod) bool { return Describe(m).ID == id }); i >= 0 {
		if run := h.describe(methods[i]).Command(); run != "" {
			choose := h.cfg.Front.ChooseLogin
			if choose == nil {
				return fail("%s would run %s, which needs your consent", labels(methods[i:i+1]), run)
			}
			switch chosen, err := choose(ctx, h.Conn().Agent(), methods[i:i+1]); {
			case err != nil:
				return err
			case chosen != id:
				return fail("")
			}
		}
	}
	return h.login(ctx, id, cause)
}

// Login logs in with one of the agent's methods, which may need the user. If the agent must be
// started again for that, it is, and the open sessions are resumed.
func (h *Host) Login(ctx context.Context, id acp.AuthMethodID) error {
	h.loggingIn.Lock()
	defer h.loggingIn.Unlock()
	return h.coded("login", h.login(ctx, id, nil))
}

// TryLogin opens a session, and deletes or closes it again: agents say that a login has worked when it has not. The error is an
// [*AuthError] if the agent still requires one.
func (h *Host) TryLogin(ctx context.Context) error {
	s, err := h.Conn().NewSession(ctx, acp.SessionConfig{Cwd: h.cfg.Cwd})
	switch {
	case errors.Is(err, jsonrpc.ErrAuthRequired):
		return h.coded("opening a session", h.wantsAgain(err))
	case err != nil:
		return h.coded("opening a session", err)
	}
	if s.Delete(ctx) != nil {
		_ = s.Close(ctx)
	}
	return nil
}

// Logout logs out.
func (h *Host) Logout(ctx context.Context) error {
	return h.coded("logout", h.Conn().Logout(ctx))
}

// login logs in. The caller holds loggingIn.
func (h *Host) login(ctx context.Context, id acp.AuthMethodID, cause error) error {
	methods := h.Conn().AuthMethods()
	i := slices.IndexFunc(methods, func(m acp.AuthMethod) bool { return Describe(m).ID == id })
	if i < 0 {
		return &AuthError{Agent: h.name(), Methods: methods, Err: cause, Reason: fmt.Sprintf("it has no way to log in that is called %q; it has %s", id, labels(methods))}
	}
	d := h.describe(methods[i])
	text := "logging in: " + d.label()
	if run := d.Command(); run != "" {
		text += ", which runs " + run
	}
	h.note(Note{Kind: NoteLogin, Text: text})
	fail := func(err error) error {
		return exitcode.With(exitcode.Auth, fmt.Errorf("login of %s by %s: %w", h.name(), d.label(), err))
	}
	switch d.Kind {
	case MethodTerminal:
		standard, _ := methods[i].(*acp.AuthMethodTerminal)
		if err := h.terminalLogin(ctx, standard, d.Run); err != nil {
			return fail(err)
		}
		if err := h.restart(ctx, nil); err != nil {
			return fail(err)
		}
	default:
		if d.Kind == MethodOther {
			return fail(errors.New("this program does not know how that is done"))
		}
		if d.Kind == MethodEnv {
			if missing := h.unset(d); len(missing) > 0 {
				hint := ""
				if d.Link != "" {
					hint = " (see " + d.Link + ")"
				}
				return &AuthError{Agent: h.name(), Methods: methods, Err: cause,
					Reason: fmt.Sprintf("set %s in the environment%s", strings.Join(missing, ", "), hint)}
			}
			if env := h.fresh(d); len(env) > 0 {
				if err := h.restart(ctx, env); err != nil {
					return fail(err)
				}
			}
		}
		if err := h.Conn().Login(ctx, id); err != nil {
			return fail(err)
		}
	}
	h.mu.Lock()
	h.logins++
	h.mu.Unlock()
	return nil
}

// describe is [Describe] for this host. A command that cannot be run here, because there is no terminal or the agent
// is elsewhere, does not count: the agent may log in without it.
func (h *Host) describe(m acp.AuthMethod) Method {
	d := Describe(m)
	if d.Run != nil && (h.cfg.Front.RunInTerminal == nil || h.cfg.Agent.Command == "") {
		d.Kind, d.Run = MethodAgent, nil
	}
	return d
}

func labels(methods []acp.AuthMethod) string {
	var list []string
	for _, m := range methods {
		list = append(list, Describe(m).label())
	}
	return strings.Join(list, "; ")
}

// unset returns the variables of a login that have no value.
func (h *Host) unset(d Method) (names []string) {
	for _, v := range d.Vars {
		if v.Optional || os.Getenv(v.Name) != "" || h.cfg.Agent.Env[v.Name] != "" {
			continue
		}
		names = append(names, v.Name)
	}
	return names
}

// fresh returns the variables of a login that the agent may not have been started with: a login
// shell does not know what is set here.
func (h *Host) fresh(d Method) map[string]string {
	if !h.cfg.Agent.LoginEnv {
		return nil
	}
	h.mu.Lock()
	has := h.env
	h.mu.Unlock()
	env := maps.Clone(has)
	for _, v := range d.Vars {
		if value := os.Getenv(v.Name); value != "" && h.cfg.Agent.Env[v.Name] == "" && has[v.Name] != value {
			if env == nil {
				env = map[string]string{}
			}
			env[v.Name] = value
		}
	}
	if maps.Equal(env, has) {
		return nil
	}
	return env
}

// terminalLogin runs the agent's program for a login in the user's terminal, or the command
// that the agent describes if other is not nil.
func (h *Host) terminalLogin(ctx context.Context, m *acp.AuthMethodTerminal, other *Login) error {
	run := h.cfg.Front.RunInTerminal
	if run == nil || h.cfg.Agent.Command == "" {
		return errors.New("it needs a terminal, and there is none")
	}
	t := h.cfg.Agent.Transport(h.cfg.Cwd)
	env, err := h.loginEnviron(ctx, t)
	if err != nil {
		return err
	}
	path, args := t.Path, slices.Clone(t.Args)
	if other != nil {
		path, args = other.Command, other.Args
		for _, name := range slices.Sorted(maps.Keys(other.Env)) {
			env = append(env, name+"="+other.Env[name])
		}
	} else {
		args = append(args, m.Args...)
		for _, v := range m.Env {
			env = append(env, v.Name+"="+v.Value)
		}
	}
	env = process.Unmarked(env) // a browser that a login opens is the user's, even in a process tree of another program
	if strings.ContainsAny(path, "/"+string(filepath.Separator)) && !filepath.IsAbs(path) {
		path = filepath.Join(t.Dir, path)
	}
	if path, err = process.LookPath(path, env); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = t.Dir, env
	return run(ctx, cmd)
}

// loginEnviron returns the environment of the agent itself for its program that logs in: what one
// of them finds the other must find, too.
func (h *Host) loginEnviron(ctx context.Context, t *acp.CommandTransport) ([]string, error) {
	env := os.Environ()
	switch {
	case t.LoginEnv:
		login, err := process.LoginEnv(ctx) // falls back to ours
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		env = append(login, t.Env...)
	case t.Env != nil:
		env = slices.Clone(t.Env)
	}
	h.mu.Lock()
	more := h.env
	h.mu.Unlock()
	for _, k := range slices.Sorted(maps.Keys(more)) {
		env = append(env, k+"="+more[k])
	}
	return env, nil
}

// restart starts the agent again and resumes the open sessions.
func (h *Host) restart(ctx context.Context, env map[string]string) error {
	h.opening.Lock()
	defer h.opening.Unlock()
	h.mu.Lock()
	old := h.link
	if h.closed || h.err != nil {
		err := h.err
		h.mu.Unlock()
		return errors.Join(ErrClosed, err)
	}
	if env != nil {
		h.env = env
	}
	env = h.env
	old.replaced = true // its end is not that of the host
	open := slices.Collect(maps.Values(h.sessions))
	h.mu.Unlock()
	_ = old.close() // two processes at a time might get in each other's way
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.life, cancel)()
	l, err := h.connect(ctx, env)
	if err != nil {
		h.mu.Lock()
		h.end(err)
		h.mu.Unlock()
		return err
	}
	h.mu.Lock()
	h.link = l
	ended := h.life.Err() != nil
	h.mu.Unlock()
	h.watch(l)
	if ended { // Kill knew only the previous one
		_ = l.kill()
		return ErrClosed
	}
	sort.Slice(open, func(i, j int) bool { return open[i].ID() < open[j].ID() })
	var errs []error
	for _, s := range open {
		if s.isOpened() {
			if err := h.reopen(ctx, l, s); err != nil {
				errs = append(errs, fmt.Errorf("taking up session %s again: %w", s.ID(), err))
			}
		}
	}
	return errors.Join(errs...)
}

// reopen resumes a session on another connection. If the agent does not know it any more, a new
// session takes its place.
func (h *Host) reopen(ctx context.Context, l *link, s *Session) error {
	cfg, err := h.sessionConfig(l)
	if err != nil {
		return err
	}
	cfg.Cwd = s.Cwd()
	s.anew()
	cs, how, err := l.conn.Restore(ctx, s.ID(), cfg)
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, jsonrpc.ErrAuthRequired) {
		return err
	}
	if err != nil {
		return err
	}
	if how == acp.RestoredNew {
		s.replace(ctx, cs)
	}
	s.settle()
	s.opened(cs, cfg.Cwd)
	s.journal.sync()
	return nil
}

// MissingVars returns the variables of a login that have no value.
func (h *Host) MissingVars(m Method) []string { return h.unset(m) }

// Agent returns the agent the Host was opened with.
func (h *Host) Agent() roster.Agent { return h.cfg.Agent }
