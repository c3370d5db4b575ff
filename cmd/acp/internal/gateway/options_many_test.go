package gateway

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/internal/long"
)

// values are those of the option of choosing.
var values = []acp.SessionConfigSelectOption{{Value: "v0", Name: "0"}, {Value: "v1", Name: "1"}, {Value: "v2", Name: "2"}, {Value: "v3", Name: "3"}}

// choosing is an agent with an option, and says "marked" at each prompt. has returns what value it has.
func choosing() (agent *acp.Agent, has func() acp.SessionConfigValueID) {
	var mu sync.Mutex
	var session *acp.AgentSession
	return &acp.Agent{
			NewSession: func(_ context.Context, s *acp.AgentSession) error {
				mu.Lock()
				defer mu.Unlock()
				session = s
				return s.SetOptions(acp.SessionConfigOption{ConfigID: "model", Name: "Model", Kind: &acp.SessionConfigSelect{
					CurrentValue: "v0", Options: acp.SessionConfigSelectOptionList(values),
				}})
			},
			Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) { return acp.StopEndTurn, t.Say(t.Text()) },
		}, func() acp.SessionConfigValueID {
			mu.Lock()
			defer mu.Unlock()
			return session.Option("model")
		}
}

// TestOptionLastWriter: of clients that set the same option at the same time the last one wins, as the agent has it: all have
// that value in the end, and so does who loads the session afterwards, also on another node.
func TestOptionLastWriter(t *testing.T) {
	versions(t, func(t *testing.T, version, agentVersion int) {
		dir := t.TempDir()
		agent, has := choosing()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // only against hanging
		defer cancel()
		here := newMember(t, dir, "a", agent)
		here.max = agentVersion
		there := newMember(t, dir, "b", agent)
		one, two, three := here.connect(version), here.connect(3-version), there.connect(version)
		s := one.new(t)
		sessions := []*acp.ClientSession{s, two.load(t, s.ID()), three.load(t, s.ID())}
		rounds := 40
		if !long.All() {
			rounds = 10
		}
		for round := range rounds {
			var setting sync.WaitGroup
			for i, by := range sessions {
				setting.Go(func() {
					v := &acp.SessionConfigOptionValueID{Value: values[(round+i)%len(values)].Value}
					if err := by.SetOption(t.Context(), "model", v); err != nil {
						t.Error(err)
					}
				})
			}
			setting.Wait()
			mark := fmt.Sprint("round ", round)
			say(t, s, mark) // which comes after all that is in the log by now
			want := has()
			for i, c := range []*client{one, two, three} {
				c.seen.until(t, "agent: "+mark)
				for sessions[i].Option("model") != want {
					if ctx.Err() != nil {
						t.Fatalf("client %d ends with %s, the agent with %s", i, sessions[i].Option("model"), want)
					}
					runtime.Gosched()
				}
			}
			if later := here.connect(version).load(t, s.ID()); later.Option("model") != want {
				t.Fatalf("a client that comes later has %s, the agent %s", later.Option("model"), want)
			}
		}
	})
}

// An overtaken place has somebody else set an option before the answer to whoever has set it.
type overtaken struct {
	place
	by func() error
}

func (o overtaken) setOption(context.Context, acp.SessionConfigID, acp.SessionConfigOptionValue) error {
	return o.by()
}

// TestOptionOvertaken: a client whose change is not in force any more when it is answered has the value in force in the end.
func TestOptionOvertaken(t *testing.T) {
	versions(t, func(t *testing.T, version, agentVersion int) {
		agent, _ := choosing()
		r := newRig(t, agent)
		r.max = agentVersion
		c := r.connect(version)
		s := c.new(t)
		gs := r.g.session(string(s.ID()))
		gs.mu.Lock()
		watchers := slices.Collect(maps.Keys(gs.watchers))
		gs.mu.Unlock()
		w := watchers[0]
		w.mu.Lock()
		w.at = overtaken{w.at, func() error {
			return w.sendOptions([]acp.SessionConfigOption{{ConfigID: "model", Name: "Model", Kind: &acp.SessionConfigSelect{
				CurrentValue: "v2", Options: acp.SessionConfigSelectOptionList(values),
			}}})
		}}
		w.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // only against hanging
		defer cancel()
		if err := s.SetOption(ctx, "model", &acp.SessionConfigOptionValueID{Value: "v1"}); err != nil {
			t.Fatal(err)
		}
		for s.Option("model") != "v2" {
			if ctx.Err() != nil {
				t.Fatalf("it ends with %s", s.Option("model"))
			}
			runtime.Gosched()
		}
	})
}
