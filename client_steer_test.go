package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/jsonrpc"
)

const (
	steeringAdvertised = `"_meta":{"steering":{"supported":true}}`
	steeringRequest    = "_session/steering"
	gooseRequest       = "_goose/unstable/session/steer"
)

// steerable opens a session with a scripted agent that advertises steering, or does not, and begins a turn in it.
func steerable(t *testing.T, version int, advertises bool, f func(t *testing.T, s *ClientSession, a *clientScript, turn clientFrame, seen func() []string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		caps := clientAll(version)
		if advertises {
			caps += "," + steeringAdvertised
		}
		var seen []string
		conn, a := clientLink(t, Client{Update: func(_ context.Context, _ *ClientSession, u *Update) {
			switch u.Update.(type) {
			case *UserMessage, *UserMessageChunk, *AgentMessageChunk:
				seen = append(seen, u.short())
			}
		}}, version, caps)
		s := a.session(conn)
		s.Prompt(t.Context(), Text("go"))
		turn := a.next("session/prompt")
		if version == 2 {
			a.update("user_message", `"messageId":"u1","content":[{"type":"text","text":"go"}]`)
			a.answer(turn, `{"messageId":"u1"}`)
			a.state("running", "")
		}
		synctest.Wait()
		seen = nil
		f(t, s, a, turn, func() []string { synctest.Wait(); return seen })
	})
	clientNoLeaks(t)
}

// endTurn ends the turn of the prompt.
func (a *clientScript) endTurn(version int, turn clientFrame) {
	if version == 1 {
		a.answer(turn, `{"stopReason":"end_turn"}`)
	} else {
		a.state("idle", `"stopReason":"end_turn"`)
	}
}

// steerMore has the message "more" steered, and returns what gives the result.
func steerMore(ctx context.Context, s *ClientSession) func() (SteerOutcome, error) {
	return later(func() (SteerOutcome, error) { return s.Steer(ctx, Text("more")) })
}

// TestSteerOutcomes: what an agent with the extension answers, and what follows from it. The request always asks for
// nothing to be done if no turn runs.
func TestSteerOutcomes(t *testing.T) {
	const injected = "made-up user more"
	for _, tc := range []struct {
		name, result string // or
		code         int
		data         string

		want    SteerOutcome
		err     bool
		refused bool
		seen    []string
	}{
		{name: "injected", result: `{"outcome":"injected"}`, want: SteerInjected, seen: []string{injected}},
		{name: "prompt required", result: `{"outcome":"promptRequired","reason":"noRunningTurn"}`, want: SteerPromptRequired},
		{name: "prompt required without a reason", result: `{"outcome":"promptRequired"}`, want: SteerPromptRequired},
		{name: "a turn of its own", result: `{"outcome":"startedNewTurn"}`, want: SteerStartedNewTurn, seen: []string{injected}},
		{name: "failed", result: `{"outcome":"failed"}`, want: SteerFailed, err: true},
		{name: "an outcome that nobody knows", result: `{"outcome":"teleported"}`, want: "teleported", err: true},
		{name: "an outcome that is no text", result: `{"outcome":7}`, err: true},
		{name: "no outcome", result: `{}`, err: true},
		{name: "nothing", result: `null`, err: true},
		{name: "params", code: jsonrpc.CodeInvalidParams, data: `{"path":"prompt"}`, err: true, refused: true},
		{name: "session", code: jsonrpc.CodeResourceNotFound, data: `{}`, err: true, refused: true},
		{name: "request", code: jsonrpc.CodeInvalidRequest, data: `null`, err: true, refused: true},
		{name: "busy", code: -32001, data: `{"reason":"busy"}`, err: true, refused: true},
		{name: "inside", code: jsonrpc.CodeInternalError, data: `{}`, err: true},
		{name: "cancelled", code: jsonrpc.CodeRequestCancelled, data: `{}`, err: true},
		{name: "no such method", code: jsonrpc.CodeMethodNotFound, data: `{}`, want: SteerQueued},
	} {
		for version := 1; version <= 2; version++ {
			t.Run(fmt.Sprintf("%s/v%d", tc.name, version), func(t *testing.T) {
				steerable(t, version, true, func(t *testing.T, s *ClientSession, a *clientScript, turn clientFrame, seen func() []string) {
					got := steerMore(t.Context(), s)
					f := a.next(steeringRequest)
					const want = `{"_meta":{"steering":{"idleBehavior":"promptRequired"}},"prompt":[{"text":"more","type":"text"}],"sessionId":"s"}`
					if diff := cmp.Diff(want, sortedJSON(t, f.Params)); diff != "" {
						t.Error(diff)
					}
					if tc.result != "" {
						a.answer(f, tc.result)
					} else {
						a.refuse(f, tc.code, tc.data)
					}
					outcome, err := got()
					if outcome != tc.want || (err != nil) != tc.err || IsSteerRefused(err) != tc.refused {
						t.Errorf("%q, %v (refused: %v)", outcome, err, IsSteerRefused(err))
					}
					if diff := cmp.Diff(tc.seen, seen()); diff != "" {
						t.Error(diff)
					}
					a.silent() // nothing is sent twice, and nothing is cancelled
					a.endTurn(version, turn)
				})
			})
		}
	}
}

func sortedJSON(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestSteerShownOnce: the message is an update where the answer stands among the updates, unless the agent has sent it.
func TestSteerShownOnce(t *testing.T) {
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			steerable(t, version, true, func(t *testing.T, s *ClientSession, a *clientScript, turn clientFrame, seen func() []string) {
				got := steerMore(t.Context(), s)
				f := a.next(steeringRequest)
				a.say("before")
				a.answer(f, `{"outcome":"injected"}`)
				a.say("after")
				if _, err := got(); err != nil {
					t.Fatal(err)
				}
				got = steerMore(t.Context(), s)
				f = a.next(steeringRequest)
				want := []string{"say before", "made-up user more", "say after", "user more"}
				if version == 1 {
					a.update("user_message_chunk", `"content":{"type":"text","text":"more"}`)
					want[3] = "user+ more"
				} else {
					a.update("user_message", `"messageId":"u2","content":[{"type":"text","text":"more"}]`)
				}
				a.answer(f, `{"outcome":"injected"}`)
				if _, err := got(); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, seen()); diff != "" {
					t.Error(diff)
				}
				a.endTurn(version, turn)
			})
		})
	}
}

// TestSteerShownInPieces: the client shows a message once that the agent sends in several pieces. A message without
// text is told from others by its number of blocks.
func TestSteerShownInPieces(t *testing.T) {
	text := func(s string) string { return `"content":{"type":"text","text":"` + s + `"}` }
	image := `"content":{"type":"image","data":"AA==","mimeType":"image/png"}`
	picture := &ImageContent{Data: "AA==", MIMEType: "image/png"}
	for _, tc := range []struct {
		name   string
		steer  []ContentBlock
		chunks []string
		shown  bool // by the client
	}{
		{"one block", []ContentBlock{Text("more of it")}, []string{text("more"), text(" of"), text(" it")}, false},
		{"a part", []ContentBlock{Text("more of it")}, []string{text("more"), text(" of")}, true},
		{"another one", []ContentBlock{Text("more of it")}, []string{text("less"), text("more of it")}, true},
		{"blocks", []ContentBlock{Text("more"), Text("of it")}, []string{text("more"), text("of it")}, false},
		{"an image", []ContentBlock{picture}, []string{image}, false},
		{"images", []ContentBlock{picture, picture}, []string{image, image}, false},
		{"one of two images", []ContentBlock{picture, picture}, []string{image}, true},
		{"a text for an image", []ContentBlock{picture}, []string{text("more")}, true},
	} {
		for version := 1; version <= 2; version++ {
			t.Run(fmt.Sprintf("%s/v%d", tc.name, version), func(t *testing.T) {
				steerable(t, version, true, func(t *testing.T, s *ClientSession, a *clientScript, turn clientFrame, seen func() []string) {
					got := later(func() (SteerOutcome, error) { return s.Steer(t.Context(), tc.steer...) })
					f := a.next(steeringRequest)
					for _, chunk := range tc.chunks {
						if version == 2 {
							chunk = `"messageId":"u2",` + chunk
						}
						a.update("user_message_chunk", chunk)
					}
					a.answer(f, `{"outcome":"injected"}`)
					if _, err := got(); err != nil {
						t.Fatal(err)
					}
					shown := slices.ContainsFunc(seen(), func(u string) bool { return strings.HasPrefix(u, "made-up") })
					if shown != tc.shown {
						t.Errorf("shown by the client: %v; all: %q", shown, seen())
					}
					a.endTurn(version, turn)
				})
			})
		}
	}
}

// TestSteerWithout: an agent that has no way to be steered is sent nothing: the message is a prompt, which it queues.
func TestSteerWithout(t *testing.T) {
	for version := 1; version <= 2; version++ {
		steerable(t, version, false, func(t *testing.T, s *ClientSession, a *clientScript, turn clientFrame, _ func() []string) {
			if outcome, err := s.Steer(t.Context(), Text("more")); outcome != SteerQueued || err != nil {
				t.Errorf("%q, %v", outcome, err)
			}
			a.silent()
			a.endTurn(version, turn)
			synctest.Wait()
			if outcome, err := s.Steer(t.Context(), Text("more")); outcome != SteerPromptRequired || err != nil {
				t.Errorf("when no turn runs: %q, %v", outcome, err)
			}
			if _, err := s.Steer(t.Context()); err == nil {
				t.Error("an empty message")
			}
		})
	}
}

// TestSteerUnanswered: who does not get an answer is told that the outcome is not known, also once the agent has had its
// time after the end of the turn. An answer that comes later is ignored.
func TestSteerUnanswered(t *testing.T) {
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprintf("the turn ends/v%d", version), func(t *testing.T) {
			steerable(t, version, true, func(t *testing.T, s *ClientSession, a *clientScript, turn clientFrame, seen func() []string) {
				got := steerMore(t.Context(), s)
				f := a.next(steeringRequest)
				time.Sleep(time.Hour) // as long as the turn runs it may come
				a.silent()
				a.endTurn(version, turn)
				began := time.Now()
				if _, err := got(); !errors.Is(err, ErrOutcomeUnknown) || IsSteerRefused(err) {
					t.Error(err)
				}
				if took := time.Since(began); took != s.conn.client.CancelGrace { // in the bubble's time
					t.Error(took)
				}
				a.next("$/cancel_request")
				a.answer(f, `{"outcome":"injected"}`)
				if got := seen(); got != nil {
					t.Error(got)
				}
			})
		})
		t.Run(fmt.Sprintf("it answers after the turn/v%d", version), func(t *testing.T) {
			steerable(t, version, true, func(t *testing.T, s *ClientSession, a *clientScript, turn clientFrame, _ func() []string) {
				got := steerMore(t.Context(), s)
				f := a.next(steeringRequest)
				a.endTurn(version, turn)
				time.Sleep(s.conn.client.CancelGrace / 2)
				a.answer(f, `{"outcome":"promptRequired"}`)
				if outcome, err := got(); outcome != SteerPromptRequired || err != nil {
					t.Errorf("%q, %v", outcome, err)
				}
			})
		})
		t.Run(fmt.Sprintf("the user gives up/v%d", version), func(t *testing.T) {
			steerable(t, version, true, func(t *testing.T, s *ClientSession, a *clientScript, turn clientFrame, _ func() []string) {
				ctx, cancel := context.WithCancel(t.Context())
				got := steerMore(ctx, s)
				a.next(steeringRequest)
				cancel()
				if _, err := got(); !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				a.next("$/cancel_request")
				if _, err := s.Steer(ctx, Text("more")); errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
					t.Errorf("before it is sent: %v", err)
				}
				a.silent()
				a.endTurn(version, turn)
			})
		})
		t.Run(fmt.Sprintf("the agent leaves/v%d", version), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, a := clientLink(t, Client{}, version, clientAll(version)+","+steeringAdvertised)
				s := a.session(conn)
				got := steerMore(t.Context(), s)
				a.next(steeringRequest)
				_ = a.stream.Close()
				if _, err := got(); !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, jsonrpc.ErrClosed) {
					t.Error(err)
				}
				if _, err := s.Steer(t.Context(), Text("more")); err == nil || errors.Is(err, ErrOutcomeUnknown) {
					t.Errorf("afterwards: %v", err)
				}
			})
		})
	}
}

// TestSteerUnansweredAgain: when one request of Steer is refused after the turn has ended, the next one has the same time,
// and is given up as well.
func TestSteerUnansweredAgain(t *testing.T) {
	for version := 1; version <= 2; version++ {
		steerable(t, version, true, func(t *testing.T, s *ClientSession, a *clientScript, turn clientFrame, _ func() []string) {
			a.update("session_info_update", `"_meta":{"goose":{"activeRunId":"r1"}}`)
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			got := steerMore(ctx, s)
			f := a.next(gooseRequest)
			a.endTurn(version, turn)
			time.Sleep(s.conn.client.CancelGrace / 2)
			a.refuse(f, jsonrpc.CodeMethodNotFound, `{}`)
			a.next(steeringRequest)
			began := time.Now()
			if _, err := got(); !errors.Is(err, ErrOutcomeUnknown) || ctx.Err() != nil {
				t.Error(err)
			}
			if took := time.Since(began); took != s.conn.client.CancelGrace { // in the bubble's time
				t.Error(took)
			}
			a.next("$/cancel_request")
		})
	}
}

// TestSteerCancelled: what is cancelled while it is on its way does not become a prompt.
func TestSteerCancelled(t *testing.T) {
	for version := 1; version <= 2; version++ {
		steerable(t, version, true, func(t *testing.T, s *ClientSession, a *clientScript, turn clientFrame, _ func() []string) {
			got := steerMore(t.Context(), s)
			f := a.next(steeringRequest)
			if err := s.Cancel(t.Context()); err != nil {
				t.Fatal(err)
			}
			a.next("session/cancel")
			a.endTurn(version, turn)
			a.answer(f, `{"outcome":"promptRequired"}`)
			if outcome, err := got(); outcome != "" || !errors.Is(err, ErrCancelled) || IsSteerRefused(err) {
				t.Errorf("%q, %v", outcome, err)
			}
		})
	}
}

// TestSteerGoose: goose is steered by the id of the run that works, as it has said last. A run that is over is replaced by
// the one that goose names, once.
func TestSteerGoose(t *testing.T) {
	run := func(a *clientScript, id string) {
		a.update("session_info_update", `"_meta":{"goose":{"activeRunId":`+id+`}}`)
		synctest.Wait()
	}
	steerable(t, 1, false, func(t *testing.T, s *ClientSession, a *clientScript, turn clientFrame, seen func() []string) {
		run(a, `"r1"`)
		got := steerMore(t.Context(), s)
		f := a.next(gooseRequest)
		if diff := cmp.Diff(`{"expectedRunId":"r1","prompt":[{"text":"more","type":"text"}],"sessionId":"s"}`, sortedJSON(t, f.Params)); diff != "" {
			t.Error(diff)
		}
		a.answer(f, `{"runId":"r1","messageId":"steer_1"}`)
		if outcome, err := got(); outcome != SteerInjected || err != nil {
			t.Errorf("%q, %v", outcome, err)
		}
		if diff := cmp.Diff([]string{"made-up user more"}, seen()); diff != "" {
			t.Error(diff)
		}
		for _, tc := range []struct {
			answers []string // to the requests, one after another; data of errors
			runs    []string
			want    SteerOutcome
			refused bool
		}{
			{[]string{`{"message":"x","expectedRunId":"r1","actualRunId":"r2"}`, ""}, []string{"r1", "r2"}, SteerInjected, false},
			{[]string{`{"expectedRunId":"r1","actualRunId":"r2"}`, `{"expectedRunId":"r2","actualRunId":"r3"}`}, []string{"r1", "r2"}, "", true},
			{[]string{`{"expectedRunId":"r1","actualRunId":null}`}, []string{"r1"}, SteerPromptRequired, false},
			{[]string{`"no active run to steer"`}, []string{"r1"}, SteerPromptRequired, false},
			{[]string{`"prompt must contain steerable content"`}, []string{"r1"}, "", true},
		} {
			got := steerMore(t.Context(), s)
			for i, data := range tc.answers {
				f := a.next(gooseRequest)
				if !strings.Contains(string(f.Params), `"expectedRunId":"`+tc.runs[i]+`"`) {
					t.Errorf("%v: %s", tc.answers, f.Params)
				}
				if data == "" {
					a.answer(f, `{"runId":"r2"}`)
				} else {
					a.refuse(f, jsonrpc.CodeInvalidParams, data)
				}
			}
			if outcome, err := got(); outcome != tc.want || IsSteerRefused(err) != tc.refused || (err != nil) != tc.refused {
				t.Errorf("%v: %q, %v", tc.answers, outcome, err)
			}
			a.silent()
		}
		// An older goose, and one whose run has ended, gets a prompt.
		got = steerMore(t.Context(), s)
		a.refuse(a.next(gooseRequest), jsonrpc.CodeMethodNotFound, `{}`)
		if outcome, err := got(); outcome != SteerQueued || err != nil {
			t.Errorf("%q, %v", outcome, err)
		}
		second := s.Prompt(t.Context(), Text("more"))
		a.refuse(a.next("session/prompt"), jsonrpc.CodeInvalidParams, `"session already has an active run"`)
		if _, err := second.Wait(); !IsSteerRefused(err) {
			t.Errorf("a second prompt: %v", err)
		}
		run(a, `null`)
		if outcome, err := s.Steer(t.Context(), Text("more")); outcome != SteerQueued || err != nil {
			t.Errorf("%q, %v", outcome, err)
		}
		a.silent()
		a.endTurn(1, turn)
	})
}

// TestSteerPreferred: an agent that has both is steered by the id of its run.
func TestSteerPreferred(t *testing.T) {
	steerable(t, 1, true, func(t *testing.T, s *ClientSession, a *clientScript, turn clientFrame, _ func() []string) {
		a.update("session_info_update", `"_meta":{"goose":{"activeRunId":"r1"}}`)
		synctest.Wait()
		got := steerMore(t.Context(), s)
		a.refuse(a.next(gooseRequest), jsonrpc.CodeMethodNotFound, `{}`)
		a.answer(a.next(steeringRequest), `{"outcome":"injected"}`)
		if outcome, err := got(); outcome != SteerInjected || err != nil {
			t.Errorf("%q, %v", outcome, err)
		}
		a.endTurn(1, turn)
	})
}

// FuzzGooseRun: nothing that _meta says harms.
func FuzzGooseRun(f *testing.F) {
	f.Add(`{"goose":{"activeRunId":"r1"}}`)
	f.Add(`{"goose":{"activeRunId":null}}`)
	f.Add(`{"goose":["activeRunId"]}`)
	f.Fuzz(func(t *testing.T, meta string) {
		if id, ok := gooseRun(json.RawMessage(meta)); !ok && id != "" {
			t.Error(id)
		}
		if actual, stale := staleRun(&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Data: json.RawMessage(meta)}); !stale && actual != "" {
			t.Error(actual)
		}
		_ = supportsSteering(json.RawMessage(meta))
		with := (&Agent{Busy: BusySteer}).advertiseSteering(json.RawMessage(meta))
		var before, after map[string]json.RawMessage
		if json.Unmarshal([]byte(meta), &before) == nil && json.Unmarshal(with, &after) != nil {
			t.Errorf("%s became %s", meta, with)
		}
		for key := range before {
			if after[key] == nil {
				t.Errorf("%s became %s", meta, with)
			}
		}
	})
}
