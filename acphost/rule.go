package acphost

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goacp/acp/acpv2"
)

// A Rule says what to do about requests. It matches a request that meets all of
// its conditions, and of a condition that is a list one entry; a rule without
// conditions matches every request.
//
// A rule that allows is read narrowly, and a rule that denies or asks is read
// widely:
//
//	                           allow                      deny, ask
//	case of letters            counts                     does not count
//	several paths              all must match             one is enough
//	links in a path            both names must match      one is enough
//	a kind of its own, not     only if Kinds names it     always
//	of the protocol
//	something is run           Commands must match or,    always; the tool is of the
//	                           without any, Kinds names   kind execute, too
//	                           execute, or there are no
//	                           conditions
//	a protected file is        a pattern must name it,    always
//	edited, deleted or moved   without wildcards, or
//	                           there are no conditions
//
// Protected files are those that other programs go by, such as .git/** and AGENTS.md: see
// [Request.Protects]. A path has two names: the one that is spelled and the one that it
// leads to when links are followed. See [Policy.Resolve].
//
// A rule with Commands or CommandRegexps looks at each command of a line. With
// [Policy.Commands] these are:
//
//	part of the line            a rule that allows             a rule that denies or asks
//	each simple command         every one must be allowed,     one is enough
//	                            by this rule or another
//	what sudo, xargs … run      must be allowed as well        is looked at as well
//	words of a program that     * covers them, but no option   may match, also as lines of
//	may run them, values of     that runs a program            their own: the user is asked
//	variables such as PAGER
//	options before a            are part of the text           are compared, and left out
//	subcommand: git -C x push
//	arguments                   * covers them, but no option   are compared without quotes,
//	                            that runs a program or         and the program without
//	                            writes a file: a pattern       its directory
//	                            names these before its first *
//	variables before it         are part of the text           are left out
//	a file that > writes to     is an edit: a rule about       is an edit, too
//	                            paths must allow it
//	words that only the shell   * covers them, unless they     may match: the user is asked
//	knows, such as $x           may be an option
//	a file among the arguments  is not looked at               may match a rule about paths,
//	                                                           in each directory that the
//	                                                           line may be in: the user is
//	                                                           asked
//	a line that cannot be       only an entry with the same    may match: the user is asked
//	taken apart in full         text to the letter
//
// A word of which the shell knows more than the line says may be any file that it can
// become: $HOME/.env and .e* may be .env, *.go may not, and $x may be all. So may any
// line that cannot be taken apart in full, and any relative name in a directory that
// is not known. Not compared are names that another program finds, as in xargs cat or
// cat $(git ls-files), since that program has been, and words such as $x of commands
// that open no file of that name: echo, test, export, git commit -m. A directory that
// is read as a whole is compared by its own name only: grep -r x . may read .env.
// A line that exceeds the bounds of this is asked about: 64 words of a program that
// may run them, 256 lines in them, 256 arguments, 65,536 comparisons.
//
// Commands such as cd into a directory below, echo, test and true need no rule
// beside others that are allowed. Without Policy.Commands, a rule that allows
// matches only lines in which a shell would see nothing but words, or an entry with
// the same text, and * covers all options; a rule that denies or asks matches each
// piece between the signs of a shell.
//
// A request may not say enough:
//
//	what is not known           a rule that allows    a rule that denies or asks
//	what would be done at all   Commands: no match    Commands: the user is asked
//	what would be run           Commands: no match    Commands: the user is asked
//	what would be run, but      Commands: no match    Commands: what is shown is
//	the request shows it                              compared
//	which files a tool reads,   Paths: no match       Paths: the user is asked
//	edits, deletes or moves
//	where a path leads          Paths, Cwd: no match  Paths, Cwd: the user is asked
//
// Asked means: no rule after it, and not [Policy.Default], allows the request, but
// a rule after it, or Policy.Default, may deny it.
//
// Rules about commands are a net and not a sandbox. A program that is allowed may
// do anything, such as run a script that was written before.
type Rule struct {
	// Name is what decisions and records call the rule; "" means its number,
	// as in "rule 3".
	Name   string `json:"name,omitempty"`
	Effect Effect `json:"effect"`

	// Kinds are kinds of tools as on the wire, such as "read". Those that the
	// protocol does not define begin with an underscore.
	Kinds []string `json:"kinds,omitempty"`
	// Paths are patterns: * and ? stand for anything but a slash, ** for
	// anything, [a-z] and [!a-z] for a character, {a,b} for either text, \
	// takes the meaning from the next character, and /** at the end also
	// matches the directory itself. The separator is a slash everywhere. A
	// pattern that begins with a slash, a drive or ** is absolute, one that
	// begins with ~/ is in the home directory, and others are in the working
	// directory of the request.
	Paths []string `json:"paths,omitempty"`
	// Cwd are patterns for the working directory of the request, absolute ones.
	Cwd []string `json:"cwd,omitempty"`
	// Commands are patterns in which * stands for any text and ? for any
	// character. A space and * at the end may be missing in the command.
	Commands []string `json:"commands,omitempty"`
	// CommandRegexps are regular expressions, in the syntax of package regexp,
	// that match the whole command.
	CommandRegexps []string `json:"commandRegexps,omitempty"`
	// Servers are names of MCP servers, or "server/tool", both with * and ?.
	// They are compared with the names of tools, such as mcp__server__tool,
	// server__tool, server/tool or server:tool; the first separator counts.
	Servers []string `json:"servers,omitempty"`

	// AllowAlways lets a rule that allows choose “allow always” where “allow
	// once” is not offered. The agent may then not ask again.
	AllowAlways bool `json:"allowAlways,omitempty"`
}

// rule is a compiled Rule.
type rule struct {
	Rule
	paths, cwd []pathGlob
	commands   []commandPattern
	servers    []*regexp.Regexp
}

// memberError says which part of a rule is wrong.
type memberError struct {
	member string
	index  int // -1 for none
	err    error
}

func (e *memberError) Error() string {
	at := e.member
	if e.index >= 0 {
		at += "[" + strconv.Itoa(e.index) + "]"
	}
	return at + ": " + e.err.Error()
}

func (e *memberError) Unwrap() error { return e.err }

// compile checks a rule. The name is set in any case.
func compile(r Rule, number int) (rule, error) {
	if r.Name == "" {
		r.Name = "rule " + strconv.Itoa(number)
	}
	c := rule{Rule: r}
	wide := r.Effect != EffectAllow
	switch r.Effect {
	case EffectAllow, EffectDeny, EffectAsk:
	default:
		return c, &memberError{"effect", -1, fmt.Errorf("%q is none of allow, deny and ask", r.Effect)}
	}
	if r.AllowAlways && wide {
		return c, &memberError{"allowAlways", -1, errors.New("the rule does not allow")}
	}
	each := func(member string, list []string, add func(string) error) error {
		if list != nil && len(list) == 0 {
			return &memberError{member, -1, errors.New("is an empty list")}
		}
		for i, s := range list {
			err := errors.New("is empty")
			if s != "" {
				err = add(s)
			}
			if err != nil {
				return &memberError{member, i, err}
			}
		}
		return nil
	}
	return c, errors.Join(
		each("kinds", r.Kinds, func(s string) error {
			if !knownKind(s) && s[0] != '_' {
				return fmt.Errorf("%q is not a kind of the protocol", s)
			}
			return nil
		}),
		each("paths", r.Paths, func(s string) error {
			g, err := newPathGlob(s, wide)
			c.paths = append(c.paths, g)
			return err
		}),
		each("cwd", r.Cwd, func(s string) error {
			g, err := newPathGlob(s, wide)
			if err == nil && g.relative {
				err = errors.New("is not absolute")
			}
			c.cwd = append(c.cwd, g)
			return err
		}),
		each("commands", r.Commands, func(s string) error {
			p, err := newCommandGlob(s, wide)
			c.commands = append(c.commands, p)
			return err
		}),
		each("commandRegexps", r.CommandRegexps, func(s string) error {
			p, err := newCommandRegexp(s, wide)
			c.commands = append(c.commands, p)
			return err
		}),
		each("servers", r.Servers, func(s string) error {
			re, err := regexp.Compile(fold(wide) + "^" + textGlob(s) + "$")
			c.servers = append(c.servers, re)
			return err
		}),
	)
}

func fold(wide bool) string {
	if wide {
		return "(?is)"
	}
	return "(?s)"
}

// knownKind reports whether the protocol defines a kind; a tool without one is
// of the kind other.
func knownKind(kind string) bool { return kind == "" || acpv2.ToolKind(kind).Known() }

// A match says whether a rule matches.
type match int

const (
	matchNo match = iota
	matchMaybe
	matchYes
)

func matchIf(b bool) match {
	if b {
		return matchYes
	}
	return matchNo
}

// matches reports whether the rule matches a deed, which is what a request is
// about or a part of that.
func (r *rule) matches(d *deed, req *Request) match {
	kind := req.Kind
	if kind == "" {
		kind = string(acpv2.ToolKindOther)
	}
	all := matchYes
	if len(r.Kinds) > 0 {
		all = min(all, r.matchKind(kind, req.runs()))
		for _, earlier := range req.EarlierKinds {
			if m := r.matchKind(earlier, false); r.Effect == EffectAllow {
				all = min(all, m)
			} else {
				all = max(all, m)
			}
		}
	}
	if r.Effect == EffectAllow && (len(r.Kinds) == 0 && !knownKind(kind) || req.runs() && !r.coversCommands(kind)) {
		return matchNo
	}
	if len(r.servers) > 0 {
		all = min(all, matchIf(r.matchServer(req.ToolName)))
	}
	if len(r.commands) > 0 && all > matchNo {
		all = min(all, d.command(r, req))
	}
	// These look at the disk.
	if len(r.cwd) > 0 && all > matchNo {
		all = min(all, r.matchCwd(d, req))
	}
	if len(r.paths) > 0 && all > matchNo {
		all = min(all, r.matchPaths(d, req))
	}
	if r.Effect == EffectAllow && all > matchNo && !r.allowsProtected(d, req) {
		return matchNo
	}
	return all
}

const execute = string(acpv2.ToolKindExecute)

func (r *rule) matchKind(kind string, runs bool) match {
	return matchIf(slices.Contains(r.Kinds, kind) ||
		r.Effect != EffectAllow && runs && slices.Contains(r.Kinds, execute))
}

// coversCommands reports whether a rule that allows may match what would be run
// by a tool of a kind: what is said about other things says nothing about what a
// command does.
func (r *rule) coversCommands(kind string) bool {
	switch {
	case len(r.commands) > 0:
		return kind == execute || len(r.Kinds) > 0 // which name it
	case len(r.paths) > 0:
		return false
	case len(r.Kinds) > 0:
		return slices.Contains(r.Kinds, execute)
	}
	return len(r.cwd) == 0 && len(r.servers) == 0
}

// matchServer looks for a server in the name of a tool, which is written in
// several ways.
func (r *rule) matchServer(tool string) bool {
	server, name := serverOf(tool)
	if server == "" {
		return false
	}
	return slices.ContainsFunc(r.servers, func(re *regexp.Regexp) bool {
		return re.MatchString(server) || re.MatchString(server+"/"+name)
	})
}

// serverOf returns the server and the tool that a name stands for.
func serverOf(tool string) (server, name string) {
	if rest, ok := strings.CutPrefix(tool, "mcp__"); ok {
		server, name, _ = strings.Cut(rest, "__")
		return server, name
	}
	first, width := -1, 0
	for _, sep := range []string{"__", "/", ":"} {
		if i := strings.Index(tool, sep); i >= 0 && (first < 0 || i < first) {
			first, width = i, len(sep)
		}
	}
	if first < 0 {
		return "", ""
	}
	return tool[:first], tool[first+width:]
}
