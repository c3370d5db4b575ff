package acphost

import (
	"strings"
	"testing"

	"github.com/goacp/acp"
)

// TestShows holds what a request shows of a command, in the shapes that agents send, and what of it
// is certain: only that is allowed by a rule about commands.
func TestShows(t *testing.T) {
	const certain, shown, unknown, none = "certain", "shown", "unknown", "none"
	for _, tt := range []struct {
		name         string
		kind         acp.ToolKind
		title, input string
		content      string
		command, how string
	}{
		{"a line", "execute", "Tool", `{"command":"touch a && echo b"}`, "", "touch a && echo b", certain},
		{"a line of a model's title", "execute", "demo shell", `{"command":"touch a && echo b","commands":["touch a","echo b"],"isBackground":false}`, "", "touch a && echo b", certain},
		{"the whole once more", "execute", "", `{"command":"touch a && echo b","commands":["touch a && echo b"]}`, "", "touch a && echo b", certain},
		{"its words beside it", "execute", "", `{"command":"touch a b","argv":["touch","a","b"]}`, "", "touch a b", certain},
		{"the shell's words beside it", "execute", "", `{"command":"touch a; echo b","argv":["bash","-lc","touch a; echo b"]}`, "", "touch a; echo b", certain},
		{"words", "execute", "", `{"command":["bash","-lc","touch a; echo b"],"cwd":"/w","parsed_cmd":[],"call_id":"x"}`, "", "touch a; echo b", certain},
		{"what Codex says of it", "execute", "", `{"command":["bash","-lc","cat a"],"cwd":"/w","parsed_cmd":[{"type":"read","cmd":"cat a","name":"a"},{"type":"unknown","cmd":"rm x"}]}`, "", "cat a", certain},
		{"something else by that name", "execute", "", `{"command":"cat a","parsed_cmd":[{"cmd":"rm x"}]}`, "", "cat a", shown},
		{"text by that name", "execute", "", `{"command":"cat a","parsed_cmd":"rm x"}`, "", "cat a", shown},
		{"words under another name", "execute", "", `{"argv":["touch","a b"]}`, "", "touch 'a b'", certain},
		{"arguments", "execute", "", `{"command":"npm","args":["run","test all"]}`, "", "npm run 'test all'", certain},
		{"no arguments", "execute", "", `{"command":"npm test","args":[]}`, "", "npm test", certain},
		{"a directory by another name", "execute", "", `{"command":"ls","workdir":"/w","yield_time_ms":10}`, "", "ls", certain},
		{"two names for one directory", "execute", "", `{"command":"ls","workdir":"/w","cwd":"/w"}`, "", "ls", certain},
		{"no kind", "", "", `{"command":"touch a","commands":["touch a"]}`, "", "touch a", certain},

		{"another command beside it", "execute", "", `{"command":"ls","commands":["rm x"]}`, "", "ls", shown},
		{"other words beside it", "execute", "", `{"command":"ls","argv":["rm","x"]}`, "", "ls", shown},
		{"a part of a word beside it", "execute", "", `{"command":"ls rmdir","commands":["rm"]}`, "", "ls rmdir", shown},
		{"what it reads", "execute", "", `{"command":"sh","stdin":"rm x"}`, "", "sh", shown},
		{"another place", "execute", "", `{"command":"ls","cwd":"/w","workdir":"/x"}`, "", "ls", shown},
		{"variables", "execute", "", `{"command":"make","env":{"SHELL":"/x"}}`, "", "make", shown},
		{"a line and arguments", "execute", "", `{"command":"ls -l","args":["rm","x"]}`, "", "'ls -l' rm x", shown},
		{"words that may be lines", "execute", "", `{"command":["ls -l","rm x"]}`, "", "'ls -l' 'rm x'", shown},
		{"words with signs of a shell", "execute", "", `{"command":"echo","args":["a;","rm","x"]}`, "", "echo 'a;' rm x", shown},
		{"lines alone", "execute", "", `{"commands":["ls","rm x"]}`, "", "ls\nrm x", shown},
		{"in capitals", "execute", "", `{"Command":"ls"}`, "", "ls", shown},

		{"twice", "execute", "", `{"command":"ls","command":"rm x"}`, "", "", unknown},
		{"twice, spelled differently", "execute", "", `{"command":"ls","Command":"rm x"}`, "", "", unknown},
		{"broken", "execute", "", `{"command":"ls"`, "", "", unknown},

		{"text", "", "Bash", ``, "Requesting approval to Running: touch a\necho b", "touch a\necho b", shown},
		{"text of a tool that executes", "execute", "Bash", ``, "Running: touch a", "touch a", shown},
		{"text in backticks", "", "Bash", ``, "Requesting approval to run command `touch a`", "touch a", shown},
		{"text of a prompt", "execute", "Bash", ``, "$ touch a", "touch a", shown},
		{"a title in backticks", "execute", "`touch a`", ``, "", "touch a", shown},

		{"a title", "execute", "demo shell", ``, "", "", unknown},
		{"other text", "execute", "Bash", ``, "May I?", "", unknown},
		{"a number", "execute", "Bash", `{"command":7}`, "", "", unknown},
		{"a list of numbers", "execute", "Bash", `{"command":[7]}`, "", "", unknown},
		{"too long", "execute", "Bash", ``, "$ " + strings.Repeat("x", maxShown), "", unknown},

		{"nothing is run", "", "Read a", `{"path":"/a"}`, "Reading: a", "", none},
		{"a reader", "read", "Read", `{"command":"ls"}`, "$ ls", "", none},
	} {
		req := asking(tt.kind, tt.input)
		call := &req.Subject.(*acp.ToolCallPermissionSubject).ToolCall
		call.Title = acp.Set(tt.title)
		if tt.content != "" {
			call.Content = acp.Set([]acp.ToolCallContent{&acp.BlockContent{Content: acp.Text(tt.content)}})
		}
		r := RequestOf(req)
		command, sure := r.Shows()
		how := unknown
		switch {
		case sure && command == "":
			how = none
		case sure:
			how = certain
		case command != "":
			how = shown
		}
		if command != tt.command || how != tt.how {
			t.Errorf("%s: %q %s, want %q %s", tt.name, command, how, tt.command, tt.how)
		}
		if r.CommandUnknown != (how == shown || how == unknown) || (r.Command != "") != (how == certain) || (r.Shown != "") != (how == shown) {
			t.Errorf("%s: %+v", tt.name, r)
		}
	}
}
