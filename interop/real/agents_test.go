package real

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp/internal/standin"
)

// An agent is one that others wrote.
type agent struct {
	name string
	pkg  string // of npm
	bin  string
	args []string
	// program, if set, is what runs instead of a script of the package.
	program func(t *testing.T) []string
	// title is what the agent calls itself.
	title string
	// versions are the protocol versions it speaks.
	versions []int
	// noFiles keeps our files from it: see docs/agents-tried.md.
	noFiles bool
	// noList says that it cannot list its sessions.
	noList bool
	// lateHistory says that its answer to session/load overtakes the history.
	lateHistory bool
	// later changes a home as time would between two processes.
	later func(t *testing.T, p *place)
	// configure prepares a home and returns what the environment says besides.
	configure func(t *testing.T, p *place, url string) []string
	tools     standin.Tools
}

// words splits what follows a verb that writes.
func words(rest string) (file, text string) {
	file, text, _ = strings.Cut(rest, " ")
	return file, text
}

// offers picks the first name of several that is offered.
func offers(offered []string, names ...string) (string, error) {
	for _, n := range names {
		if slices.Contains(offered, n) {
			return n, nil
		}
	}
	return "", fmt.Errorf("none of %q is offered, but %q", names, offered)
}

var agents = []agent{
	{
		name: "gemini-cli", pkg: "@google/gemini-cli", bin: "gemini", args: []string{"--acp", "--model", "gemini-2.5-flash"},
		title: "gemini-cli", versions: []int{1}, noFiles: true, noList: true, lateHistory: true,
		configure: func(t *testing.T, p *place, url string) []string {
			p.write(t, ".gemini/settings.json", map[string]any{
				"security":  map[string]any{"auth": map[string]any{"selectedType": "gemini-api-key"}},
				"general":   map[string]any{"enableAutoUpdate": false},
				"privacy":   map[string]any{"usageStatisticsEnabled": false},
				"telemetry": map[string]any{"enabled": false},
			})
			return []string{"GEMINI_API_KEY=stand-in", "GOOGLE_GEMINI_BASE_URL=" + url}
		},
		// It names a session's file after the minute, and begins a file anew that
		// bears the name of the session it is to load.
		later: func(t *testing.T, p *place) {
			chats, err := filepath.Glob(filepath.Join(p.home, ".gemini/tmp/*/chats/session-*.jsonl"))
			if err != nil || len(chats) == 0 {
				t.Fatalf("%q, %v", chats, err)
			}
			for _, c := range chats {
				name := "session-2001-01-01T00-00-" + c[strings.LastIndexByte(c, '-')+1:]
				if err := os.Rename(c, filepath.Join(filepath.Dir(c), name)); err != nil {
					t.Fatal(err)
				}
			}
		},
		tools: func(verb, rest string, offered []string) (standin.Call, error) {
			if verb == "write" {
				file, text := words(rest)
				return standin.Call{Name: "write_file", Args: map[string]any{"file_path": file, "content": text}}, nil
			}
			return standin.Call{Name: "run_shell_command", Args: map[string]any{"command": rest, "description": "as asked"}}, nil
		},
	},
	{
		name: "qwen-code", pkg: "@qwen-code/qwen-code", bin: "qwen", args: []string{"--acp"},
		title: "qwen-code", versions: []int{1},
		configure: func(t *testing.T, p *place, url string) []string {
			p.write(t, ".qwen/settings.json", map[string]any{
				"security":  map[string]any{"auth": map[string]any{"selectedType": "openai"}},
				"general":   map[string]any{"enableAutoUpdate": false},
				"tools":     map[string]any{"approvalMode": "default"},
				"privacy":   map[string]any{"usageStatisticsEnabled": false},
				"telemetry": map[string]any{"enabled": false},
			})
			return []string{"OPENAI_API_KEY=stand-in", "OPENAI_BASE_URL=" + url + "/v1", "OPENAI_MODEL=stand-in"}
		},
		tools: func(verb, rest string, offered []string) (standin.Call, error) {
			if verb == "write" {
				file, text := words(rest)
				return standin.Call{Name: "write_file", Args: map[string]any{"file_path": file, "content": text}}, nil
			}
			return standin.Call{Name: "run_shell_command", Args: map[string]any{"command": rest, "description": "as asked", "is_background": false}}, nil
		},
	},
	{
		name: "opencode", pkg: "opencode-ai", args: []string{"acp"},
		title: "OpenCode", versions: []int{1},
		program: func(t *testing.T) []string {
			arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
			if arch == "" {
				arch = runtime.GOARCH
			}
			return []string{module(t, "opencode-"+runtime.GOOS+"-"+arch, "bin", "opencode")}
		},
		configure: func(t *testing.T, p *place, url string) []string {
			config, err := json.Marshal(map[string]any{
				"model": "standin/stand-in", "small_model": "standin/stand-in", "autoupdate": false, "share": "disabled",
				"provider": map[string]any{"standin": map[string]any{
					"npm": "@ai-sdk/openai-compatible", "name": "Stand-in",
					"options": map[string]any{"baseURL": url + "/v1", "apiKey": "stand-in"},
					"models":  map[string]any{"stand-in": map[string]any{"name": "Stand-in"}},
				}},
				"permission": map[string]any{"edit": "ask", "bash": "ask"},
			})
			if err != nil {
				t.Fatal(err)
			}
			return []string{"OPENCODE_CONFIG_CONTENT=" + string(config), "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"}
		},
		tools: func(verb, rest string, offered []string) (standin.Call, error) {
			if verb == "write" {
				file, text := words(rest)
				return standin.Call{Name: "write", Args: map[string]any{"filePath": file, "content": text}}, nil
			}
			return standin.Call{Name: "bash", Args: map[string]any{"command": rest, "description": "as asked"}}, nil
		},
	},
	{
		name: "claude-agent-acp", pkg: "@agentclientprotocol/claude-agent-acp", bin: "claude-agent-acp",
		title: "@agentclientprotocol/claude-agent-acp", versions: []int{1, 2},
		configure: func(t *testing.T, p *place, url string) []string {
			// Without it the model decides what is permitted.
			p.write(t, ".claude/settings.json", map[string]any{"permissions": map[string]any{"defaultMode": "default"}})
			return []string{"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_AUTH_TOKEN=stand-in",
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1"}
		},
		tools: func(verb, rest string, offered []string) (standin.Call, error) {
			if verb == "write" {
				file, text := words(rest)
				return standin.Call{Name: "Write", Args: map[string]any{"file_path": file, "content": text}}, nil
			}
			return standin.Call{Name: "Bash", Args: map[string]any{"command": rest, "description": "as asked"}}, nil
		},
	},
	{
		name: "codex-acp", pkg: "@agentclientprotocol/codex-acp", bin: "codex-acp",
		title: "@agentclientprotocol/codex-acp", versions: []int{1, 2},
		configure: func(t *testing.T, p *place, url string) []string {
			p.write(t, ".codex/config.toml", fmt.Sprintf(`model = "stand-in"
model_provider = "standin"
approval_policy = "on-request"
sandbox_mode = "read-only"
check_for_update_on_startup = false
[model_providers.standin]
name = "standin"
base_url = "%s/v1"
wire_api = "responses"
env_key = "STANDIN_KEY"
request_max_retries = 0
stream_max_retries = 0
`, url))
			return []string{"STANDIN_KEY=stand-in", "NO_BROWSER=1", "MODEL_PROVIDER=standin", "INITIAL_AGENT_MODE=read-only"}
		},
		tools: func(verb, rest string, offered []string) (standin.Call, error) {
			if verb == "write" {
				file, text := words(rest)
				rest = fmt.Sprintf("echo %s > %s", text, file)
			}
			name, err := offers(offered, "exec_command", "shell_command", "shell")
			switch name {
			case "exec_command":
				return standin.Call{Name: name, Args: map[string]any{"cmd": rest, "sandbox_permissions": "require_escalated", "justification": "as asked"}}, nil
			case "shell":
				return standin.Call{Name: name, Args: map[string]any{"command": []string{"sh", "-c", rest}}}, nil
			}
			return standin.Call{Name: name, Args: map[string]any{"command": rest}}, err
		},
	},
}

// command returns how an agent is started, and its version.
func (a agent) command(t *testing.T) (command []string, version string) {
	t.Helper()
	if a.program == nil {
		command, version = script(t, a.pkg, a.bin)
	} else {
		command = a.program(t)
		_, version = script(t, a.pkg, "opencode")
	}
	return append(command, a.args...), version
}
