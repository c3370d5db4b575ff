package acphost

import (
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/goacp/acp/acpv2"
)

// Names of files and directories that other programs go by: what is in them runs with the next command of the
// user, or instructs the next agent. A * stands for any text. They are in lower case: case does not count.
var (
	// protectedNames protect what has them, and all that is below.
	protectedNames = strings.Fields(strings.ToLower(`.git git~1 .husky .githooks .acp* .mcp.json
		.claude .codex .cursor .gemini .qwen .agents .kiro .opencode .windsurf .continue .roo .clinerules .github/copilot-instructions.md .github/instructions
		AGENTS.md AGENTS.override.md CLAUDE.md CLAUDE.local.md GEMINI.md QWEN.md SKILL.md .cursorrules .windsurfrules .goosehints opencode.json opencode.jsonc
		.vscode .idea .zed .fleet .devcontainer .devcontainer.json *.code-workspace .nvim.lua .nvimrc .exrc .vimrc .dir-locals.el
		.envrc .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc .login .logout
		.config/fish .config/git .config/acp .config/autostart .config/systemd .gitconfig .gitmodules .npmrc .ssh .pre-commit-config.yaml lefthook.yml lefthook.yaml
		LaunchAgents LaunchDaemons`))
	// gitHooks are names that protect a file in a directory called hooks.
	gitHooks = strings.Fields(`applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit
		pre-rebase post-checkout post-merge pre-push pre-receive update proc-receive post-receive post-update reference-transaction push-to-checkout
		pre-auto-gc post-rewrite sendemail-validate fsmonitor-watchman post-index-change`)
	// secretNames are names of files and directories that hold keys; publicNames those of examples of them.
	secretNames = strings.Fields(`.env .env.* *.env .envrc .netrc _netrc .pgpass .my.cnf .git-credentials .npmrc .pypirc .htpasswd .vault-token .s3cfg .boto .dockercfg
		.ssh .gnupg .aws .azure .kube .password-store .docker .terraformrc terraform.tfvars *.auto.tfvars *.tfstate *.tfstate.backup
		id_rsa id_dsa id_ecdsa id_ed25519 id_ecdsa_sk id_ed25519_sk *.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk
		credentials credentials.json client_secret*.json service-account*.json service_account*.json secrets.json secrets.yaml secrets.yml secrets.toml secrets.env
		.secrets master.key kubeconfig .bash_history .zsh_history .psql_history .mysql_history .python_history .node_repl_history`)
	publicNames = strings.Fields(".env.example .env.sample .env.template .env.dist .env.defaults")
)

// isSecretName reports whether a name is in the list of those that hold keys.
func isSecretName(name string) bool {
	return !slices.Contains(publicNames, strings.ToLower(strings.TrimRight(name, ". "))) && isOneOf(secretNames, asFiled(name))
}

// asFiled returns a name as file systems may see it: some do not regard case, signs that are not visible, and dots and
// spaces at the end.
func asFiled(name string) string {
	name = strings.Map(func(c rune) rune {
		if unicode.Is(unicode.Cf, c) {
			return -1
		}
		return c
	}, name)
	return strings.ToLower(strings.TrimRight(name, ". "))
}

// isOneOf reports whether a name is in a list, in which a name may have one star.
func isOneOf(list []string, name string) bool {
	return slices.ContainsFunc(list, func(p string) bool {
		before, after, star := strings.Cut(p, "*")
		if !star {
			return name == before
		}
		return len(name) >= len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after)
	})
}

// Protects returns the name for which a request that edits, deletes or moves files is about a protected file, or
// "" if it is not: hooks and settings of git, of shells, of editors and of agents, and what instructs agents. A
// rule allows that only if it has no conditions, or a pattern that names the file: one in which the name stands
// without wildcards. Rules that allow all edits, or all files below a directory, do not. Below the working
// directory of the request only names below it count.
func (r *Request) Protects() string { return (&places{policy: new(Policy)}).protects(r) }

// protects is [Request.Protects] for the paths as they are spelled and as links have them.
func (at *places) protects(req *Request) string {
	for f := range at.protected(req) {
		return f.name
	}
	return ""
}

// A protectedFile is a file with a protected name in its path.
type protectedFile struct {
	name string // as it is written there
	upTo string // the path up to it
	cwd  string
}

// protected yields the protected files that a request is about, under both of their paths.
func (at *places) protected(req *Request) iter.Seq[protectedFile] {
	return func(yield func(protectedFile) bool) {
		if !changes(req.Kind) && !slices.ContainsFunc(req.EarlierKinds, changes) {
			return
		}
		for _, path := range req.Paths {
			p := at.place(path, req.Cwd)
			for _, pair := range [][2]string{{p.path, p.cwd}, {p.real, p.inCwd}} {
				if name, upTo := protectedIn(pair[0], pair[1]); name != "" && !yield(protectedFile{name, upTo, pair[1]}) {
					return
				}
			}
		}
	}
}

// changes reports whether tools of a kind change files.
func changes(kind string) bool {
	switch acpv2.ToolKind(kind) {
	case acpv2.ToolKindEdit, acpv2.ToolKindDelete, acpv2.ToolKindMove:
		return true
	}
	return false
}

// protectedIn returns the protected name in a path with slashes, as it is written there, and the path up to it; or
// "".
func protectedIn(path, cwd string) (name, upTo string) {
	names, from := strings.Split(path, "/"), 0
	if rel, ok := within(filepath.FromSlash(cwd), filepath.FromSlash(path)); ok && cwd != "" {
		from = len(names) - len(strings.Split(filepath.ToSlash(rel), "/"))
	}
	for i := from; i < len(names); i++ {
		for _, n := range []int{1, 2} {
			if i+n > len(names) {
				continue
			}
			if name := strings.Join(names[i:i+n], "/"); isProtected(name) {
				return name, strings.Join(names[:i+n], "/")
			}
		}
	}
	return "", ""
}

// isProtected reports whether a name, or two with a slash, are in the list.
func isProtected(name string) bool {
	name = asFiled(name)
	if dir, hook, ok := strings.Cut(name, "/"); ok && dir == "hooks" && slices.Contains(gitHooks, hook) {
		return true
	}
	return isOneOf(protectedNames, name)
}

// allowsProtected reports whether a rule that allows may do so for a request that is about protected files: it
// has no conditions, or its patterns name each of these.
func (r *rule) allowsProtected(d *deed, req *Request) bool {
	if len(r.Kinds)+len(r.paths)+len(r.cwd)+len(r.commands)+len(r.servers) == 0 {
		return true
	}
	for f := range d.places.protected(req) {
		if !slices.ContainsFunc(r.Paths, func(pattern string) bool { return namesPath(pattern, f.name, f.upTo, f.cwd) }) {
			return false
		}
	}
	return true
}

// namesPath reports whether a pattern has a name without wildcards where a path ends with it.
func namesPath(pattern, name, path, cwd string) bool {
	for _, name := range []string{name, escapeGlob(name)} {
		for at := 0; ; {
			i := strings.Index(pattern[at:], name)
			if i < 0 {
				break
			}
			begin := at + i
			at = begin + len(name)
			if begin > 0 && pattern[begin-1] != '/' || at < len(pattern) && pattern[at] != '/' {
				continue
			}
			if g, err := newPathGlob(pattern[:at], false); err == nil && g.matches(path, cwd) {
				return true
			}
		}
	}
	return false
}
