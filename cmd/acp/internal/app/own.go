package app

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/launch"
	"github.com/goacp/acp/cmd/acp/internal/own"
	"github.com/goacp/acp/cmd/acp/internal/roster"
)

// ErrNoOwn is what errors wrap if no gateway of the user runs.
var ErrNoOwn = errors.New("no gateway of yours runs; acp chat --detach starts one, or acp serve")

// FindOwn returns the user's own gateway, if one runs.
func (a *App) FindOwn(ctx context.Context) (s own.Server, ok bool, err error) {
	cfg, err := a.Config()
	if err != nil {
		return s, false, err
	}
	return own.Find(ctx, cfg.Dirs.State)
}

// InOwn reports whether a conversation is open in the user's own gateway. The caller must then continue it there. by is
// the program that has it open, or "" if none has.
func (a *App) InOwn(ctx context.Context, conversation string) (there bool, by string, err error) {
	kept, err := a.Store(ctx)
	if err != nil || kept == nil {
		return false, "", err
	}
	by, open, err := kept.Owner(ctx, conversation)
	if err != nil || !open {
		return false, "", ctx.Err() // where it is not known, continuing it says why
	}
	s, ok, err := a.FindOwn(ctx)
	return ok && by == own.Who(s.PID), cmp.Or(by, "another program"), err
}

// GoesOn is [App.InOwn] for a caller that continues the conversation. If a gateway has ended and its agent still runs,
// GoesOn starts the next gateway, which takes the agent over; agent is what new sessions get there.
func (a *App) GoesOn(ctx context.Context, conversation string, agent roster.Agent) (bool, error) {
	there, by, err := a.InOwn(ctx, conversation)
	if err != nil || there || by != "" {
		return there, err
	}
	if kept, err := a.Store(ctx); err != nil || kept == nil || kept.Held(conversation) == "" {
		return false, err
	}
	_, err = a.StartOwn(ctx, agent)
	return err == nil, err
}

// isOwn reports whether an agent that is a URL is the user's own gateway, whose sessions are in the list of
// conversations.
func (a *App) isOwn(ctx context.Context, agent roster.Agent) bool {
	if agent.URL == "" {
		return false
	}
	s, ok, err := a.FindOwn(ctx)
	if err != nil || !ok || s.URL != agent.URL {
		return false
	}
	dir, err := a.Journals()
	return err == nil && dir != ""
}

// runningOwn returns the way to the user's own gateway, which must run.
func (a *App) runningOwn() (roster.Agent, error) {
	s, ok, err := a.FindOwn(context.Background())
	if err != nil {
		return roster.Agent{}, err
	}
	if !ok {
		return roster.Agent{}, exitcode.With(exitcode.Agent, ErrNoOwn)
	}
	return a.ownAt(s)
}

func (a *App) ownAt(s own.Server) (roster.Agent, error) {
	agent, err := a.At(s.URL)
	agent.Name, agent.Title = Own, "your gateway"
	return agent, err
}

// ownIdle is how long a gateway in the background stays that has nothing left to keep.
const ownIdle = "10m"

// StartOwn returns the way to the user's own gateway, which is started in the background unless one runs. agent is what new sessions get.
func (a *App) StartOwn(ctx context.Context, agent roster.Agent) (roster.Agent, error) {
	cfg, err := a.Config()
	if err != nil {
		return roster.Agent{}, err
	}
	if cfg.Store.Off {
		return roster.Agent{}, exitcode.Errorf(exitcode.Usage, "a gateway keeps its sessions, and --no-store or the setting store.off says that nothing is kept")
	}
	if err := a.notHere(); err != nil {
		return roster.Agent{}, err
	}
	program, err := os.Executable()
	if err != nil {
		return roster.Agent{}, err
	}
	args := []string{"--idle-exit", ownIdle}
	if a.ConfigFile != "" {
		file, err := filepath.Abs(a.ConfigFile)
		if err != nil {
			return roster.Agent{}, err
		}
		args = append(args, "--config", file)
	}
	s, err := own.Start(ctx, own.Config{State: cfg.Dirs.State, Program: program, Args: append(args, roster.Builtin), Environ: a.Environ})
	if err != nil {
		return roster.Agent{}, exitcode.With(exitcode.Agent, err)
	}
	way, err := a.ownAt(s)
	if err == nil {
		way.Hosted, err = a.hostedAs(agent)
	}
	return way, err
}

// hostedAs returns how an agent is named to a gateway of the user: by its name, if that is in the settings of the user, and
// otherwise by what starts it.
func (a *App) hostedAs(agent roster.Agent) (string, error) {
	switch agent.Source {
	case roster.SourceCommand, roster.SourceProject:
	default:
		return agent.Name, nil
	}
	argv := agent.Argv()
	if program := argv[0]; agent.URL == "" && !filepath.IsAbs(program) && strings.ContainsRune(program, filepath.Separator) {
		argv[0] = filepath.Join(a.Cwd, program) // the gateway runs elsewhere
	}
	if len(argv) == 1 && agent.URL == "" && !strings.ContainsRune(argv[0], filepath.Separator) { // a word would be taken for a name
		if file, ok := roster.Installed(agent); ok {
			argv[0] = file
		}
	}
	if len(agent.Proxies) == 0 {
		return roster.Join(argv), nil
	}
	// The gateway does not know the settings of the project.
	args, err := launch.Conducted(agent, a.Cwd, argv...)
	if err != nil {
		return "", err
	}
	self, err := os.Executable()
	return roster.Join(append([]string{self}, args...)), err
}
