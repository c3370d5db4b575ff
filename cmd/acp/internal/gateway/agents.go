package gateway

import (
	"context"
	"errors"
	"slices"
	"sort"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/jsonrpc"
)

// AgentsMethod returns what a client may begin a session with.
var AgentsMethod = jsonrpc.Method[AgentsRequest, AgentsAnswer]{Name: ownmeta.Method + "agents"}

// An AgentsRequest asks for that.
type AgentsRequest struct{}

// An AgentsAnswer has what the client's user may begin a session with. It is empty for a client that may begin none.
type AgentsAnswer struct {
	Agents      []AgentChoice `json:"agents"`      // the default one first, if the user may have that
	Directories []string      `json:"directories"` // of the user's sessions, those first that were used last; without any, where the gateway runs
}

// An AgentChoice is an agent that a session can name.
type AgentChoice struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"` // for people
	Default bool   `json:"default,omitempty"`
	Missing bool   `json:"missing,omitempty"` // it is not installed on the node that was asked
}

// rank orders the agents: the default one, those that are there, the others.
func (a *AgentChoice) rank() int {
	switch {
	case a.Default:
		return 0
	case !a.Missing:
		return 1
	}
	return 2
}

const (
	// maxDirectories bounds the directories of an answer, and maxDirectorySessions the sessions that are looked at for them.
	maxDirectories       = 50
	maxDirectorySessions = 500
)

// choices serves [AgentsMethod].
func (g *Gateway) choices(ctx context.Context, _ *AgentsRequest) (*AgentsAnswer, error) {
	who := g.who(ctx)
	res := &AgentsAnswer{Agents: []AgentChoice{}, Directories: []string{}}
	if !who.may(MayPrompt) || who.Session != nil || who.User == "" {
		return res, nil
	}
	p := g.policy(who.User, who.Groups)
	for i, name := range append([]string{g.cfg.Agent}, g.cfg.Agents...) {
		if name == "" || i > 0 && name == g.cfg.Agent || who.Agent != nil && !who.Agent(name) || p != nil && !p.MayUse(name) {
			continue
		}
		res.Agents = append(res.Agents, AgentChoice{
			Name: name, Title: g.cfg.Titles[name], Default: i == 0, Missing: g.cfg.Installed != nil && !g.cfg.Installed(name),
		})
	}
	sort.SliceStable(res.Agents, func(i, j int) bool { return res.Agents[i].rank() < res.Agents[j].rank() })
	page, err := g.cfg.Log.List(ctx, engine.Query{Owner: who.User, Limit: maxDirectorySessions})
	if err != nil && !errors.Is(err, engine.ErrInvalid) { // of a user with such a name there are none
		return nil, err
	}
	for _, s := range page.Sessions {
		if len(res.Directories) == maxDirectories {
			break
		}
		if slices.Contains(res.Directories, s.Cwd) || p != nil && !p.MayWorkIn(s.Cwd) {
			continue
		}
		res.Directories = append(res.Directories, s.Cwd)
	}
	if d := g.cfg.Directory; d != "" && len(res.Directories) == 0 && (p == nil || p.MayWorkIn(d)) {
		res.Directories = append(res.Directories, d)
	}
	return res, nil
}
