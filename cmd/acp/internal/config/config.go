// Package config reads the settings of the program. They come from built-in defaults, the user's
// file, the project's file, the environment and flags, in rising order; each value knows its
// origin. Files have at most 1 MiB.
package config

import "time"

// Settings are all settings of the program. The tags are the keys in files, the default, the words
// that are allowed, and the flag that sets the same.
type Settings struct {
	// Agent is the agent that is used when none is named: its name or a command line; "" means the
	// built-in one.
	Agent       string               `key:"agent" flag:"agent" help:"agent to use when none is named"`
	Agents      map[string]Agent     `key:"agents"`
	Proxies     map[string]Proxy     `key:"proxies"`
	MCP         map[string]MCPServer `key:"mcp"`
	Permissions Permissions          `key:"permissions"`
	Model       Model                `key:"model"`
	Providers   map[string]Provider  `key:"providers"`
	UI          UI                   `key:"ui"`
	Store       Store                `key:"store"`
	Serve       Serve                `key:"serve"`
	Timeouts    Timeouts             `key:"timeouts"`
}

// An Agent says how an agent is started.
type Agent struct {
	// Command is the program; "" means that of the preset of the same name.
	Command string   `key:"command" path:"program" help:"program to start"`
	Args    []string `key:"args" help:"its arguments"`
	// URL is where the agent is reached if it runs already; there is no command then.
	URL string `key:"url" help:"address of an agent that is running already: https://, wss://, http:// or ws://, unix:PATH, tcp://HOST:PORT or unix:///FILE"`
	// TokenFile, TokenEnv and TokenKeyring are where the token is that its server wants; one of them.
	TokenFile    string `key:"token_file" path:"file" help:"file with the token that its server wants"`
	TokenEnv     string `key:"token_env" help:"environment variable with that token"`
	TokenKeyring string `key:"token_keyring" help:"SERVICE/USER of that token in the keyring of the system"`
	// Insecure sends the token over an unencrypted connection to another machine.
	Insecure bool              `key:"insecure" help:"send the token even unencrypted to another machine"`
	Env      map[string]string `key:"env" secret:"true" help:"added to its environment; ${NAME} is replaced"`
	Dir      string            `key:"dir" path:"file" help:"directory to run in; that of the session by default"`
	// Protocol is the only version of the protocol to speak, or 0.
	Protocol int `key:"protocol" enum:"0,1,2" help:"the only protocol version to speak; 0 is what the preset says, or any"`
	// LoginEnv starts it with the environment of a login shell.
	LoginEnv bool `key:"login_env" help:"start it with the environment of a login shell"`
	// NoFiles lends it no files: it opens them by itself.
	NoFiles bool `key:"no_files" help:"lend it no files through the protocol: it opens them by itself"`
	// Auth is the id of the way to log in that is used without asking.
	Auth string `key:"auth" help:"way to log in that is used without asking"`
	// Proxies stand between it and everybody who talks to it, the first one next to the client.
	Proxies []string `key:"proxies" help:"proxies in front of it, the first one next to the client: names of proxies, ready-made ones with their flags, or command lines; the programs among them may get env, too"`
}

// A Proxy is a program that stands between a client and an agent. Its name must not be that of a
// ready-made one.
type Proxy struct {
	Command string   `key:"command" path:"program" help:"program to start"`
	Args    []string `key:"args" help:"its arguments"`
}

// An MCPServer is a server of each session: a command, or a URL.
type MCPServer struct {
	Command string            `key:"command" path:"program" help:"program of a stdio server"`
	Args    []string          `key:"args" help:"its arguments"`
	Env     map[string]string `key:"env" secret:"true" help:"added to its environment; ${NAME} is replaced"`
	// Type is stdio, http or sse; "" means that the other fields decide.
	Type    string            `key:"type" enum:"stdio,http,sse" help:"transport; told by command or url by default"`
	URL     string            `key:"url" help:"address of an http or sse server"`
	Headers map[string]string `key:"headers" secret:"true" help:"sent with every request to it"`
	Off     bool              `key:"off" help:"leave it out"`
}

// Permissions say what agents may do without asking.
type Permissions struct {
	// Policy is the file of an acphost policy, in JSON.
	Policy string `key:"policy" path:"file" flag:"policy" help:"file with a policy in JSON"`
	// Default is ask, allow or deny; "" means what the policy file says, or ask.
	Default string `key:"default" enum:"ask,allow,deny" help:"what happens to requests that no rule matches"`
	// Allow and Deny are rules, one line each: see [ParseRule]. Those of all files, of the
	// environment and of flags are combined.
	Allow []string `key:"allow" rules:"true" flag:"allow" help:"rules for what is allowed without asking"`
	Deny  []string `key:"deny" rules:"true" flag:"deny" help:"rules for what is never allowed"`
}

// Model says which language model the built-in agent uses.
type Model struct {
	// Use is a reference such as anthropic/claude-sonnet-5; "none" means no model, and "" the
	// first that is found.
	Use    string `key:"use" flag:"model" help:"language model of the built-in agent: PROVIDER/MODEL, script:FILE, cassette:FILE, or none"`
	Effort string `key:"effort" flag:"effort" help:"how much the model thinks, such as low, medium or high"`
	// MaxCost is a number, in the currency of the model's price; "" means no limit.
	MaxCost string `key:"max_cost" help:"what a prompt may cost, if the model's price is known"`
	// Record is a file: see package model/cassette.
	Record      string `key:"record" path:"file" help:"file to which the answers of the model are appended, for --model cassette:FILE"`
	MaxRequests int    `key:"max_requests" help:"how often a prompt may ask the model; 0 is 200 times"`
	// PassEnv are keys that commands get in spite of that.
	PassEnv []string `key:"pass_env" help:"environment variables with keys that commands and MCP servers get all the same"`
}

// A Provider is a service or a server that has language models. Its name is that of one that is known,
// of which it changes what is set here, or a new one.
type Provider struct {
	API string `key:"api" enum:",chat,responses,messages,ollama" help:"its interface: chat, responses, messages or ollama"`
	URL string `key:"url" help:"its base URL"`
	// Key is the key itself; KeyCommand prints it; Keyring is where it is in the keyring of the
	// system. One of them at most.
	Key        string   `key:"key" secret:"true" help:"its key; ${NAME} is replaced"`
	KeyCommand []string `key:"key_command" help:"command that prints its key"`
	Keyring    string   `key:"keyring" help:"SERVICE/USER of its key in the keyring of the system"`
	Dialect    string   `key:"dialect" help:"which of the known servers it is like: openai, ollama, llamacpp, vllm, lmstudio, openrouter, gemini or deepseek"`
	Context    int      `key:"context" help:"context window of its models, in tokens"`
	Models     []string `key:"models" help:"its models, the one to be used by default first"`
}

// UI says what conversations look like.
type UI struct {
	Plain    bool   `key:"plain" flag:"plain" help:"lines instead of a screen"`
	Theme    string `key:"theme" default:"auto" enum:"auto,dark,light,colorblind,contrast,gruvbox,nord,solarized" help:"colours; all but dark and light follow the background of the terminal"`
	Thoughts string `key:"thoughts" default:"folded" enum:"folded,shown" help:"how thoughts are shown"`
	Diff     string `key:"diff" default:"auto" enum:"auto,unified,split" help:"how changes are shown"`
	Editing  string `key:"editing" default:"plain" enum:"plain,vim" help:"how prompts are edited"`
	// Keys are keys of actions.
	Keys map[string]string `key:"keys" help:"key of an action, or none: palette, options, mode, prompts, sessions, back, find, copy, fold, subagents, changes, jobs, stderr, editor, send-now or help"`
	// Links says what opens files.
	Links  string `key:"links" default:"file" enum:"file,off,vscode,vscodium,cursor,windsurf,zed,idea" help:"what opens a file of the project whose name is clicked in the conversation"`
	Mouse  bool   `key:"mouse" default:"true" help:"scroll with the mouse"`
	Notify bool   `key:"notify" default:"true" help:"notify the user who is waited for and looks elsewhere"`
	// NotifyBy is how the terminal does it; auto is text where the terminal is known to show it.
	NotifyBy string `key:"notify_by" default:"auto" enum:"auto,bell,osc9,osc777,osc99" help:"how the terminal notifies: with a bell, or with text by one of three sequences"`
	// NotifyCommand is run with the text as its last argument.
	NotifyCommand []string `key:"notify_command" help:"command that notifies, too; the text is added to its arguments"`
	Progress      string   `key:"progress" default:"auto" enum:"auto,on,off" help:"show in the tab of the terminal that the agent works"`
}

// Store says where conversations are kept.
type Store struct {
	Off bool `key:"off" flag:"no-store" help:"keep no conversations"`
	// Path is the directory, or the file of an earlier version; "" means one in the XDG data
	// directory.
	Path string `key:"path" path:"file" help:"directory with the conversations; where an earlier version had a file FILE.db it is FILE"`
	// Sync is full, which survives loss of power, or normal, which survives crashes.
	Sync string `key:"sync" default:"full" enum:"full,normal" help:"what kept updates survive: loss of power, or crashes"`
}

// Timeouts bound how long the program waits for agents.
type Timeouts struct {
	Connect time.Duration `key:"connect" default:"1m" flag:"connect-timeout" help:"for starting and initializing an agent"`
	Slow    time.Duration `key:"slow" default:"3s" help:"after which a slow agent is reported"`
	Ask     time.Duration `key:"ask" default:"10m" help:"for the user's answer to a permission request"`
}

// A Config is the settings in force and their origins. It does not change after [Load] has returned
// it.
type Config struct {
	Settings
	// UserFile is the user's file, which need not exist, and ProjectFile that of the project, or ""
	// if there is none.
	UserFile, ProjectFile string
	// Dirs are the directories in which the program keeps its files.
	Dirs Dirs
	// Environ is the environment that was used.
	Environ []string

	items     []item // in force, in the order of their keys
	untrusted []string
}
