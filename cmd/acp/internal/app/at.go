package app

import (
	"fmt"
	"os"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/remote"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// Own is the value of --at for the user's own gateway: see package own.
const Own = "own"

// AtUsage is the usage of the flag --at.
const AtUsage = "use the gateway at `WHERE`: a URL, unix:PATH, own, or the name of an agent that has a URL"

// At returns the way to the gateway that the value of --at means: a URL, unix:PATH, or the name of an
// agent whose settings have one. New sessions there get the agent of the flag --agent, by its name in the gateway.
// Errors have the exit status of wrong usage.
func (a *App) At(where string) (roster.Agent, error) {
	if err := a.notHere(); err != nil {
		return roster.Agent{}, err
	}
	all, err := a.Roster()
	if err != nil {
		return roster.Agent{}, err
	}
	if where == Own {
		return a.runningOwn()
	}
	agent, err := all.Find(where)
	switch {
	case where == "":
		err = exitcode.Errorf(exitcode.Usage, "--at is empty: write the URL of a gateway, unix:PATH, own, or the name of an agent that has a URL")
	case !roster.IsURL(where) && (err != nil || agent.URL == ""):
		var names []string
		for _, known := range all.All() {
			if remote.Is(known.URL) {
				names = append(names, known.Name)
			}
		}
		hint := "no agent has one: acp agents add NAME --url URL"
		if len(names) > 0 {
			hint = "these have one: " + strings.Join(names, ", ")
		}
		err = exitcode.Errorf(exitcode.Usage, "--at %s: that is not a URL, nor the name of an agent that has one; %s", safetext.Line(where, 200), hint)
	case err != nil:
		err = exitcode.With(exitcode.Usage, fmt.Errorf("--at: %w", err))
	case len(agent.Proxies) > 0:
		err = exitcode.Errorf(exitcode.Usage, "--at %s: that agent has proxies, which do not reach the agents in a gateway", safetext.Line(where, 200))
	case !remote.Is(agent.URL):
		err = exitcode.Errorf(exitcode.Usage, "--at %s: a gateway is reached at http(s)://, ws(s):// or unix:PATH", safetext.Line(where, 200))
	}
	if err != nil {
		return roster.Agent{}, err
	}
	agent.Gateway = true
	agent.Hosted, _ = a.Flags["agent"].(string)
	return agent, nil
}

// notHere refuses flags that are for an agent which this program starts.
func (a *App) notHere() error {
	if off, _ := a.Flags["store.off"].(bool); off {
		return exitcode.Errorf(exitcode.Usage, "a gateway keeps its sessions: --no-store cannot be combined with it")
	}
	if len(a.Proxies) > 0 {
		return exitcode.Errorf(exitcode.Usage, "--proxy does not reach an agent in a gateway: start the gateway with it, or set agents.NAME.proxies there")
	}
	for _, flag := range []string{"model.use", "model.effort"} {
		if a.Flags[flag] != nil && (flag != "model.use" || a.chosenModel() == "") {
			return exitcode.Errorf(exitcode.Usage, "--model and --effort do not reach an agent in a gateway: set the model in the settings, or by an option of the session")
		}
	}
	return nil
}

// atHint adds what to do to the error of a connection to a gateway.
func atHint(agent roster.Agent, err error) error {
	if err == nil || !agent.Gateway {
		return err
	}
	hint := ""
	switch code := exitcode.Of(err); {
	case code == exitcode.Agent && strings.Contains(err.Error(), "cannot connect"):
		hint = "acp serve starts a gateway"
	case code == exitcode.Auth:
		return exitcode.With(exitcode.Auth, fmt.Errorf("%w, or pair this machine: acp devices pair there, and acp devices join here", err))
	default:
		return err
	}
	return exitcode.With(exitcode.Of(err), fmt.Errorf("%w; %s", err, hint))
}

// Return says how to come back to a conversation in a gateway, and whether the agent works on meanwhile.
func Return(agent roster.Agent, id acp.SessionID, works bool) string {
	text := "To return to this conversation: "
	if works {
		text = "The agent works on. To return: "
	}
	argv := append(Program(os.Environ()), "attach", string(id))
	if agent.Name != Own {
		argv = append(argv, "--at", agent.Name)
	}
	return text + safetext.Line(roster.Join(argv), 500)
}
