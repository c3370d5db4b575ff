package acphost

import (
	"encoding/json"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/google/go-cmp/cmp"
)

func TestRequestOf(t *testing.T) {
	call := func(f func(u *acp.ToolCallUpdate)) acp.RequestPermissionSubject {
		u := acp.ToolCallUpdate{ToolCallID: "c", Name: acp.Set("mcp__git__log"), Kind: acp.Set(acp.ToolKindExecute)}
		f(&u)
		return &acp.ToolCallPermissionSubject{ToolCall: u}
	}
	cases := []struct {
		name    string
		subject acp.RequestPermissionSubject
		want    Request
	}{
		{"nothing", nil, Request{}},
		{"unknown", &acpv2.UnknownRequestPermissionSubject{Type: "_x"}, Request{}},
		{"command", &acp.CommandPermissionSubject{Command: "ls", Cwd: "/w", ToolCallID: "c"},
			Request{ToolCallID: "c", Kind: "execute", Command: "ls", Cwd: "/w"}},
		{"input", call(func(u *acp.ToolCallUpdate) { u.RawInput = json.RawMessage(`{"command":"git log","cwd":"/w"}`) }),
			Request{ToolCallID: "c", ToolName: "mcp__git__log", Kind: "execute", Command: "git log", Cwd: "/w",
				RawInput: json.RawMessage(`{"command":"git log","cwd":"/w"}`)}},
		{"list", call(func(u *acp.ToolCallUpdate) { u.RawInput = json.RawMessage(`{"command":["git","log"]}`) }),
			Request{ToolCallID: "c", ToolName: "mcp__git__log", Kind: "execute", Command: "git log", RawInput: json.RawMessage(`{"command":["git","log"]}`)}},
		{"not executed", call(func(u *acp.ToolCallUpdate) {
			u.Kind = acp.Set(acp.ToolKindEdit)
			u.RawInput = json.RawMessage(`{"command":"rm"}`)
			u.Locations = acp.Set([]acp.ToolCallLocation{{Path: "/a"}, {Path: "/b"}, {Path: "/a"}})
			u.Content = acp.Set([]acp.ToolCallContent{&acp.Diff{Changes: []acp.DiffChange{
				{Operation: &acpv2.DiffAdd{Path: "/b"}}, {Operation: &acpv2.DiffDelete{Path: "/c"}},
				{Operation: &acpv2.DiffModify{Path: "/d"}}, {Operation: &acpv2.DiffMove{OldPath: "/e", Path: "/f"}},
				{Operation: &acpv2.DiffCopy{OldPath: "/g", Path: "/h"}},
			}}})
		}), Request{ToolCallID: "c", ToolName: "mcp__git__log", Kind: "edit", RawInput: json.RawMessage(`{"command":"rm"}`),
			Paths: []string{"/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h"}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			of := &acp.PermissionRequest{Subject: c.subject}
			got := RequestOf(of)
			if got.Of != of {
				t.Error("the request is not kept")
			}
			got.Of = nil
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPolicyHook: the policy answers as a client's hook.
func TestPolicyHook(t *testing.T) {
	p, err := NewPolicy(Rule{Effect: EffectAllow, Kinds: []string{"read"}}, Rule{Effect: EffectDeny})
	if err != nil {
		t.Fatal(err)
	}
	options := acp.DefaultPermissionOptions()
	for kind, want := range map[acp.ToolKind]acp.PermissionDecision{
		acp.ToolKindRead: acp.SelectPermission("allow_once"), acp.ToolKindEdit: acp.SelectPermission("reject_once"),
	} {
		req := &acp.PermissionRequest{Options: options, Subject: &acp.ToolCallPermissionSubject{
			ToolCall: acp.ToolCallUpdate{ToolCallID: "c", Kind: acp.Set(kind)},
		}}
		if got, err := p.RequestPermission(t.Context(), req); err != nil || got.OptionID != want.OptionID {
			t.Errorf("%s: %+v, %v", kind, got, err)
		}
	}
	req := &acp.PermissionRequest{Subject: nil, Options: options[:1]}
	if got, err := p.RequestPermission(t.Context(), req); err != nil || !got.Cancelled {
		t.Errorf("denied without a way to reject: %+v, %v", got, err)
	}
}

// TestRequestIn holds that a relative directory in the input is taken from that
// of a session that is only known by name.
func TestRequestIn(t *testing.T) {
	call := acp.ToolCallUpdate{ToolCallID: "c", Kind: acpv2.Set(acp.ToolKindExecute), RawInput: []byte(`{"command":"make","cwd":"../x"}`)}
	req := &acp.PermissionRequest{Subject: &acp.ToolCallPermissionSubject{ToolCall: call}}
	got := RequestIn("s", "/work/a", req)
	if got.Session != "s" || got.Cwd != "/work/x" || got.Command != "make" {
		t.Errorf("%+v", got)
	}
}
