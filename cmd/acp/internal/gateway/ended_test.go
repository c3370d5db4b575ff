package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

// ending describes an update as describe does, with all that is said of the end of a turn.
func ending(u *acp.Update) string {
	idle, ok := u.Update.(*acp.IdleStateUpdate)
	if !ok || u.Synthetic || idle.StopReason == "" {
		return describe(u)
	}
	var said history.End
	ownmeta.Read(idle.Meta, &said)
	text := "end: " + string(idle.StopReason)
	if idle.Error != nil {
		text += ": " + idle.Error.Message
	}
	if said.By != "" {
		text += ", by " + said.By
	}
	return text
}

// seesEnds makes a client see how turns have ended.
func seesEnds(s *seen) func(*acp.Client) {
	return func(c *acp.Client) {
		c.Update = func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
			if text := ending(u); text != "" {
				s.add(text)
			}
		}
	}
}

// TestEnds: how a turn has ended, and who has stopped it, is part of what clients of both versions are sent that watch, load
// or resume the session, of its history, and of lists.
func TestEnds(t *testing.T) {
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprintf("version %d", version), func(t *testing.T) {
			r := newRig(t, &acp.Agent{Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
				switch strings.TrimSuffix(t.Text(), " again") {
				case "fail":
					return "", &jsonrpc.Failure{Code: -32050, Message: "too busy", Reason: "overloaded"}
				case "wait":
					_ = t.Say(strings.Replace(t.Text(), "wait", "waiting", 1))
					<-ctx.Done()
					return "", ctx.Err()
				case "long":
					return acp.StopMaxTokens, nil
				}
				return acp.StopEndTurn, nil
			}})
			r.g.cfg.Who = func(context.Context) Who { return Who{User: local, Name: "laptop", Rights: MayPrompt | MayApprove} }
			state := func(c *client) string {
				for info, err := range c.conn.ListSessions(t.Context(), acp.ListOptions{}) {
					if err != nil {
						t.Fatal(err)
					}
					var said struct{ State string }
					ownmeta.Read(info.Meta, &said)
					return said.State
				}
				return ""
			}
			c := r.connect(version)
			s := c.new(t)
			live := new(seen)
			other := r.connect(version, seesEnds(live)).load(t, s.ID())
			say(t, s, "well")
			if got := state(c); got != "idle" {
				t.Errorf("a session that is done is %q", got)
			}
			if _, err := s.Prompt(t.Context(), acp.Text("fail")).Wait(); err == nil || strings.Contains(err.Error(), "-32050") {
				t.Errorf("it failed with %v", err)
			}
			if got := state(c); got != "failed" {
				t.Errorf("a session that failed is %q", got)
			}
			ctx, cancel := context.WithCancel(t.Context())
			reply := s.Prompt(ctx, acp.Text("wait"))
			c.seen.until(t, "agent: waiting")
			cancel()
			_, _ = reply.Wait()
			if got := state(c); got != "stopped" {
				t.Errorf("a session that was stopped is %q", got)
			}
			reply = s.Prompt(t.Context(), acp.Text("wait again"))
			live.until(t, "agent: waiting again")
			if err := other.Cancel(t.Context()); err != nil {
				t.Error(err)
			}
			res, err := reply.Wait()
			if err != nil || res.StopReason != acp.StopCancelled || version > 1 && !strings.Contains(string(res.Meta), `"by":"laptop"`) {
				t.Errorf("stopped by another client: %+v, %v", res, err)
			}
			say(t, s, "long")
			say(t, s, "last")

			want := []string{
				"user: well", "end: end_turn", "user: fail", "end: error: too busy", "user: wait", "agent: waiting",
				"end: cancelled, by laptop",
				"user: wait again", "agent: waiting again", "end: cancelled, by laptop", "user: long", "end: max_tokens", "user: last", "end: end_turn",
			}
			last := "end: end_turn"
			if version == 1 {
				want = []string{
					"user: well", "user: fail", "agent: The turn failed: too busy.", "user: wait", "agent: waiting", "agent: Cancelled by laptop.",
					"user: wait again", "agent: waiting again", "agent: Cancelled by laptop.", "user: long", "agent: The agent stopped at its limit of tokens.", "user: last",
				}
				last = "user: last"
			}
			live.until(t, "user: last")
			if got := live.until(t, last); version == 1 && !cmp.Equal(got, want) {
				t.Errorf("live: %q", got)
			}
			loaded := new(seen)
			again := r.connect(version, seesEnds(loaded))
			again.load(t, s.ID())
			if got := loaded.take(); !cmp.Equal(got, want) {
				t.Errorf("loaded: %s", cmp.Diff(want, got))
			}
			resumed := new(seen)
			back := r.connect(version, seesEnds(resumed))
			meta := json.RawMessage(fmt.Sprintf(`{%q:{"cursor":0}}`, metaKey))
			if _, err := back.conn.Resume(t.Context(), s.ID(), acp.SessionConfig{Cwd: "/project", Meta: meta}); err != nil {
				t.Fatal(err)
			}
			resumed.until(t, "user: last")
			resumed.until(t, last)
			var past []string
			if err := Past(s.ID(), pageOf(t, again), func(u *PastUpdate) error {
				if u.Update == nil {
					return nil
				}
				if version == 1 {
					past = append(past, textOfV1(t, u.Update))
					return nil
				}
				said, err := acpv2.UnmarshalSessionUpdate(u.Update)
				if text := ending(&acp.Update{Update: said}); text != "" {
					past = append(past, text)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if !cmp.Equal(past, want) {
				t.Errorf("history: %s", cmp.Diff(want, past))
			}
		})
	}
}

func pageOf(t *testing.T, c *client) func(*HistoryRequest) (*HistoryAnswer, error) {
	return func(r *HistoryRequest) (*HistoryAnswer, error) {
		return HistoryMethod.Call(t.Context(), c.conn.Conn(), r)
	}
}

// textOfV1 describes an update of version 1.
func textOfV1(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var u struct {
		SessionUpdate string
		Content       struct{ Text string }
	}
	if err := json.Unmarshal(raw, &u); err != nil {
		t.Fatal(err)
	}
	who, _, _ := strings.Cut(u.SessionUpdate, "_")
	return who + ": " + u.Content.Text
}

// TestOutage: a client does not get an internal error if the database cannot be reached.
func TestOutage(t *testing.T) {
	r := newRig(t, talking(nil))
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for _, tt := range []struct {
		err  error
		says bool
	}{
		{fmt.Errorf("list: %w", refused), true},
		{fmt.Errorf("claim: %w", engine.ErrLapsed), true},
		{errors.New("a defect"), false},
		{jsonrpc.ErrInvalidParams, false},
		{errMoving, false},
	} {
		got := r.g.outage(t.Context(), tt.err)
		failure, ok := errors.AsType[*jsonrpc.Failure](got)
		if says := ok && failure.Reason == "unavailable"; says != tt.says || !tt.says && got != tt.err {
			t.Errorf("%v: %v", tt.err, got)
		}
	}
}

// TestLeft: why an agent has ended in a turn is said in the words of people.
func TestLeft(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("%w: %w: %w", jsonrpc.ErrClosed, io.EOF, &process.ExitError{Code: 3, Stderr: "x\nfatal: no key\n"}),
			"the agent ended with status 3 in the middle of the turn: fatal: no key"},
		{fmt.Errorf("%w: %w", jsonrpc.ErrClosed, &process.ExitError{Code: -1, Signal: "SIGKILL"}), "the agent was ended by SIGKILL in the middle of the turn"},
		{fmt.Errorf("%w: %w", jsonrpc.ErrClosed, io.EOF), "the agent has ended in the middle of the turn"},
		{errors.New("holder: the holder is gone: read unix @->/run/x.sock"), "the connection to the agent has failed in the middle of the turn"},
	} {
		if got := new(backend).left(tt.err); got != tt.want {
			t.Errorf("%v\n\t%q, want\n\t%q", tt.err, got, tt.want)
		}
	}
	long := reasonOf(errors.New(strings.Repeat("ü", maxReason)))
	if !strings.HasSuffix(long, "ü …") || len(long) > maxReason+4 {
		t.Errorf("a long reason has %d bytes and ends with %q", len(long), long[len(long)-10:])
	}
	if long = reasonOf(errors.New(strings.Repeat("中", maxReason))); len(long) < maxReason || !strings.HasSuffix(long, "中 …") {
		t.Errorf("a long reason in wide characters has %d bytes", len(long))
	}
}
