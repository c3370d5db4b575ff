package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// choosy returns an agent with options, and what it was asked about them. It says that before if it has session/options, and
// refuses the mode "never".
func choosy(previews bool) (agent *acp.Agent, asked *seen) {
	var mu sync.Mutex
	asked = new(seen)
	options := func() []acp.SessionConfigOption {
		list := acp.SessionConfigSelectOptionList{{Value: "ask", Name: "Ask"}, {Value: "code", Name: "Code"}, {Value: "never", Name: "Never"}}
		return []acp.SessionConfigOption{
			{ConfigID: "manner", Name: "Manner", Category: acp.SessionConfigOptionCategoryMode, Kind: &acp.SessionConfigSelect{CurrentValue: "ask", Options: list}},
			{ConfigID: "web", Name: "Web", Kind: &acp.SessionConfigBoolean{}},
		}
	}
	agent = talking(nil)
	agent.NewSession = func(_ context.Context, s *acp.AgentSession) error {
		mu.Lock()
		defer mu.Unlock()
		asked.add(fmt.Sprintf("new, %d initial", len(s.InitialOptions())))
		return s.SetOptions(options()...)
	}
	agent.ForkSession = func(_ context.Context, s *acp.AgentSession, _ acp.SessionID) error {
		asked.add(fmt.Sprintf("fork, %d initial", len(s.InitialOptions())))
		return s.SetOptions(options()...)
	}
	agent.SetOption = func(_ context.Context, _ *acp.AgentSession, id acp.SessionConfigID, v acp.SessionConfigOptionValue) error {
		if v, ok := v.(*acpv2.SessionConfigOptionValueID); ok && v.Value == "never" {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "never")
		}
		return nil
	}
	if previews {
		agent.SessionOptions = func(_ context.Context, _ *acp.AgentConn, q *acp.OptionsQuery) (*acp.OptionsPreview, error) {
			asked.add("options in " + q.Cwd)
			return &acp.OptionsPreview{ConfigOptions: options()}, nil
		}
	}
	return agent, asked
}

// initial are values for options.
func initial(mode acp.SessionConfigValueID) []acp.InitialOption {
	return []acp.InitialOption{
		{ConfigID: "manner", Value: &acpv2.SessionConfigOptionValueID{Value: mode}},
		{ConfigID: "web", Value: &acpv2.SessionConfigOptionValueBoolean{Value: true}},
	}
}

// eachPreview calls f for each version of the client and of the agent, with agents that have session/options and without.
func eachPreview(t *testing.T, f func(t *testing.T, r *rig, asked *seen, version int, previews bool)) {
	for client := 1; client <= 2; client++ {
		for version := 1; version <= 2; version++ {
			for _, previews := range []bool{true, false} {
				t.Run(fmt.Sprintf("client %d, agent %d, %t", client, version, previews), func(t *testing.T) {
					agent, asked := choosy(previews)
					r := newRig(t, agent)
					r.max = version
					f(t, r, asked, client, previews)
				})
			}
		}
	}
}

// TestInitialOptions: the values that a client wants a session to begin with reach the agent with the request, if it takes
// such values, and otherwise afterwards. An option whose value the agent refuses keeps its value, and the client learns why.
func TestInitialOptions(t *testing.T) {
	eachPreview(t, func(t *testing.T, r *rig, asked *seen, version int, previews bool) {
		c := r.connect(version)
		s, err := c.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/project", Options: initial("code")})
		if err != nil {
			t.Fatal(err)
		}
		if s.Mode() != "code" || !s.OptionOn("web") || len(s.RejectedOptions()) > 0 {
			t.Errorf("mode %q, web %t, %v", s.Mode(), s.OptionOn("web"), s.RejectedOptions())
		}
		fork, err := c.conn.Fork(t.Context(), s.ID(), acp.SessionConfig{Cwd: "/project", Options: initial("never")})
		if err != nil {
			t.Fatal(err)
		}
		if fork.Mode() != "ask" || !fork.OptionOn("web") || len(fork.RejectedOptions()) != 1 || !strings.Contains(fork.RejectedOptions()[0].Err.Error(), "never") {
			t.Errorf("fork: mode %q, web %t, %v", fork.Mode(), fork.OptionOn("web"), fork.RejectedOptions())
		}
		want := []string{"new, 2 initial", "fork, 2 initial"}
		if !previews {
			want = []string{"new, 0 initial", "fork, 0 initial"}
		}
		if diff := cmp.Diff(want, asked.take()); diff != "" {
			t.Error(diff)
		}
		later := r.connect(version)
		if mode := later.load(t, s.ID()).Mode(); mode != "code" {
			t.Errorf("who comes later sees mode %q", mode)
		}
		back, err := r.connect(version).conn.Load(t.Context(), s.ID(), acp.SessionConfig{Cwd: "/project", Options: initial("ask")})
		if err != nil {
			t.Fatal(err)
		}
		if back.Mode() != "ask" || len(back.RejectedOptions()) > 0 {
			t.Errorf("brought back in mode %q, %v", back.Mode(), back.RejectedOptions())
		}
	})
}

// TestSessionOptions: what a session would begin with is said without one: by the session, or by an agent that runs in that
// directory, or one that is started for it and ends.
func TestSessionOptions(t *testing.T) {
	eachPreview(t, func(t *testing.T, r *rig, asked *seen, version int, previews bool) {
		c := r.connect(version)
		p, err := c.conn.SessionOptions(t.Context(), acp.OptionsQuery{Cwd: "/project"})
		if previews {
			if err != nil || len(p.ConfigOptions) != 2 {
				t.Errorf("%v, %v", p, err)
			}
			if diff := cmp.Diff([]string{"options in /project"}, asked.take()); diff != "" {
				t.Error(diff)
			}
		} else if err != nil || len(p.ConfigOptions) > 0 { // the gateway has said that it answers this
			t.Errorf("of an agent that does not know: %v, %v", p, err)
		}
		if n := len(r.g.all()); n > 0 {
			t.Errorf("%d sessions", n)
		}
		s, err := c.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/project", Options: initial("code")})
		if err != nil {
			t.Fatal(err)
		}
		before := r.starts.Load()
		p, err = c.conn.SessionOptions(t.Context(), acp.OptionsQuery{Cwd: "/project", SessionID: s.ID()})
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(p.ConfigOptions, func(o acp.SessionConfigOption) bool { return o.ConfigID == "manner" })
		if at < 0 || p.ConfigOptions[at].Kind.(*acp.SessionConfigSelect).CurrentValue != "code" {
			t.Errorf("%v", p.ConfigOptions)
		}
		if _, err := c.conn.SessionOptions(t.Context(), acp.OptionsQuery{Cwd: "/project", SessionID: "nope"}); !acp.IsSessionNotFound(err) {
			t.Errorf("of an unknown session: %v", err)
		}
		if p, err = c.conn.SessionOptions(t.Context(), acp.OptionsQuery{Cwd: "/project"}); err != nil || (len(p.ConfigOptions) == 2) != previews {
			t.Errorf("of the agent that runs: %v, %v", p, err)
		}
		if r.starts.Load() != before {
			t.Error("an agent was started although one runs")
		}
	})
}

// TestPreviewEndsNobody: no agent is stopped for one that is asked for its options, however idle it is, nor does anybody who
// waits for a place lose it.
func TestPreviewEndsNobody(t *testing.T) {
	agent, _ := choosy(true)
	r := newRig(t, agent)
	r.g.cfg.MaxAgents = 1
	c := r.connect(2)
	s := c.new(t)
	say(t, s, "hello")
	refused := func() {
		t.Helper()
		_, err := c.conn.SessionOptions(t.Context(), acp.OptionsQuery{Cwd: "/elsewhere"})
		if f, ok := errors.AsType[*acp.Failure](err); !ok || f.Reason != "agents" || f.RetryAfter == 0 {
			t.Errorf("%v", err)
		}
	}
	refused()
	if n := r.starts.Load(); n != 1 {
		t.Errorf("%d agents were started", n)
	}
	gs := r.g.session(string(s.ID()))
	gs.mu.Lock()
	if gs.agent == nil {
		t.Error("the idle agent has ended")
	}
	gs.mu.Unlock()
	r.g.cfg.MaxAgents = 2
	leave, err := r.g.tenancy.lobby.enter(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	refused()
	leave()
	if p, err := c.conn.SessionOptions(t.Context(), acp.OptionsQuery{Cwd: "/elsewhere"}); err != nil || len(p.ConfigOptions) != 2 {
		t.Errorf("%v, %v", p, err)
	}
}

// TestPreviewsOfOneClient: for one client one agent at a time is started to be asked, and so many requests wait for that. Others
// do not.
func TestPreviewsOfOneClient(t *testing.T) {
	agent, _ := choosy(true)
	asked, goOn := make(chan string, 2*maxOwnPreviews), make(chan struct{})
	tell := agent.SessionOptions
	agent.SessionOptions = func(ctx context.Context, c *acp.AgentConn, q *acp.OptionsQuery) (*acp.OptionsPreview, error) {
		asked <- q.Cwd
		<-goOn
		return tell(ctx, c, q)
	}
	r := newRig(t, agent)
	one, other := r.connect(2), r.connect(1)
	answers := make(chan error, 2*maxOwnPreviews)
	ask := func(c *client, cwd string) {
		go func() {
			_, err := c.conn.SessionOptions(t.Context(), acp.OptionsQuery{Cwd: cwd})
			answers <- err
		}()
	}
	for i := range maxOwnPreviews + 3 {
		ask(one, fmt.Sprintf("/%d", i))
	}
	for range 3 { // only these are answered
		if f, ok := errors.AsType[*acp.Failure](<-answers); !ok || f.Reason != "busy" {
			t.Errorf("%v", f)
		}
	}
	<-asked
	ask(other, "/other")
	if cwd := <-asked; cwd != "/other" {
		t.Errorf("a second agent is asked in %s", cwd)
	}
	close(goOn)
	for range maxOwnPreviews + 1 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}

// TestPreviewsKept: what an agent has said that was started for it is the answer for some time, of the same question of the same
// user.
func TestPreviewsKept(t *testing.T) {
	agent, asked := choosy(true)
	r := newRig(t, agent)
	user := "anna"
	r.g.cfg.Who = func(context.Context) Who { return Who{User: user, Rights: MayPrompt} }
	c := r.connect(2)
	ask := func(q acp.OptionsQuery, want int) {
		t.Helper()
		if p, err := c.conn.SessionOptions(t.Context(), q); err != nil || len(p.ConfigOptions) != 2 {
			t.Fatalf("%v, %v", p, err)
		}
		if got := len(asked.take()); got != want {
			t.Errorf("%d agents were asked by now, want %d", got, want)
		}
	}
	here := acp.OptionsQuery{Cwd: "/project"}
	ask(here, 1)
	ask(here, 1)
	ask(acp.OptionsQuery{Cwd: "/other"}, 2)
	user = "bert"
	ask(here, 3)
	user = "anna"
	ask(here, 3)
	r.g.tenancy.previews.mu.Lock()
	for i := range r.g.tenancy.previews.kept {
		r.g.tenancy.previews.kept[i].at = time.Now().Add(-2 * previewKept)
	}
	r.g.tenancy.previews.mu.Unlock()
	ask(here, 4)
	for i := range maxPreviews + 3 {
		r.g.tenancy.previews.keep(fmt.Sprint(i), &acp.OptionsPreview{})
	}
	r.g.tenancy.previews.keep("large", &acp.OptionsPreview{ConfigOptions: []acp.SessionConfigOption{{ConfigID: "x", Name: strings.Repeat("x", maxPreview), Kind: &acp.SessionConfigBoolean{}}}})
	if n := len(r.g.tenancy.previews.kept); n != maxPreviews || r.g.tenancy.previews.known("large") != nil || r.g.tenancy.previews.known(fmt.Sprint(maxPreviews)) == nil {
		t.Errorf("%d answers are kept", n)
	}
}

// TestOptionsOfOthers: who may not change options begins no session with others, and who may not begin sessions has no agent
// started.
func TestOptionsOfOthers(t *testing.T) {
	agent, asked := choosy(true)
	r := newRig(t, agent)
	can := Who{User: "anna", Rights: MayPrompt}
	r.g.cfg.Who = func(context.Context) Who { return can }
	c := r.connect(2)
	s, err := c.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/project", Options: initial("code")})
	if err != nil {
		t.Fatal(err)
	}
	if s.Mode() != "ask" || len(s.RejectedOptions()) != 2 {
		t.Errorf("mode %q, %v", s.Mode(), s.RejectedOptions())
	}
	can.Rights = 0
	if _, err := c.conn.SessionOptions(t.Context(), acp.OptionsQuery{Cwd: "/project"}); err == nil {
		t.Error("a viewer has an agent started")
	}
	if diff := cmp.Diff([]string{"new, 0 initial"}, asked.take()); diff != "" {
		t.Error(diff)
	}
}

// TestOptionsKept: when an agent is started again that takes initial values, its session has the options that it had, also if
// the agent has forgotten it. Another agent's begins as that has it.
func TestOptionsKept(t *testing.T) {
	eachPreview(t, func(t *testing.T, r *rig, _ *seen, version int, previews bool) {
		c := r.connect(version)
		s, err := c.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/project", Options: initial("code")})
		if err != nil {
			t.Fatal(err)
		}
		r.stopAgent(s.ID())
		say(t, s, "hello")
		later := r.connect(version).load(t, s.ID())
		if kept := later.Mode() == "code" && later.OptionOn("web"); kept != previews {
			t.Errorf("mode %q, web %t", later.Mode(), later.OptionOn("web"))
		}
	})
}
