package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/internal/long"
)

// whoForm is a form with one field.
var whoForm = acp.FormRequest{Message: "Who are you?", Schema: acp.ElicitationSchema{
	Properties: []acpv2.ElicitationProperty{{Name: "name", Schema: &acpv2.StringPropertySchema{Title: "Name"}}}, Required: []string{"name"},
}}

// filled is what an agent hears, as text.
func filled(accepted, declined bool, content map[string]json.RawMessage) string {
	return fmt.Sprint(accepted, " ", declined, " ", string(content["name"]))
}

// inquiring is an agent that asks who somebody is, and says what it hears. It fails if the log has another decision when it
// hears of one, or none.
func inquiring(r *rig) *acp.Agent {
	return &acp.Agent{Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
		answer, err := t.Elicit(whoForm)
		if err != nil {
			return "", err
		}
		heard := filled(answer.Accepted, answer.Declined, answer.Content)
		page, err := r.log.List(ctx, engine.Query{Limit: 1})
		if err != nil {
			return "", err
		}
		var last records.Asked
		var kept records.Decided
		if err := r.log.Read(ctx, page.Sessions[0].ID, 0, func(rec engine.Record) error {
			switch rec.Kind {
			case kindAsk:
				return json.Unmarshal(rec.Data, &last)
			case kindAnswer:
				return json.Unmarshal(rec.Data, &kept)
			}
			return nil
		}); err != nil {
			return "", err
		}
		d := decision{Accepted: answer.Accepted, Declined: answer.Declined}
		if kept.ID != last.ID || kept.Outcome != d.outcome() {
			return "", fmt.Errorf("heard %q, but %q is kept of %s, which was not %s", heard, kept.Outcome, kept.ID, last.ID)
		}
		return acp.StopEndTurn, t.Say(heard)
	}}
}

func formRig(t *testing.T) *rig {
	r := newRig(t, nil)
	r.agent = inquiring(r)
	return r
}

// filling is a client whose forms are filled in by fill.
func filling(fill func(ctx context.Context, req *acp.ElicitationRequest) (*acp.ElicitationResponse, error)) func(*acp.Client) {
	return func(c *acp.Client) { c.Elicit, c.Elicits = fill, acp.ElicitationKinds{Form: true} }
}

func callMe(name string) *acp.ElicitationResponse {
	return acp.AcceptElicitation(map[string]json.RawMessage{"name": json.RawMessage(`"` + name + `"`)})
}

// answering waits until so many clients have been asked what is open, and so many of them may still answer.
func answering(r *rig, id acp.SessionID, asked, left int) {
	gs := r.g.session(string(id))
	for {
		gs.mu.Lock()
		n, may := 0, 0
		for _, a := range gs.asks {
			may = a.asked
			for w := range gs.watchers {
				w.mu.Lock()
				if w.asked[a] {
					n++
				}
				w.mu.Unlock()
			}
		}
		gs.mu.Unlock()
		if n == asked && may == left {
			return
		}
		runtime.Gosched()
	}
}

// TestForm: everybody who may answer and can show forms is asked, one answer counts and is kept before the agent hears it, and
// the others' forms are withdrawn. Who comes while a form is open is asked, too, and decides nothing if it cannot show it.
func TestForm(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		r := formRig(t)
		r.max = agent
		var mu sync.Mutex
		now := Who{User: local, Rights: MayPrompt | MayApprove}
		r.g.cfg.Who = func(context.Context) Who {
			mu.Lock()
			defer mu.Unlock()
			return now
		}
		asked, withdrawn := make(chan *acp.ElicitationRequest, 4), make(chan struct{}, 4)
		wait := filling(func(ctx context.Context, req *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
			asked <- req
			<-ctx.Done()
			withdrawn <- struct{}{}
			return nil, ctx.Err()
		})
		a, b := r.connect(version, wait), r.connect(3-version, wait)
		s := a.new(t)
		b.load(t, s.ID())
		mu.Lock()
		now.Rights &^= MayApprove
		mu.Unlock()
		looksOn := false
		r.connect(version, filling(func(context.Context, *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
			mu.Lock()
			defer mu.Unlock()
			looksOn = true
			return callMe("nobody"), nil
		})).load(t, s.ID())
		mu.Lock()
		now.Rights |= MayApprove
		mu.Unlock()
		reply := s.Prompt(t.Context(), acp.Text("x"))
		for range 2 {
			req := <-asked
			if req.Message != whoForm.Message || req.Form == nil {
				t.Errorf("%+v", req)
			} else if diff := cmp.Diff(whoForm.Schema, *req.Form); diff != "" {
				t.Error(diff)
			}
		}
		r.connect(version).load(t, s.ID()) // without forms
		answering(r, s.ID(), 3, 2)
		r.connect(3-version, filling(func(context.Context, *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
			return callMe("Ann"), nil
		})).load(t, s.ID())
		if text, _, err := reply.Text(); err != nil || text != `true false "Ann"` {
			t.Error(text, err)
		}
		<-withdrawn
		<-withdrawn
		mu.Lock()
		defer mu.Unlock()
		if looksOn || len(asked) > 0 {
			t.Errorf("somebody who may not answer was asked (%v), or somebody twice (%d)", looksOn, len(asked))
		}
	})
}

// TestFormRace: of forms that come back at the same time exactly one counts, with what is filled in there, and the log has
// one decision for each question.
func TestFormRace(t *testing.T) {
	rounds := 100
	if !long.All() {
		rounds = 10
	}
	r := formRig(t)
	var first *acp.ClientSession
	want := []string{"false true "}
	for i := range 5 {
		name := fmt.Sprint("client ", i)
		want = append(want, filled(true, false, map[string]json.RawMessage{"name": json.RawMessage(`"` + name + `"`)}))
		c := r.connect(1+i%2, filling(func(context.Context, *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
			if i == 4 {
				return acp.DeclineElicitation(), nil
			}
			return callMe(name), nil
		}))
		if first == nil {
			first = c.new(t)
		} else {
			c.load(t, first.ID())
		}
	}
	var heard, decided []string
	for range rounds {
		text, _, err := first.Prompt(t.Context(), acp.Text("x")).Text()
		if err != nil || !slices.Contains(want, text) {
			t.Fatal(text, err)
		}
		heard = append(heard, map[bool]string{true: "accepted", false: "declined"}[strings.HasPrefix(text, "true")])
	}
	err := r.log.Read(t.Context(), string(first.ID()), 0, func(rec engine.Record) error {
		if rec.Kind == kindAnswer {
			var a records.Decided
			if err := json.Unmarshal(rec.Data, &a); err != nil {
				return err
			}
			decided = append(decided, string(a.Outcome))
		}
		return nil
	})
	if err != nil || !cmp.Equal(heard, decided) {
		t.Error(err, cmp.Diff(decided, heard))
	}
}

// TestFormElsewhere: clients of another node are asked, too: one of them answers, and the others' forms are withdrawn.
func TestFormElsewhere(t *testing.T) {
	dir := t.TempDir()
	owner := newMember(t, dir, "a", nil)
	owner.agent = inquiring(owner.rig)
	other := newMember(t, dir, "b", talking(nil))
	asked, withdrawn := make(chan struct{}, 4), make(chan struct{}, 4)
	wait := filling(func(ctx context.Context, _ *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
		asked <- struct{}{}
		<-ctx.Done()
		withdrawn <- struct{}{}
		return nil, ctx.Err()
	})
	s := owner.connect(1, wait).new(t)
	other.connect(1, wait).load(t, s.ID())
	other.connect(2, wait).load(t, s.ID())
	reply := s.Prompt(t.Context(), acp.Text("x"))
	for range 3 {
		<-asked
	}
	other.connect(2, filling(func(_ context.Context, req *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
		if diff := cmp.Diff(&whoForm.Schema, req.Form); diff != "" {
			t.Error(diff)
		}
		return callMe("Ann"), nil
	})).load(t, s.ID())
	if text, _, err := reply.Text(); err != nil || text != `true false "Ann"` {
		t.Error(text, err)
	}
	for range 3 {
		<-withdrawn
	}
}

// TestFormAskedAgain: a client that comes back is asked again, and one that has dismissed a form is not: the others decide.
func TestFormAskedAgain(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		r := formRig(t)
		r.max = agent
		asked, dismiss := make(chan struct{}, 8), make(chan struct{})
		never := filling(func(ctx context.Context, _ *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
			asked <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		author := r.connect(3-version, filling(func(context.Context, *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
			asked <- struct{}{}
			<-dismiss
			return acp.CancelElicitation(), nil
		}))
		s := author.new(t)
		c := r.connect(version, never)
		c.load(t, s.ID())
		reply := s.Prompt(t.Context(), acp.Text("x"))
		<-asked
		for range 2 {
			<-asked
			_ = c.conn.Close()
			c = r.connect(version, never)
			c.load(t, s.ID())
		}
		<-asked
		close(dismiss)
		answering(r, s.ID(), 2, 1)
		r.connect(version, filling(func(context.Context, *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
			return acp.DeclineElicitation(), nil
		})).load(t, s.ID())
		if text, _, err := reply.Text(); err != nil || text != "false true " {
			t.Error(text, err)
		}
		if len(asked) > 0 {
			t.Error("somebody was asked again")
		}
	})
}

// TestFormTooLarge: an answer that cannot be kept decides nothing: another client may answer, and if there is none the agent
// does not wait for one.
func TestFormTooLarge(t *testing.T) {
	for _, others := range []bool{false, true} {
		r := formRig(t)
		asked := make(chan struct{})
		s := r.connect(1, filling(func(context.Context, *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
			if others {
				<-asked
			}
			return callMe(strings.Repeat("x", engine.MaxValue)), nil
		})).new(t)
		want := "false false "
		if others {
			r.connect(2, filling(func(context.Context, *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
				close(asked)
				answering(r, s.ID(), 2, 1) // the other answer has come
				return callMe("Ann"), nil
			})).load(t, s.ID())
			want = `true false "Ann"`
		}
		if text, _, err := s.Prompt(t.Context(), acp.Text("x")).Text(); err != nil || text != want {
			t.Errorf("others %v: %q, %v", others, text, err)
		}
		r.close()
	}
}
