package acp

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// announce tells of a tool call as an agent of the version does.
func (a *clientScript) announce(version int, id, fields string) {
	a.t.Helper()
	kind := "tool_call_update"
	if version == 1 {
		kind = "tool_call"
	}
	a.update(kind, fmt.Sprintf(`"toolCallId":%q,%s`, id, fields))
}

// askAbout asks for permission about a tool call; fields are what the request
// itself says of it.
func (a *clientScript) askAbout(version int, id, fields string) {
	a.t.Helper()
	call := fmt.Sprintf(`{"toolCallId":%q%s}`, id, fields)
	if version == 1 {
		a.request(1, "session/request_permission", fmt.Sprintf(`{"sessionId":"s","toolCall":%s,"options":[%s]}`, call, clientAllowOption))
	} else {
		a.request(1, "session/request_permission", fmt.Sprintf(`{"sessionId":"s","title":"","subject":{"type":"tool_call","toolCall":%s},"options":[%s]}`, call, clientAllowOption))
	}
	a.next("")
}

// askedCall is a hook that tells what it was asked.
func askedCall() (Client, chan *PermissionRequest) {
	asked := make(chan *PermissionRequest, 1)
	return Client{RequestPermission: func(_ context.Context, r *PermissionRequest) (PermissionDecision, error) {
		asked <- r
		return r.Allow(), nil
	}}, asked
}

func describe(c *ToolCallUpdate) string {
	if c == nil {
		return "none"
	}
	text := fmt.Sprintf("%s %q %q %s %s %s", c.ToolCallID, c.Name.Or(""), c.Title.Or(""), c.Kind.Or(""), c.Status.Or(""), c.RawInput)
	for _, l := range c.Locations.Or(nil) {
		text += " @" + l.Path
	}
	for _, item := range c.Content.Or(nil) {
		switch item := item.(type) {
		case *BlockContent:
			text += " text"
		case *Diff:
			text += fmt.Sprintf(" diff %d %v", len(item.Changes), item.Patch != nil)
		}
	}
	return text
}

// TestPermissionRecalls holds that whoever decides knows what was told of the
// call before, whatever the request leaves out, and that the request comes
// first.
func TestPermissionRecalls(t *testing.T) {
	const told = `"title":"Remove","name":"bash","kind":"execute","status":"pending","rawInput":{"command":"rm -rf /"},
		"locations":[{"path":"/etc"}],"content":[{"type":"content","content":{"type":"text","text":"x"}}]`
	tests := []struct {
		name, asks string
		want       string
		v1         string // if it differs
	}{
		{"id only", ``, `c "bash" "Remove" execute pending {"command":"rm -rf /"} @/etc text`, ""},
		{"some", `,"kind":"edit","title":"Other","rawInput":[1]`, `c "bash" "Other" edit pending [1] @/etc text`, ""},
		// Some agents ask about an empty tool, whatever they have announced.
		{"nothing", `,"kind":"other","rawInput":{}`, `c "bash" "Remove" execute pending {"command":"rm -rf /"} @/etc text`, ""},
		{"lists", `,"locations":[{"path":"/a"}],"content":[]`, `c "bash" "Remove" execute pending {"command":"rm -rf /"} @/a`, ""},
		// Null resets in version 2 (S78); in version 1 it is what many write for nothing.
		{"null", `,"kind":null,"rawInput":null,"content":null`, `c "bash" "Remove"  pending null @/etc`, `c "bash" "Remove" execute pending {"command":"rm -rf /"} @/etc text`},
	}
	c, asked := askedCall()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			both(t, c, func(t *testing.T, s *ClientSession, a *clientScript) {
				version := s.conn.Version()
				a.announce(version, "c", told)
				a.askAbout(version, "c", tt.asks)
				req := <-asked
				expect := tt.want
				if version == 1 && tt.v1 != "" {
					expect = tt.v1
				}
				want(t, "call", describe(req.ToolCall), expect)
				want(t, "subject", describe(&req.Subject.(*ToolCallPermissionSubject).ToolCall), expect)
				want(t, "title", req.Title, req.ToolCall.Title.Or(""))
				// What was received is as it was received.
				if version == 1 {
					want(t, "raw", req.V1.ToolCall.Kind.IsZero(), !strings.Contains(tt.asks, "kind"))
				} else {
					raw := req.V2.Subject.(*ToolCallPermissionSubject).ToolCall
					want(t, "raw", raw.Kind.IsZero() && req.V2.Title == "", !strings.Contains(tt.asks, "kind"))
				}
				// A later request knows what this one said.
				a.askAbout(version, "c", "")
				want(t, "again", describe((<-asked).ToolCall), expect)
				a.askAbout(version, "d", "")
				want(t, "never told of", describe((<-asked).ToolCall), `d "" ""   `)
			})
		})
	}
}

// TestPermissionCommand: a command comes with the call it is part of.
func TestPermissionCommand(t *testing.T) {
	c, asked := askedCall()
	single(t, c, 2, func(t *testing.T, s *ClientSession, a *clientScript) {
		a.announce(2, "c", `"title":"Build","kind":"execute"`)
		a.update("tool_call_content_chunk", `"toolCallId":"c","content":{"type":"content","content":{"type":"text","text":"x"}}`)
		a.update("tool_call_content_chunk", `"toolCallId":"unknown","content":{"type":"content","content":{"type":"text","text":"x"}}`)
		for id, expect := range map[string]string{"c": `c "" "Build" execute   text`, "d": "none", "": "none"} {
			a.request(1, "session/request_permission", fmt.Sprintf(`{"sessionId":"s","title":"T","options":[%s],
				"subject":{"type":"command","command":"make","cwd":"/w","toolCallId":%q}}`, clientAllowOption, id))
			a.next("")
			req := <-asked
			want(t, "call", describe(req.ToolCall), expect)
			want(t, "title", req.Title, "T")
		}
	})
}

// TestPermissionOvertakes: a request that overtakes what its session has queued,
// because the hook ahead of it waits, knows of the call all the same; and so
// does one that comes right behind the answer that opens the session.
func TestPermissionOvertakes(t *testing.T) {
	c, asked := askedCall()
	c.Update = func(ctx context.Context, s *ClientSession, u *Update) {
		if u.Text() == "wait" {
			for _, err := range s.Conn().ListSessions(ctx, ListOptions{}) {
				t.Error(err)
			}
		}
	}
	both(t, c, func(t *testing.T, s *ClientSession, a *clientScript) {
		version := s.conn.Version()
		a.say("wait")
		list := a.next("session/list")
		a.announce(version, "c", `"title":"T","kind":"execute"`)
		a.askAbout(version, "c", "")
		want(t, "kind", (<-asked).ToolCall.Kind.Or(""), ToolKindExecute)
		a.answer(list, `{"sessions":[]}`)

		get := later(func() (*ClientSession, error) { return s.conn.NewSession(t.Context(), SessionConfig{Cwd: clientRoot}) })
		opening := a.next("session/new")
		kind := map[int]string{1: "tool_call", 2: "tool_call_update"}[version]
		a.updateOf("n", kind, `"toolCallId":"e","title":"T","kind":"execute"`)
		a.request(9, "session/request_permission", strings.Replace(strings.Replace(permissionParams(version, clientAllowOption), `"s"`, `"n"`, 1), `"t"`, `"e"`, 1))
		synctest.Wait()
		a.answer(opening, `{"sessionId":"n"}`)
		if _, err := get(); err != nil {
			t.Error(err)
		}
		want(t, "kind", (<-asked).ToolCall.Kind.Or(""), ToolKindExecute)
		a.next("")
	})
}
