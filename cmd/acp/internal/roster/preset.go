package roster

import "slices"

// A preset is an agent that is known to speak the protocol over its standard input and output, and
// how it is started for that. A comment says where that is confirmed: the public ACP registry (read
// in the autumn of 2026), the agent's own documentation, or the package on npm.
type preset struct {
	name, title string
	argv        []string
	others      [][]string // other programs that are the same agent, in order
	noFiles     bool       // the agent works worse with files lent to it
	alone       []string   // modes in which the agent decides what is permitted, and asks for nothing
	protocol    int        // the only version that it speaks, so that it is not started twice to find out; or 0
	older       []string   // the arguments with which versions are started that do not know argv
	env         map[string]string
	homepage    string
	install     string
}

// agent returns the preset as an agent: the first of its programs that is installed, or the first
// of all.
func (p preset) agent(environ []string) Agent {
	of := func(argv []string) Agent {
		return Agent{
			Name: p.name, Title: p.title, Source: SourcePreset,
			Command: argv[0], Args: argv[1:], Env: p.env,
			NoFiles: p.noFiles, Alone: p.alone, Protocol: p.protocol, Older: p.older, Homepage: p.homepage, Install: p.install, environ: environ,
		}
	}
	first := of(p.argv)
	for _, argv := range append([][]string{p.argv}, p.others...) {
		if a := of(argv); len(p.others) > 0 {
			if _, ok := Installed(a); ok {
				return a
			}
		}
	}
	return first
}

// presets are the well-known agents, by name.
var presets = []preset{
	{
		name: "amp", title: "Amp", argv: []string{"amp-acp"}, // registry: amp-acp
		homepage: "https://github.com/tao12345666333/amp-acp", install: "npm install -g amp-acp",
	},
	{
		name: "auggie", title: "Auggie", argv: []string{"auggie", "--acp"}, // registry: auggie
		env:      map[string]string{"AUGMENT_DISABLE_AUTO_UPDATE": "1"},
		homepage: "https://www.augmentcode.com", install: "npm install -g @augmentcode/auggie",
	},
	{
		// registry: claude-acp; npm: the name of the program, and that of the one
		// before it. 0.101.0 begins in auto, unless the settings of Claude Code say otherwise
		name: "claude", title: "Claude", argv: []string{"claude-agent-acp"}, others: [][]string{{"claude-code-acp"}},
		alone:    []string{"auto", "bypassPermissions"},
		homepage: "https://github.com/agentclientprotocol/claude-agent-acp",
		install:  "npm install -g @agentclientprotocol/claude-agent-acp",
	},
	{
		name: "cline", title: "Cline", argv: []string{"cline", "--acp"}, // registry: cline
		homepage: "https://cline.bot/cli", install: "npm install -g cline",
	},
	{
		name: "codex", title: "Codex", argv: []string{"codex-acp"}, // registry: codex-acp; npm
		homepage: "https://github.com/agentclientprotocol/codex-acp", install: "npm install -g @agentclientprotocol/codex-acp",
	},
	{
		name: "copilot", title: "GitHub Copilot", argv: []string{"copilot", "--acp"}, // registry: github-copilot-cli; its documentation
		homepage: "https://github.com/github/copilot-cli", install: "npm install -g @github/copilot",
	},
	{
		name: "cortex", title: "Cortex Code", argv: []string{"cortex", "acp", "serve"}, // registry: cortex-code
		homepage: "https://docs.snowflake.com/en/user-guide/cortex-code/cortex-code", install: "see https://docs.snowflake.com/en/user-guide/cortex-code/cortex-code",
	},
	{
		name: "cursor", title: "Cursor", argv: []string{"cursor-agent", "acp"}, // registry: cursor
		homepage: "https://cursor.com/docs/cli/acp", install: "see https://cursor.com/docs/cli",
	},
	{
		name: "devin", title: "Devin", argv: []string{"devin", "acp"}, // registry: devin
		homepage: "https://docs.devin.ai/cli", install: "see https://docs.devin.ai/cli",
	},
	{
		// registry: factory-droid, whose newest entry starts acp-daemon; acp is what
		// the ones before it started. 0.215.0 repeats version 2 and speaks version 1
		name: "droid", title: "Factory Droid", argv: []string{"droid", "exec", "--output-format", "acp"}, protocol: 1,
		env:      map[string]string{"DROID_DISABLE_AUTO_UPDATE": "true", "FACTORY_DROID_AUTO_UPDATE_ENABLED": "false"},
		homepage: "https://factory.ai/product/cli", install: "npm install -g droid",
	},
	{
		// registry: gemini, also for older versions; its documentation. With files
		// lent to it, it can create none: google-gemini/gemini-cli issue 17588
		name: "gemini", title: "Gemini CLI", argv: []string{"gemini", "--acp"}, older: []string{"gemini", "--experimental-acp"},
		noFiles: true, protocol: 1,
		homepage: "https://geminicli.com", install: "npm install -g @google/gemini-cli",
	},
	{
		name: "goose", title: "goose", argv: []string{"goose", "acp"}, // registry: goose
		homepage: "https://block.github.io/goose/", install: "see https://block.github.io/goose/",
	},
	{
		name: "grok", title: "Grok Build", argv: []string{"grok", "agent", "stdio"}, // registry: grok-build; npm
		homepage: "https://x.ai/cli", install: "npm install -g @xai-official/grok",
	},
	{
		name: "junie", title: "Junie", argv: []string{"junie", "--acp=true"}, // registry: junie; npm
		homepage: "https://junie.jetbrains.com", install: "npm install -g @jetbrains/junie",
	},
	{
		name: "kilo", title: "Kilo", argv: []string{"kilo", "acp"}, // registry: kilo; npm
		homepage: "https://kilo.ai", install: "npm install -g @kilocode/cli",
	},
	{
		name: "kimi", title: "Kimi Code", argv: []string{"kimi", "acp"}, // registry: kimi; its documentation; npm
		homepage: "https://github.com/MoonshotAI/kimi-code", install: "npm install -g @moonshot-ai/kimi-code",
	},
	{
		name: "kiro", title: "Kiro", argv: []string{"kiro-cli", "acp"}, // its documentation
		homepage: "https://kiro.dev/docs/cli/acp", install: "see https://kiro.dev/docs/cli",
	},
	{
		name: "opencode", title: "OpenCode", argv: []string{"opencode", "acp"}, // registry: opencode; its documentation; npm
		homepage: "https://opencode.ai", install: "npm install -g opencode-ai",
	},
	{
		name: "openhands", title: "OpenHands", argv: []string{"openhands", "acp"}, // its documentation; PyPI
		homepage: "https://docs.openhands.dev", install: "uv tool install openhands",
	},
	{
		name: "pi", title: "pi", argv: []string{"pi-acp"}, // registry: pi-acp
		homepage: "https://github.com/svkozak/pi-acp", install: "npm install -g pi-acp",
	},
	{
		name: "qoder", title: "Qoder CLI", argv: []string{"qodercli", "--acp"}, // registry: qoder
		homepage: "https://qoder.com", install: "npm install -g @qoder-ai/qodercli",
	},
	{
		name: "qwen", title: "Qwen Code", argv: []string{"qwen", "--acp"}, // registry: qwen-code
		homepage: "https://github.com/QwenLM/qwen-code", install: "npm install -g @qwen-code/qwen-code",
	},
	{
		name: "stakpak", title: "Stakpak", argv: []string{"stakpak", "acp"}, // registry: stakpak
		homepage: "https://github.com/stakpak/agent", install: "see https://github.com/stakpak/agent",
	},
	{
		name: "vibe", title: "Mistral Vibe", argv: []string{"vibe-acp"}, // registry: mistral-vibe; PyPI
		homepage: "https://github.com/mistralai/mistral-vibe", install: "uv tool install mistral-vibe",
	},
}

// IsPreset reports whether a name is that of a well-known agent.
func IsPreset(name string) bool {
	return slices.ContainsFunc(presets, func(p preset) bool { return p.name == name })
}
