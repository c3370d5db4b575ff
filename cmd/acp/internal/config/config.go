// Package config reads how the user has set the program up: built-in defaults,
// the user's file, the project's file, the environment and flags, in rising
// order, each value with where it comes from.
package config

import "time"

// Settings are all settings of the program. The tags are the keys in files.
type Settings struct {
	// Agent is the name of the agent that is used when none is named; "" is the
	// built-in one.
	Agent       string               `koanf:"agent"`
	Agents      map[string]Agent     `koanf:"agents"`
	MCP         map[string]MCPServer `koanf:"mcp"`
	Permissions Permissions          `koanf:"permissions"`
	UI          UI                   `koanf:"ui"`
	Store       Store                `koanf:"store"`
	Timeouts    Timeouts             `koanf:"timeouts"`
}

// An Agent is how to start an agent.
type Agent struct {
	Command string            `koanf:"command"`
	Args    []string          `koanf:"args"`
	Env     map[string]string `koanf:"env"` // added to the environment; ${NAME} is replaced
	Dir     string            `koanf:"dir"` // to run in; "" is that of the session
	// Protocol is the only version of the protocol to speak, or 0.
	Protocol int `koanf:"protocol"`
	// LoginEnv starts it with the environment of a login shell.
	LoginEnv bool `koanf:"login_env"`
	// Auth is the id of the way to log in that is used without asking.
	Auth string `koanf:"auth"`
}

// An MCPServer is a server that sessions get: a command, or a URL.
type MCPServer struct {
	Command string            `koanf:"command"`
	Args    []string          `koanf:"args"`
	Env     map[string]string `koanf:"env"`
	Type    string            `koanf:"type"` // stdio, http or sse; "" is told by the other members
	URL     string            `koanf:"url"`
	Headers map[string]string `koanf:"headers"`
	Off     bool              `koanf:"off"`
}

// Permissions say what agents may do without asking.
type Permissions struct {
	// Policy is the file of an acphost policy, in JSON.
	Policy string `koanf:"policy"`
	// Default is ask, allow or deny.
	Default string `koanf:"default"`
	// Allow and Deny are rules in one line each: see [ParseRule].
	Allow []string `koanf:"allow"`
	Deny  []string `koanf:"deny"`
}

// UI says how conversations look.
type UI struct {
	Plain    bool   `koanf:"plain"`    // lines instead of a screen
	Theme    string `koanf:"theme"`    // auto, dark, light
	Thoughts string `koanf:"thoughts"` // folded or shown
	Diff     string `koanf:"diff"`     // auto, unified, split
	Mouse    bool   `koanf:"mouse"`
}

// Store says where conversations are kept.
type Store struct {
	Off  bool   `koanf:"off"`
	Path string `koanf:"path"` // "" is the XDG data directory
	Sync string `koanf:"sync"` // full (survives loss of power) or normal (survives crashes)
}

// Timeouts bound waiting for agents.
type Timeouts struct {
	Connect time.Duration `koanf:"connect"` // starting and initializing
	Slow    time.Duration `koanf:"slow"`    // after which slowness is told
	Ask     time.Duration `koanf:"ask"`     // for the user's answer to a permission request
}

// A Config is the settings in force and where each comes from.
type Config struct {
	Settings
}
