package conformance

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/goacp/acp/trace"
)

// DefaultTimeout is how long a step waits for the peer, unless
// [Options.Timeout] says otherwise.
const DefaultTimeout = 10 * time.Second

// Options say what is checked and how. The zero value checks everything stable.
type Options struct {
	// Versions of the protocol to check, 1 and 2 if it is empty. Rules of a
	// version that the peer does not speak are skipped.
	Versions []int
	// Only and Skip select rules by id, by a prefix that ends at a slash, or by
	// a pattern of package path, such as "agent/*/unknown-*". An empty Only
	// selects all; Skip wins.
	Only, Skip []string
	// Timeout is how long a step waits for the peer, [DefaultTimeout] if it is
	// 0. Times in scenarios change in proportion.
	Timeout time.Duration
	// Prompts are the texts that make the agent do what a scenario is about, by
	// purpose: see [Purposes]. Scenarios of other purposes remain unseen. In a
	// text, {file} stands for the path of the file the scenario is about. Agents
	// that follow the script of our test suites need none.
	Prompts map[string]string
	// Experimental adds the rules about what only drafts have.
	Experimental bool
	// Cwd is the directory of sessions, an absolute path in the agent's terms.
	// It is "/" if it is empty.
	Cwd string
	// NewCwd, unless it is nil, is called in place of Cwd for each group of trials that share
	// a connection, and returns a directory that no other group has used. With Jobs above 1,
	// several goroutines call it at a time. [CheckServer] calls it once, before it tries the
	// first rule.
	NewCwd func() (string, error)
	// Jobs is the number of trials that [CheckAgent] runs at a time, at most [MaxJobs]. 0 means 1.
	// If Record is set, trials run one at a time whatever Jobs says, because a recording contains
	// one conversation after another. With Jobs above 1, several goroutines call the function that
	// connects to the agent at a time. Up to Jobs connections are open at a time, and up to twice
	// as many while agents are restarted. Jobs does not change the order of the results, nor the
	// results of an agent that works the same whether or not other connections are open. The
	// other checks run one trial at a time.
	Jobs int
	// Login is the id of the method to log in with, for agents that want that.
	Login string
	// Logout says that signing out is tried, too. What one has signed in with may be lost.
	Logout bool
	// Patience is how long a client may take to initialize or to send a prompt,
	// for clients whose user is a person. If it is 0 that is Timeout, and a
	// client that has had its turn is started again rather than waited for.
	Patience time.Duration
	// MCPProbe starts an MCP server for the transport "stdio" or "http". Rules
	// about connecting to one are unseen if it is nil. With Jobs above 1, several
	// goroutines call it at a time.
	MCPProbe func(ctx context.Context, transport string) (*MCPProbe, error)
	// Apart plays each scenario on a connection, or for clients in a turn, of
	// its own.
	Apart bool

	// OnResult is called with each result as soon as it and those before it are
	// known, and with those of observed rules at the end. The goroutines that run
	// trials call it, one at a time and while a lock is held: a call that blocks
	// holds up all trials.
	OnResult func(*Result)
	// Record is called with every frame that passes, one at a time. It must not
	// keep data or block.
	Record func(dir trace.Direction, data []byte)

	catalog *catalog // the rules; nil for the embedded ones
}

func (o *Options) timeout() time.Duration {
	if o.Timeout > 0 {
		return o.Timeout
	}
	return DefaultTimeout
}

// jobs returns how many trials of a side may run at a time.
func (o *Options) jobs(side Side) int {
	if side != Agent || o.Record != nil {
		return 1
	}
	return min(max(o.Jobs, 1), MaxJobs)
}

func (o *Options) versions() []int {
	if len(o.Versions) == 0 {
		return []int{1, 2}
	}
	return o.Versions
}

func (o *Options) cwd() string {
	if o.Cwd == "" {
		return "/"
	}
	return o.Cwd
}

// newCwd returns the directory of sessions of a group of trials.
func (o *Options) newCwd() (string, error) {
	if o.NewCwd == nil {
		return o.cwd(), nil
	}
	dir, err := o.NewCwd()
	if err != nil {
		return "", broken("there is no directory for sessions: %s", clip(err.Error(), 300))
	}
	return dir, nil
}

// wants reports whether the rule is among those to be checked.
func (o *Options) wants(r *Rule) bool {
	if r.Experimental && !o.Experimental {
		return false
	}
	named := func(list []string) bool {
		return slices.ContainsFunc(list, func(pattern string) bool { return Names(pattern, r.ID) })
	}
	return (len(o.Only) == 0 || named(o.Only)) && !named(o.Skip)
}

// Names reports whether a pattern, as in [Options.Only], is about the rule of an
// id.
func Names(pattern, id string) bool {
	if pattern == id {
		return true
	}
	n := len(pattern)
	if n > 0 && len(id) > n && id[:n] == pattern && (pattern[n-1] == '/' || id[n] == '/') {
		return true
	}
	if !strings.ContainsAny(pattern, `*?[\`) {
		return false
	}
	ok, err := path.Match(pattern, id)
	return err == nil && ok
}
