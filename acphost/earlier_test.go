package acphost

import (
	"encoding/json"
	"testing"

	"github.com/goacp/acp"
)

// said is what an earlier message said about a tool call.
func said(kind acp.ToolKind, input, text string, paths ...string) acp.ToolCallUpdate {
	call := asking(kind, input, paths...).Subject.(*acp.ToolCallPermissionSubject).ToolCall
	if text != "" {
		call.Content = acp.Set([]acp.ToolCallContent{&acp.BlockContent{Content: acp.Text(text)}})
	}
	return call
}

// showing is a request that shows a text and has no input.
func showing(kind acp.ToolKind, text string) *acp.PermissionRequest {
	return &acp.PermissionRequest{Title: "Tool", Options: usual, Subject: &acp.ToolCallPermissionSubject{ToolCall: said(kind, ``, text)}}
}

// TestShownStreamed: what an agent has streamed of the input of a call is what people read, whole, when it asks about that with
// the begin of it, as Kimi does.
func TestShownStreamed(t *testing.T) {
	const long = "touch one.txt two.txt three.txt four.txt && echo done"
	cut := "Requesting approval to Running: " + long[:30] + "…"
	for _, tt := range []struct {
		req     *acp.PermissionRequest
		earlier acp.ToolCallUpdate
		want    string // the command and its directory
		certain bool
	}{
		{showing("execute", cut), said("execute", ``, `{"command":"`+long+`"}`), long + " in /w", false},
		{showing("execute", cut), said("execute", ``, `{"command":"`+long+`","cwd":"sub"}`), long + " in /w/sub", false},
		{showing("execute", cut), said("execute", `{"command":"`+long+`"}`, `{"command":"`+long+`"}`), long + " in /w", true},
		{showing("execute", "Running: ls"), said("execute", ``, `{"command":"ls","cwd":"/x"}`), "ls in /x", false},
		{showing("execute", "Running: ls"), said("execute", ``, `{"command":"l`), "ls in /w", false},
		{showing("execute", "Running: ls"), said("execute", ``, `{"command":"ls","command":"rm x"}`), "ls in /w", false},
		{showing("edit", "Requesting approval to write"), said("edit", ``, `{"file_path":"/w/a","content":""}`), " in /w", true},
	} {
		tt.req.Earlier = []acp.ToolCallUpdate{tt.earlier}
		r := RequestIn("s", "/w", tt.req)
		command, certain := r.Shows()
		if got := command + " in " + r.Cwd; got != tt.want || certain != tt.certain {
			t.Errorf("%q, certain %v; want %q, %v", got, certain, tt.want, tt.certain)
		}
		if r.Kind == "edit" && (len(r.Paths) == 0 || r.Paths[0] != "/w/a") {
			t.Errorf("paths %q", r.Paths)
		}
	}
}

// TestEarlier: a request takes nothing away from what was said about its tool call before. OpenCode
// announces a command and asks about a tool of the kind other with an empty input.
func TestEarlier(t *testing.T) {
	const mkdir = `{"command":"mkdir -p /srv/data"}`
	allow, deny := EffectAllow, EffectDeny
	rule := func(e Effect, r Rule) Rule { r.Effect = e; return r }
	anything := Rule{Effect: allow}
	command := func(e Effect) Rule { return rule(e, Rule{Commands: []string{"mkdir *"}}) }
	for _, tt := range []struct {
		name    string
		req     *acp.PermissionRequest
		earlier []acp.ToolCallUpdate
		rules   []Rule
		want    Effect // deny, too, if it is asked
		by      Source
	}{
		{"empty input of another kind", asking("other", `{}`), []acp.ToolCallUpdate{said("execute", mkdir, "")}, []Rule{command(deny), anything}, deny, ByRule},
		{"the same, allowed", asking("other", `{}`), []acp.ToolCallUpdate{said("execute", mkdir, "")}, []Rule{command(allow)}, allow, ByRule},
		{"nobody announced anything", asking("other", `{}`), nil, []Rule{command(deny), anything}, deny, ByNobody},
		{"nobody announced anything, no input", asking("", ``), nil, []Rule{command(deny), anything}, deny, ByNobody},
		{"nobody announced anything, other rules", asking("", ``), nil, []Rule{rule(deny, Rule{Paths: []string{"/x"}}), anything}, allow, ByRule},
		{"an edit by now", asking("edit", `{}`, "/w/a"), []acp.ToolCallUpdate{said("execute", mkdir, "")}, []Rule{command(deny), anything}, deny, ByRule},
		{"an edit by now, allowed", asking("edit", `{}`, "/w/a"), []acp.ToolCallUpdate{said("execute", mkdir, "")}, []Rule{rule(allow, Rule{Kinds: []string{"edit"}})}, deny, ByNobody},
		{"another command", asking("execute", `{"command":"ls"}`), []acp.ToolCallUpdate{said("execute", mkdir, "")}, []Rule{command(deny), anything}, deny, ByRule},
		{"another command, allowed", asking("execute", `{"command":"ls"}`), []acp.ToolCallUpdate{said("execute", mkdir, "")}, []Rule{rule(allow, Rule{Commands: []string{"ls"}})}, deny, ByNobody},
		{"the begin of it", asking("execute", `{"command":"go test ./..."}`), []acp.ToolCallUpdate{said("execute", `{"command":"go te"}`, "")}, []Rule{rule(allow, Rule{Commands: []string{"go test *"}})}, allow, ByRule},
		{"a text", asking("other", `{}`), []acp.ToolCallUpdate{said("execute", ``, "Running: mkdir x")}, []Rule{command(deny), anything}, deny, ByRule},
		{"a text that was cut", asking("execute", mkdir), []acp.ToolCallUpdate{said("execute", ``, "Running: mkdir -p…")}, []Rule{command(allow)}, allow, ByRule},
		{"a text that is cut now", showing("execute", "Requesting approval to Running: mkdir -p /s…"), []acp.ToolCallUpdate{said("execute", mkdir, "")}, []Rule{command(allow)}, allow, ByRule},
		{"a text that says something else", showing("execute", "Running: ls -l…"), []acp.ToolCallUpdate{said("execute", mkdir, "")}, []Rule{rule(allow, Rule{Commands: []string{"mkdir *", "ls *"}})}, deny, ByNobody},
		{"an input as a text", showing("execute", "Running: mkdir -p…"), []acp.ToolCallUpdate{said("execute", ``, mkdir)}, []Rule{command(deny), anything}, deny, ByRule},
		{"an input as a text, allowed", showing("execute", "Running: mkdir -p…"), []acp.ToolCallUpdate{said("execute", ``, mkdir)}, []Rule{command(allow)}, deny, ByNobody},
		{"a path as a text", showing("edit", "Writing"), []acp.ToolCallUpdate{said("edit", ``, `{"path":"/w/.env","content":"x"}`)}, []Rule{rule(deny, Rule{Paths: []string{"**/.env"}}), anything}, deny, ByRule},
		{"a path as a text, allowed", showing("edit", "Writing"), []acp.ToolCallUpdate{said("edit", ``, `{"path":"/w/a","content":"x"}`)}, []Rule{rule(allow, Rule{Paths: []string{"/w/*"}})}, deny, ByNobody},
		{"a path as a text, and its kind allowed", showing("edit", "Writing"), []acp.ToolCallUpdate{said("edit", ``, `{"path":"/w/a","content":"x"}`)}, []Rule{rule(allow, Rule{Kinds: []string{"edit"}})}, allow, ByRule},
		{"paths", asking("edit", `{}`, "/w/a"), []acp.ToolCallUpdate{said("edit", ``, "", "/w/.env")}, []Rule{rule(deny, Rule{Paths: []string{"**/.env"}}), anything}, deny, ByRule},
		{"paths, allowed", asking("edit", `{}`, "/w/a"), []acp.ToolCallUpdate{said("edit", ``, "", "/w/.env")}, []Rule{rule(allow, Rule{Kinds: []string{"edit"}, Paths: []string{"/w/a"}})}, deny, ByNobody},
		{"the kind", asking("read", `{}`, "/w/a"), []acp.ToolCallUpdate{said("delete", ``, "", "/w/a")}, []Rule{rule(deny, Rule{Kinds: []string{"delete"}}), anything}, deny, ByRule},
		{"the kind, allowed", asking("read", `{}`, "/w/a"), []acp.ToolCallUpdate{said("delete", ``, "", "/w/a")}, []Rule{rule(allow, Rule{Kinds: []string{"read"}})}, deny, ByNobody},
		{"kinds of its own", asking("other", `{}`, "/w/a"), []acp.ToolCallUpdate{said("edit", ``, "", "/w/a")}, []Rule{rule(deny, Rule{Kinds: []string{"edit"}}), anything}, deny, ByRule},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := NewPolicy(tt.rules...)
			if err != nil {
				t.Fatal(err)
			}
			tt.req.Earlier = tt.earlier
			d := p.Decide(t.Context(), RequestIn("s", "/w", tt.req))
			if d.Effect != tt.want || d.By != tt.by {
				t.Errorf("%s by %s, want %s by %s: %s", d.Effect, d.By, tt.want, tt.by, d.Reason)
			}
		})
	}
	more := asking("edit", `{}`, "/w/a")
	more.EarlierMore = true
	if r := RequestOf(more); !r.CommandUnknown {
		t.Error("more was said than is known, and nothing is uncertain")
	}
	about := &acp.PermissionRequest{Subject: &acp.CommandPermissionSubject{Command: "ls"}, ToolCall: new(said("execute", mkdir, ""))}
	if command, certain := new(RequestOf(about)).Shows(); certain || command != "ls\nmkdir -p /srv/data" {
		t.Errorf("a command of a call that announced another one: %q, %v", command, certain)
	}
}

// TestEarlierRemembered: what was answered about one command is not given to another, nor to a request
// that does not say which.
func TestEarlierRemembered(t *testing.T) {
	p := new(Policy)
	ask := func(command, input string) Request {
		req := asking("other", input)
		req.Options = usual
		if command != "" {
			data, _ := json.Marshal(map[string]string{"command": command})
			req.Earlier = []acp.ToolCallUpdate{said("execute", string(data), "")}
		}
		return RequestIn("s", "/w", req)
	}
	p.Always(ask("mkdir -p /srv/data", `{}`), EffectAllow)
	p.Always(ask("", `{}`), EffectAllow)
	for command, want := range map[string]Effect{"mkdir -p /srv/data": EffectAllow, "rm -rf /srv": "", "": ""} {
		for _, input := range []string{`{}`, ``, `null`} {
			if got := p.Recalled(ask(command, input)); got != want {
				t.Errorf("%q with the input %q: %q, want %q", command, input, got, want)
			}
		}
	}
}
