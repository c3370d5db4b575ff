//go:build unix

package tap

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/shellline"
)

// TestReleasedAsAsked: what the user has allowed reaches the client only if it leads where it did when
// they were asked, and no rule denies it by now.
func TestReleasedAsAsked(t *testing.T) {
	rules := append([]acphost.Rule{
		{Name: "keys", Effect: acphost.EffectDeny, Paths: []string{"**/secret/**"}},
		{Name: "there", Effect: acphost.EffectDeny, Commands: []string{"rm *"}, Cwd: []string{"**/secret"}},
	}, append(askRules(), acphost.Rule{Name: "all", Effect: acphost.EffectAllow})...)
	rules[3].Commands = []string{"rm *", "./tool*", "sh *"}
	link := func(to, name string) func(p *place) {
		return func(p *place) {
			path := filepath.Join(p.root, name)
			_ = os.Remove(path)
			if err := os.Symlink(to, path); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	read := `{"jsonrpc":"2.0","id":1,"method":"fs/read_text_file","params":{"sessionId":"s","path":"ROOT/.env"}}`
	write := `{"jsonrpc":"2.0","id":1,"method":"fs/write_text_file","params":{"sessionId":"s","path":"ROOT/now/.env","content":"x"}}`
	run := func(command, cwd string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"terminal/create","params":{"sessionId":"s","command":%q,"cwd":%q}}`, command, cwd)
	}
	for _, tt := range []struct {
		name, call string
		then       func(p *place)
		log        string // "" if it is released
	}{
		{"nothing changes", read, func(*place) {}, ""},
		{"another file changes", read, link("b", "other"), ""},
		{"a file that is put in place", write, func(p *place) { p.put("a/.env") }, ""},
		{"a link to the outside", read, link("../other/.env", ".env"), "refuse roots"},
		{"a link to another file", read, link("a/.env", ".env"), "refuse roots secrets it has come to lead somewhere else since the user was asked"},
		{"a link that leads nowhere", read, link("none", ".env"), "refuse roots secrets it has come to lead somewhere else since the user was asked"},
		{"a link to what a rule denies", read, link("secret/key", ".env"), "refuse rule keys denied by keys"},
		{"a directory on the way", write, link("b", "now"), "refuse roots secrets it has come to lead somewhere else since the user was asked"},
		{"a working directory", run("rm x", "ROOT/now"), link("b", "now"), "refuse roots removing it has come to lead somewhere else since the user was asked"},
		{"a working directory outside", run("rm x", "ROOT/now"), link("../other", "now"), "refuse roots"},
		{"a working directory that a rule is about", run("rm x", "ROOT/now"), link("secret", "now"), "refuse rule there denied by there"},
		{"a program", run("./tool", "ROOT"), link("a/tool", "tool"), "refuse roots removing it has come to lead somewhere else since the user was asked"},
		{"a script", run("sh now/script -x", "ROOT"), link("b", "now"), "refuse roots removing it has come to lead somewhere else since the user was asked"},
		{"a program elsewhere", run("rm x", "ROOT"), link("a/tool", "tool"), ""},
		{"the session ends", read, func(p *place) {
			p.FromClient([]byte(`{"jsonrpc":"2.0","id":"c","method":"session/close","params":{"sessionId":"s"}}`))
			p.agent(`{"jsonrpc":"2.0","id":"c","result":{}}`)
		}, "refuse roots there is no such session"},
		{"it is cancelled", read, func(p *place) {
			p.FromClient([]byte(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}`))
		}, "refuse cancelled secrets the turn was cancelled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t, 1, rules...)
			p.policy.Commands = shellline.Parser{}
			for _, name := range []string{".env", "a/.env", "a/tool", "b/.env", "secret/key", "tool", "../other/.env"} {
				if name != "a/.env" || !strings.Contains(tt.name, "put in place") {
					p.put(name)
				}
			}
			link("a", "now")(p)
			call := strings.ReplaceAll(tt.call, "ROOT", filepath.ToSlash(p.root))
			id := idOf(t, p.agent("%s", call))
			tt.then(p)
			is, release, reply := p.Settle(allowing(id))
			released := string(release) == call && reply == nil
			if !is || released != (tt.log == "") || !released && (release != nil || reply == nil) {
				t.Errorf("%t, released %q, answered %q", is, release, reply)
			}
			if tt.log != "" && !strings.HasPrefix(p.last(), tt.log) {
				t.Errorf("noted %q, want %q", p.last(), tt.log)
			}
			if p.heldBytes != 0 {
				t.Errorf("%d bytes are held", p.heldBytes)
			}
		})
	}
}

// put puts a file below the root.
func (p *place) put(name string) {
	p.t.Helper()
	path := filepath.Join(p.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
		p.t.Fatal(err)
	}
}
