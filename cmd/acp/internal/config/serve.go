package config

// Serve says whom acp serve serves, and what they may do. What a project says of it counts only once the user
// trusts its file.
type Serve struct {
	LiveAgents int `key:"live_agents" flag:"live-agents" help:"agents of sessions that are kept, of all users, that may run at once; 0 is 64"`

	OIDC      OIDC              `key:"oidc"`
	Isolation Isolation         `key:"isolation"`
	Users     map[string]Rights `key:"users"`
	Groups    map[string]Rights `key:"groups"`
}

// OIDC says whose tokens are accepted. The roles are those of the groups.
type OIDC struct {
	Issuer string `key:"issuer" flag:"oidc-issuer" help:"OpenID Connect issuer whose tokens are accepted, such as https://id.example"`
	Client string `key:"client" flag:"oidc-client" help:"client id that its tokens must be for"`
	Secret string `key:"secret" secret:"true" help:"its secret there, with which browsers can log in at an issuer that has no public clients; ${NAME} is replaced"`
	Groups string `key:"groups_claim" default:"groups" help:"claim of its tokens with the groups of a user"`
	User   string `key:"user_claim" default:"sub" help:"claim of its tokens with the name of a user"`
}

// Isolation says what keeps agents from each other, and from this machine.
type Isolation struct {
	Mode string `key:"mode" flag:"isolation" default:"none" enum:"none,bwrap,container" help:"what agents run in: none, bwrap (bubblewrap), or container (a command of yours)"`
	// NoNetwork, ReadOnly and Pass are for bwrap.
	NoNetwork bool     `key:"no_network" help:"agents have no network"`
	ReadOnly  []string `key:"read_only" help:"further files and directories that agents can read, such as those of their programs"`
	Pass      []string `key:"pass_env" help:"further variables of the server's environment that agents get"`
	// Container is a command line, one argument an entry.
	Container []string `key:"container" help:"command of the mode container: {workspace}, {home}, {cwd}, {user} are replaced; {env} and {command} stand for several arguments"`
}

// Rights are what a user, or each user of a group, may do. The name * means everybody else.
type Rights struct {
	Role string `key:"role" enum:",viewer,prompter,approver,owner" help:"role: of the users of a group that an issuer names, or of a user of this machine on the socket"`
	// Agents, Directories and MCP restrict; empty lists do not. The only entry "none" permits nothing.
	Agents      []string `key:"agents" help:"agents that may be used; all by default"`
	Directories []string `key:"directories" help:"directories in which sessions may work; where there are several users, none by default"`
	MCP         []string `key:"mcp" help:"MCP servers that sessions may have: programs or beginnings of URLs; all by default"`
	Default     string   `key:"default" enum:",ask,allow,deny" help:"what happens to permission requests that no rule matches"`
	Allow       []string `key:"allow" rules:"true" help:"rules for what agents are allowed without asking"`
	Deny        []string `key:"deny" rules:"true" help:"rules for what agents are never allowed"`
	// The quotas: 0 is the default.
	LiveAgents int               `key:"live_agents" help:"agents that may run at once; 0 is 4"`
	Sessions   int               `key:"sessions" help:"sessions that are kept; 0 is 500"`
	LogMiB     int               `key:"log_mib" help:"MiB that their logs may have; 0 is 2048"`
	Prompts    int               `key:"prompts_per_minute" help:"prompts in a minute; 0 is 60"`
	Events     int               `key:"events_per_second" help:"updates of an agent in a second, over a longer time; 0 is 100"`
	Env        map[string]string `key:"env" secret:"true" help:"added to the environment of this user's agents; file:PATH and keyring:SERVICE/USER are read"`
}
