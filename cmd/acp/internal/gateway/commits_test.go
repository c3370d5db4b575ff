package gateway

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// A committing database says what was committed in it.
type committing struct {
	engine.Database
	mu   sync.Mutex
	list []string
}

func (c *committing) did(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, what)
}

// take returns what was committed since it was called last.
func (c *committing) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.list
	c.list = nil
	return list
}

func (c *committing) Append(ctx context.Context, batches []engine.Batch) ([]bool, error) {
	for _, b := range batches {
		var kinds []string
		for _, r := range b.Records {
			kinds = append(kinds, string(r.Kind))
		}
		c.did(strings.TrimSpace(strings.Join(kinds, "+") + " " + b.State))
	}
	return c.Database.Append(ctx, batches)
}

func (c *committing) UpdateSession(ctx context.Context, s engine.Session) (bool, error) {
	c.did("session")
	return c.Database.UpdateSession(ctx, s)
}

// TestCommits: what each step of a turn costs, with an agent that outlives the gateway and is running: one commit for a prompt
// and the frame in which the agent gets it, one for a question, one for its answer and the frame in which the agent hears it,
// and one for the end.
func TestCommits(t *testing.T) {
	db := new(committing)
	got := map[string][]string{}
	agent := &acp.Agent{Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
		got["prompt"] = db.take()
		answer, err := turn.Ask(acp.Permission{Title: "May I?"})
		got["answer"] = db.take()
		if err != nil || !answer.Allowed {
			t.Errorf("%+v, %v", answer, err)
		}
		return acp.StopEndTurn, err
	}}
	dir := t.TempDir()
	a := joinedMember(t, dir, "a", logOver(t, dir, leaseOfTests, &db.Database, db), agent)
	a.max = 1
	a.g.cfg.Hold = func(context.Context, string, string) (Held, error) {
		if _, err := a.start(t.Context(), "", ""); err != nil {
			return nil, err
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		return newHolderSim(a.last, nil).attach(0), nil
	}
	s := a.connect(1, asking(func(_ context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
		got["question"] = db.take()
		return req.Allow(), nil
	})).new(t)
	for i := range 2 { // the first one gives the session a title
		db.take()
		clear(got)
		if _, err := sendOperation(t, s, "Mend the giraffes", fmt.Sprint("op-", i)).Wait(); err != nil {
			t.Fatal(err)
		}
		got["end"] = db.take()
	}
	want := map[string][]string{
		"prompt":   {"prompt+sent running"},
		"question": {"update+asked"}, // what the agent asks about was not known
		"answer":   {"decided+sent"},
		"end":      {"end idle"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
