package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// A received update is one of version 1 as a client was sent it, and the record before it.
type received struct {
	cursor uint64
	update string
}

// receives has a client of version 1 keep what it is sent.
func receives(mu *sync.Mutex, all *[]received, news *notice) func(*acp.Client) {
	return func(c *acp.Client) {
		c.Update = func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
			var m map[string]struct{ Cursor uint64 }
			if u.Synthetic || u.V1 == nil || json.Unmarshal(u.V1.Meta, &m) != nil || m[metaKey].Cursor == 0 {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			*all = append(*all, received{m[metaKey].Cursor, string(encode(struct {
				U acpv1.SessionUpdate
			}{u.V1.Update}))})
			news.give()
		}
	}
}

// TestResumedTranslation: a client of version 1 that resumes a session in the middle of a turn is sent what one that has
// stayed is sent from there on: its calls and terminals continue, and no message comes twice.
func TestResumedTranslation(t *testing.T) {
	goOn := make(chan struct{})
	reached := make(chan struct{})
	agent := &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		output := func(i int) *acp.TerminalOutputChunk {
			return &acp.TerminalOutputChunk{TerminalID: "t", Data: fmt.Sprintf("dGljay%dh", i)}
		}
		said := []acp.SessionUpdate{
			&acp.AgentMessageChunk{MessageID: "m", Content: acp.Text("I'll ")},
			&acp.AgentMessageChunk{MessageID: "m", Content: acp.Text("count.")},
			&acp.ToolCallUpdate{ToolCallID: "c", Title: acp.Set("Count"), Kind: acp.Set(acp.ToolKindExecute), Status: acp.Set(acp.ToolCallStatusPending)},
			&acp.TerminalUpdate{TerminalID: "t", Command: acp.Set("count")},
			&acp.ToolCallUpdate{ToolCallID: "c", Status: acp.Set(acp.ToolCallStatusInProgress), Content: acp.Set([]acp.ToolCallContent{&acp.TerminalContent{TerminalID: "t"}})},
			output(1), output(2),
			&acp.AgentMessage{MessageID: "m", Content: acp.Set([]acp.ContentBlock{acp.Text("I'll count. Now.")})},
			output(3),
			&acp.ToolCallUpdate{ToolCallID: "c", Status: acp.Set(acp.ToolCallStatusCompleted)},
			&acp.ToolCallUpdate{ToolCallID: "d", Title: acp.Set("Other")},
		}
		for _, u := range said {
			if err := t.Send(u); err != nil {
				return "", err
			}
		}
		reached <- struct{}{}
		<-goOn
		for _, u := range []acp.SessionUpdate{output(4), &acp.ToolCallUpdate{ToolCallID: "d", Status: acp.Set(acp.ToolCallStatusFailed)}, &acp.AgentMessageChunk{MessageID: "end", Content: acp.Text("end")}} {
			if err := t.Send(u); err != nil {
				return "", err
			}
		}
		return acp.StopEndTurn, nil
	}}
	r := newRig(t, agent)
	r.max = 2
	var mu sync.Mutex
	var news notice
	var stayed []received
	s := r.connect(1, receives(&mu, &stayed, &news)).new(t)
	reply := s.Prompt(t.Context(), acp.Text("go"))
	<-reached
	until := func(is func() bool) { // called with mu held
		t.Helper()
		for !is() {
			changed := news.wait()
			mu.Unlock()
			select {
			case <-changed:
			case <-t.Context().Done():
				t.Fatal("it was not sent everything")
			}
			mu.Lock()
		}
	}
	mu.Lock()
	until(func() bool { return len(stayed) > 0 && strings.Contains(stayed[len(stayed)-1].update, "Other") })
	mu.Unlock()
	type visit struct {
		cursor uint64
		got    []received
	}
	last := logOf(t, r, s.ID())
	begin := slices.IndexFunc(last, func(r engine.Record) bool { return r.Kind == kindPrompt })
	visits := make([]visit, len(last)-begin)
	for i := range visits {
		v := &visits[i]
		v.cursor = uint64(begin + i + 1)
		c := r.connect(1, receives(&mu, &v.got, &news))
		meta := fmt.Appendf(nil, `{%q:{"cursor":%d}}`, metaKey, v.cursor)
		if _, err := c.conn.Resume(t.Context(), s.ID(), acp.SessionConfig{Cwd: "/project", Meta: meta}); err != nil {
			t.Fatal(err)
		}
	}
	close(goOn)
	if _, err := reply.Wait(); err != nil {
		t.Fatal(err)
	}
	// A title, for one, may come behind the last message.
	upToEnd := func(all []received) []received {
		return all[:slices.IndexFunc(all, func(u received) bool { return strings.Contains(u.update, `"end"`) })+1]
	}
	for i := range visits {
		v := &visits[i]
		mu.Lock()
		until(func() bool { return len(upToEnd(stayed)) > 0 && len(upToEnd(v.got)) > 0 })
		want := slices.DeleteFunc(slices.Clone(upToEnd(stayed)), func(u received) bool { return u.cursor < v.cursor })
		if diff := cmp.Diff(want, upToEnd(v.got), cmp.AllowUnexported(received{})); diff != "" {
			t.Errorf("resumed after %d (-one that has stayed +this one):\n%s", v.cursor, diff)
		}
		mu.Unlock()
	}
}
