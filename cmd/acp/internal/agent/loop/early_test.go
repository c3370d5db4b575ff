package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/model"
)

// A hand is a model whose answers a test gives event by event.
type hand struct {
	model.Model
	answers []func(yield func(model.Event, error) bool)
}

func (h *hand) Info() model.Info { return model.Info{ID: "hand"} }

func (h *hand) Generate(context.Context, *model.Request) iter.Seq2[model.Event, error] {
	a := h.answers[0]
	h.answers = h.answers[1:]
	return a
}

func byHand(s *stage, answers ...func(yield func(model.Event, error) bool)) *Turn {
	return &Turn{Model: &hand{answers: answers}, Prefix: &model.Prefix{}, Messages: []*model.Message{{Role: model.User, Parts: said("go")}}, Host: s}
}

func wish(id, name, input string) *model.ToolUse {
	return &model.ToolUse{ID: id, Name: name, Input: json.RawMessage(input)}
}

func ended(parts ...model.Part) *model.Done {
	d := &model.Done{Reason: model.EndTurn, Message: &model.Message{Role: model.Assistant, Parts: parts}}
	for _, p := range parts {
		if _, ok := p.(*model.ToolUse); ok {
			d.Reason = model.WantsTool
		}
	}
	return d
}

func over(yield func(model.Event, error) bool) { yield(ended(&model.Text{Text: "done"}), nil) }

// TestEarly: what only reads runs while the answer still streams, each wish once, but not
// after one that changes something; and what was read is the result.
func TestEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var uses []string
		s := &stage{}
		s.use = func(_ context.Context, u *model.ToolUse) *model.ToolResult {
			s.note("use %s %s", u.Name, u.Input)
			return returned(u, "of "+string(u.Input), false)
		}
		turn := byHand(s, func(yield func(model.Event, error) bool) {
			yield(wish("a", "read", "1"), nil)
			synctest.Wait()
			uses = append(uses, s.log...)
			yield(wish("b", "read", "2"), nil)
			yield(wish("c", "write", "3"), nil)
			yield(wish("d", "read", "4"), nil)
			synctest.Wait()
			s.note("the answer ends")
			yield(ended(wish("a", "read", "1"), wish("b", "read", "2"), wish("c", "write", "3"), wish("d", "read", "4")), nil)
		}, over)
		end, err := Run(t.Context(), turn)
		if err != nil || end.Stop != Done {
			t.Fatal(end, err)
		}
		if diff := cmp.Diff([]string{"use read 1"}, uses); diff != "" {
			t.Error(diff)
		}
		want := []string{
			"use read 1", "use read 2", "the answer ends", "keep assistant [read] [read] [write] [read]", "use write 3", "use read 4",
			"keep user <result: of 1> <result: of 2> <result: of 3> <result: of 4>", "keep assistant done",
		}
		if diff := cmp.Diff(want, s.log); diff != "" {
			t.Error(diff)
		}
	})
}

// TestEarlyVoid: what began for an answer that fails in the end is cancelled, and leaves
// nothing in the conversation; what the answer asks for in the end in another way runs.
func TestEarlyVoid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{}
		s.use = func(ctx context.Context, u *model.ToolUse) *model.ToolResult {
			if string(u.Input) == "wait" {
				<-ctx.Done()
				s.note("cancelled")
			}
			return returned(u, "of "+string(u.Input), false)
		}
		_, err := Run(t.Context(), byHand(s, func(yield func(model.Event, error) bool) {
			yield(wish("a", "read", "wait"), nil)
			yield(nil, errors.New("broken"))
		}))
		if err == nil || err.Error() != "broken" {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"cancelled"}, s.log); diff != "" {
			t.Error(diff)
		}
		s.log = nil
		_, err = Run(t.Context(), byHand(s, func(yield func(model.Event, error) bool) {
			yield(wish("a", "read", "1"), nil)
			yield(ended(wish("a", "read", "2")), nil)
		}, over))
		if err != nil || s.log[1] != "keep user <result: of 2>" {
			t.Error(s.log, err)
		}
	})
}

// TestEarlyIDs: a server that counts from zero in each answer has its wishes renamed before
// anybody sees them.
func TestEarlyIDs(t *testing.T) {
	ids := map[string]int{}
	s := &stage{}
	s.use = func(_ context.Context, u *model.ToolUse) *model.ToolResult {
		s.mu.Lock()
		defer s.mu.Unlock()
		ids[u.ID]++
		return returned(u, "ok", false)
	}
	answer := func(yield func(model.Event, error) bool) {
		yield(wish("0", "read", "1"), nil)
		yield(wish("1", "read", "2"), nil)
		yield(ended(wish("0", "read", "1"), wish("1", "read", "2"), wish("1", "write", "3")), nil)
	}
	end, err := Run(t.Context(), byHand(s, answer, answer, over))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range end.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case *model.ToolUse:
				ids[p.ID] += 10
			case *model.ToolResult:
				ids[p.ID] += 100
			}
		}
	}
	for id, n := range ids {
		if n != 111 {
			t.Errorf("%s: %d", id, n)
		}
	}
	if len(ids) != 6 {
		t.Error(ids)
	}
}

// TestDrafts: inputs are passed on while they are written, and dropped with an answer that
// begins anew.
func TestDrafts(t *testing.T) {
	s := &stage{}
	_, err := Run(t.Context(), byHand(s, func(yield func(model.Event, error) bool) {
		yield(&model.ToolUseBegan{ID: "a", Name: "write"}, nil)
		yield(&model.ToolInputDelta{ID: "a", JSON: "{"}, nil)
		yield(&model.Retrying{Err: &model.Error{}, Discarded: true}, nil)
		yield(&model.ToolUseBegan{ID: "a", Name: "write"}, nil)
		yield(&model.ToolInputDelta{ID: "a", JSON: "{}"}, nil)
		yield(&model.ToolInputDelta{ID: "unknown", JSON: "{}"}, nil)
		yield(wish("a", "write", "{}"), nil)
		yield(ended(wish("a", "write", "{}")), nil)
	}, over))
	if err != nil || s.drafts != "write()write({).write()write({})."+"." {
		t.Errorf("%s, %v", s.drafts, err)
	}
}

// TestEarlyMany: no more tools run at once than the bound says, however many are asked for.
func TestEarlyMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan bool)
		s := &stage{}
		running, most := 0, 0
		s.use = func(_ context.Context, u *model.ToolUse) *model.ToolResult {
			s.mu.Lock()
			running++
			most = max(most, running)
			s.mu.Unlock()
			<-release
			s.mu.Lock()
			running--
			s.mu.Unlock()
			return returned(u, "ok", false)
		}
		var all []model.Part
		for i := range 3 * MaxParallel {
			all = append(all, wish(fmt.Sprint("w", i), "read", fmt.Sprint(i)))
		}
		go func() {
			for range all {
				synctest.Wait()
				release <- true
			}
		}()
		end, err := Run(t.Context(), byHand(s, func(yield func(model.Event, error) bool) {
			for _, u := range all {
				yield(u.(*model.ToolUse), nil)
			}
			yield(ended(all...), nil)
		}, over))
		if err != nil || most != MaxParallel || strings.Count(shown(end.Messages[1]), "ok") != len(all) {
			t.Error(most, err)
		}
	})
}
