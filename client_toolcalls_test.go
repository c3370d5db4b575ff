package acp

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
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
		{"some", `,"kind":"edit","title":"Other","rawInput":{}`, `c "bash" "Other" edit pending {} @/etc text`, ""},
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

// TestKnownCalls holds the bounds of what is remembered.
func TestKnownCalls(t *testing.T) {
	large := strings.Repeat("x", maxKnownContent+1)
	input := func(n int) []byte { return fmt.Appendf(nil, "%q", strings.Repeat("x", n-2)) }
	tell := func(k *clientCalls, u *ToolCallUpdate) {
		k.see(&acpv2.UpdateSessionNotification{Update: u})
		if k.bytes > maxKnownCallBytes || len(k.calls) > maxKnownCalls || len(k.order) != len(k.calls) {
			t.Fatalf("%d bytes, %d calls, %d in order", k.bytes, len(k.calls), len(k.order))
		}
	}
	sum := func(k *clientCalls) (n int) {
		for _, c := range k.calls {
			if c.head+c.content > maxKnownCall {
				t.Errorf("a call of %d bytes", c.head+c.content)
			}
			n += c.head + c.content
		}
		return n
	}

	var k clientCalls
	for i := range maxKnownCalls + 10 {
		tell(&k, &ToolCallUpdate{ToolCallID: ToolCallID(fmt.Sprint(i)), Kind: Set(ToolKindRead)})
		tell(&k, &ToolCallUpdate{ToolCallID: "0", Status: Set(ToolCallStatusInProgress)})
	}
	want(t, "used again and again", describe(k.known("0")), `0 "" "" read in_progress `)
	want(t, "the oldest", describe(k.known("1")), "none")
	want(t, "the latest", describe(k.known(ToolCallID(fmt.Sprint(maxKnownCalls+9)))), fmt.Sprintf(`%d "" "" read  `, maxKnownCalls+9))

	k = clientCalls{}
	for i := range 40 {
		tell(&k, &ToolCallUpdate{ToolCallID: ToolCallID(fmt.Sprint(i)), RawInput: input(maxKnownCall / 2)})
	}
	want(t, "bytes", k.bytes, sum(&k))
	want(t, "forgotten for size", describe(k.known("0")), "none")

	k = clientCalls{}
	diff := &Diff{Changes: []DiffChange{{Operation: &acpv2.DiffAdd{Path: "/a"}}}, Patch: &acpv2.DiffPatch{Format: "git_patch", Text: large}}
	tell(&k, &ToolCallUpdate{ToolCallID: "c", Kind: Set(ToolKindEdit), Title: Set("T"), Content: Set([]ToolCallContent{
		&BlockContent{Content: Text("short")}, &BlockContent{Content: Text(large)}, &BlockContent{Content: &ImageContent{}}, diff,
	})})
	want(t, "content", describe(k.known("c")), `c "" "T" edit   text diff 1 false`)
	want(t, "the diff itself", diff.Patch != nil, true)
	for range 100 {
		k.see(&acpv2.UpdateSessionNotification{Update: &acpv2.ToolCallContentChunk{ToolCallID: "c", Content: &BlockContent{Content: Text(large[1:])}}})
	}
	want(t, "bytes with chunks", k.bytes, sum(&k))
	tell(&k, &ToolCallUpdate{ToolCallID: "c", RawInput: input(maxKnownCall / 2)})
	if got := k.known("c"); got.RawInput == nil || len(got.Content.Or(nil)) != 0 {
		t.Errorf("content goes before input: %.200s", describe(got))
	}
	huge := strings.Repeat("x", maxKnownCall)
	tell(&k, &ToolCallUpdate{ToolCallID: "c", RawInput: input(maxKnownCall), Title: Set(huge), Locations: Set([]ToolCallLocation{{Path: huge}})})
	want(t, "all too large", describe(k.known("c")), `c "" "" edit  `)
	tell(&k, &ToolCallUpdate{ToolCallID: "c", Kind: Set(ToolKind(huge))})
	want(t, "a kind that is too large", describe(k.known("c")), `c "" ""   `)
	tell(&k, &ToolCallUpdate{ToolCallID: ToolCallID(strings.Repeat("x", 2*maxKnownCallBytes))})
	want(t, "an id that is too large", k.bytes, 0)

	// What is kept is a copy, since a message keeps all of its memory alive.
	k = clientCalls{}
	text, raw, path := Text("text"), []byte(`"in"`), []ToolCallLocation{{Path: "/a"}}
	tell(&k, &ToolCallUpdate{ToolCallID: "c", RawInput: raw, Locations: Set(path), Content: Set([]ToolCallContent{&BlockContent{Content: text}})})
	text.Text, raw[1], path[0].Path = "other", 'x', "/b"
	got := k.known("c")
	want(t, "a copy", describe(got), `c "" ""   "in" @/a text`)
	want(t, "a copy of the text", got.Content.Or(nil)[0].(*BlockContent).Content.(*TextContent).Text, "text")

	// Of version 1 large edits are kept without their text, too.
	k = clientCalls{}
	k.see(&acpv1.SessionNotification{Update: &acpv1.ToolCall{ToolCallID: "c", Title: "T", Content: []acpv1.ToolCallContent{
		&acpv1.Diff{Path: "/a", NewText: "n"}, &acpv1.Diff{Path: "/b", NewText: large, OldText: new("o")},
	}}})
	want(t, "edits", describe(k.known("c")), `c "" "T" other pending  diff 1 true diff 1 false`)
	if list := k.known("c").Content.Or(nil); list[1].(*Diff).Changes[0].Operation.(*acpv2.DiffModify).Path != "/b" {
		t.Error("the path is lost")
	}
	k.see(&acpv1.SessionNotification{Update: &acpv1.ToolCallUpdate{ToolCallID: "c", Content: acpv1.Set([]acpv1.ToolCallContent{})}})
	want(t, "cleared", describe(k.known("c")), `c "" "T" other pending `)
}
