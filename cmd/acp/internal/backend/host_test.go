//go:build unix

package backend

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/internal/logtest"
	"github.com/goacp/acp/transcript"
)

// TestTurn: what an agent says is in the store, and told, when the prompt returns.
func TestTurn(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		agent := &acp.Agent{
			Info: acp.Implementation{Name: "fake", Version: "1"},
			Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
				for _, word := range []string{"one ", "two ", "three"} {
					if err := turn.Say(word); err != nil {
						return "", err
					}
				}
				return acp.StopEndTurn, nil
			},
		}
		cfg := config(t, version, agent)
		cfg.Store = openStore(t, filepath.Join(t.TempDir(), "kept"))
		var mu sync.Mutex
		var told strings.Builder
		cfg.Front.Changed = func(s *Session, changes []transcript.Change) {
			mu.Lock()
			defer mu.Unlock()
			for _, ch := range changes {
				if m, ok := s.Snapshot().Entry(ch.Seq).(*transcript.Message); ok && ch.Op != transcript.OpSession && m.Role == transcript.RoleAgent {
					told.WriteString(ch.Text)
				}
			}
		}
		h := open(t, cfg)
		s, err := h.NewSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := h.Conn().Version(); got != version {
			t.Fatalf("version %d", got)
		}
		if l, err := cfg.Store.List(t.Context(), store.Query{}); err != nil || len(l) != 0 {
			t.Errorf("a session nothing was said in is in the store: %v, %v", l, err)
		}
		res, err := s.Prompt(t.Context(), acp.Text("count"))
		if err != nil || res.StopReason != acp.StopEndTurn {
			t.Fatalf("Prompt: %v, %v", res, err)
		}
		mu.Lock()
		if told.String() != "one two three" {
			t.Errorf("told %q", told.String())
		}
		mu.Unlock()
		snap, _, err := cfg.Store.Snapshot(t.Context(), s.journal.conversationID(), transcript.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for name, got := range map[string]*transcript.Snapshot{"stored": snap, "shown": s.Snapshot()} {
			if got := strings.Join(messages(got), "|"); got != "user: count|agent: one two three" {
				t.Errorf("%s: %s", name, got)
			}
		}
		kept, err := cfg.Store.Session(t.Context(), s.journal.conversationID())
		if err != nil || kept.Turns != 1 || kept.Cwd != cfg.Cwd || kept.Protocol != version {
			t.Errorf("kept %+v, %v", kept, err)
		}
		if err := h.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := h.Err(); !errors.Is(err, ErrClosed) {
			t.Errorf("Err: %v", err)
		}
	})
}

// TestPermission: questions are written down before they are shown, and answers are.
func TestPermission(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		agent := &acp.Agent{
			Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
				call := turn.ToolCall(acp.ToolCall{Title: "edit it", Kind: acp.ToolKindEdit, Locations: []acp.ToolCallLocation{{Path: "/x/y"}}})
				d, err := call.Ask(acp.Permission{Options: []acp.PermissionOption{
					{OptionID: "y", Name: "Yes", Kind: acp.PermissionOptionKindAllowOnce},
					{OptionID: "n", Name: "No", Kind: acp.PermissionOptionKindRejectOnce},
				}})
				if err != nil {
					return "", err
				}
				return acp.StopEndTurn, turn.Say("chosen " + string(d.Option.OptionID))
			},
		}
		cfg := config(t, version, agent)
		cfg.Store = openStore(t, filepath.Join(t.TempDir(), "kept"))
		var recs []acphost.Record
		cfg.Front.Ask = func(ctx context.Context, s *Session, req acphost.Request) (acp.PermissionOptionID, error) {
			snap, _, err := cfg.Store.Snapshot(ctx, s.journal.conversationID(), transcript.Config{})
			if err != nil {
				return "", err
			}
			for e := range snap.Entries() {
				if p, ok := e.(*transcript.Permission); ok && p.Outcome == nil {
					return req.Allow(), nil
				}
			}
			return "", errors.New("not in the store yet")
		}
		cfg.Front.Decided = func(_ *Session, rec acphost.Record, _ acphost.Request) { recs = append(recs, rec) }
		h := open(t, cfg)
		s, err := h.NewSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Prompt(t.Context(), acp.Text("go")); err != nil {
			t.Fatal(err)
		}
		if got := s.Snapshot().Text(); got != "chosen y" {
			t.Errorf("the agent: %q", got)
		}
		if len(recs) != 1 || recs[0].Effect != acphost.EffectAllow || recs[0].OptionID != "y" {
			t.Errorf("records %+v", recs)
		}
		stored, _, err := cfg.Store.Snapshot(t.Context(), s.journal.conversationID(), transcript.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for e := range stored.Entries() {
			if p, ok := e.(*transcript.Permission); ok {
				if o, ok := p.Outcome.(*acpv2.SelectedPermissionOutcome); !ok || o.OptionID != "y" {
					t.Errorf("outcome %#v", p.Outcome)
				}
			}
		}
	})
}

// TestBig: a message of 20 MB is complete in the conversation and in the store, in pieces and in one.
func TestBig(t *testing.T) {
	const size = 20 << 20
	piece := strings.Repeat("0123456789abcde\n", 4<<10)
	for _, whole := range []bool{false, true} {
		t.Run(map[bool]string{false: "pieces", true: "one"}[whole], func(t *testing.T) {
			agent := &acp.Agent{Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
				text := piece
				if whole {
					text = strings.Repeat(piece, size/len(piece))
				}
				for sent := 0; sent < size; sent += len(text) {
					if err := turn.Say(text); err != nil {
						return "", err
					}
				}
				return acp.StopEndTurn, turn.Say("the end")
			}}
			cfg := config(t, 0, agent)
			cfg.Store = openStore(t, filepath.Join(t.TempDir(), "kept"))
			h := open(t, cfg)
			s, err := h.NewSession(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Prompt(t.Context(), acp.Text("go")); err != nil {
				t.Fatal(err)
			}
			stored, _, err := cfg.Store.Snapshot(t.Context(), s.journal.conversationID(), store.Bounds())
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Repeat(piece, size/len(piece)) + "the end"
			for _, snap := range []*transcript.Snapshot{stored, s.Snapshot()} {
				if got := snap.Text(); got != want {
					t.Errorf("%d bytes of %d are there", len(got), len(want))
				}
				if loss := snap.Loss(); loss != (transcript.Loss{}) {
					t.Errorf("lost %+v", loss)
				}
			}
		})
	}
}

// TestBuiltInRefuses: an agent in this program that refuses is not waited for.
func TestBuiltInRefuses(t *testing.T) {
	for _, tt := range []struct {
		name  string
		agent *acp.Agent
		code  exitcode.Code
	}{
		{"hook", &acp.Agent{
			Prompt:     func(context.Context, *acp.Turn) (acp.StopReason, error) { return acp.StopEndTurn, nil },
			Initialize: func(context.Context, *acp.AgentConn) (json.RawMessage, error) { return nil, errors.New("no") },
			Logger:     logtest.New(t),
		}, exitcode.Protocol},
		{"version", &acp.Agent{
			Prompt:     func(context.Context, *acp.Turn) (acp.StopReason, error) { return acp.StopEndTurn, nil },
			MinVersion: 2,
		}, exitcode.Protocol},
		{"useless", &acp.Agent{}, exitcode.Agent},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := config(t, map[string]int{"version": 1}[tt.name], tt.agent)
				begin := time.Now()
				h, err := Open(t.Context(), cfg)
				if err == nil {
					_ = h.Close()
					t.Fatal("it opened")
				}
				if took := time.Since(begin); took != 0 || exitcode.Of(err) != tt.code {
					t.Errorf("after %v: %d, %v", took, exitcode.Of(err), err)
				}
			})
		})
	}
}
