package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/shellline"
)

// maxRule bounds a rule in one line, in bytes.
const maxRule = 64 << 10

// ParseRule reads a permission rule in one line. It has no effect yet: the caller
// sets that.
//
// A rule is one or more conditions, with white space or semicolons between them. A
// request has to meet all of them, and of conditions with the same name one:
//
//	kind:read,search       kinds of tools; the names alone mean the same
//	path:src/**            files, as in [acphost.Rule]
//	command:go test *      a command: everything up to a semicolon or the end
//	regexp:go (test|vet)   a command, as a regular expression
//	cwd:/home/me/**        the working directory
//	server:github/*        an MCP server or one of its tools; several with commas
//	*                      every request; it stands alone
//	always                 “allow always” may be chosen where “allow once” is not offered
//
// A value in double quotes, with the escapes of Go, may have anything in it. Some
// examples:
//
//	read path:src/**
//	command:go test *; command:go vet *
//	kind:execute; command:"make; make install"
func ParseRule(s string) (acphost.Rule, error) {
	if len(s) > maxRule {
		return acphost.Rule{}, fmt.Errorf("the rule is longer than %d bytes", maxRule)
	}
	p := &ruleParser{rest: s}
	for p.skip(); p.rest != ""; p.skip() {
		if err := p.condition(); err != nil {
			return acphost.Rule{}, err
		}
	}
	r := p.rule
	switch conditions := len(r.Kinds) + len(r.Paths) + len(r.Cwd) + len(r.Commands) + len(r.CommandRegexps) + len(r.Servers); {
	case p.all && conditions > 0:
		return acphost.Rule{}, errors.New("* means every request and stands alone")
	case !p.all && conditions == 0:
		return acphost.Rule{}, errors.New("the rule is empty; * means every request")
	}
	check := r
	check.Effect = acphost.EffectAllow
	if _, err := acphost.NewPolicy(check); err != nil {
		return acphost.Rule{}, fmt.Errorf("rule %q: %s", clip(s), strings.TrimPrefix(oneLine(innermost(err).Error()), "rule 1: "))
	}
	return r, nil
}

// innermost returns the error that the others wrap.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// clip cuts text that goes into a message.
func clip(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}

// ruleParser reads a rule from left to right.
type ruleParser struct {
	rest string
	rule acphost.Rule
	all  bool
}

// conditionNames are the names that conditions begin with.
var conditionNames = []string{"kind", "path", "command", "regexp", "cwd", "server"}

func (p *ruleParser) skip() {
	p.rest = strings.TrimLeftFunc(p.rest, func(c rune) bool { return c == ';' || unicode.IsSpace(c) })
}

// condition reads one condition into the rule.
func (p *ruleParser) condition() error {
	name, value, ok := strings.Cut(p.rest, ":")
	if !ok || strings.ContainsFunc(name, func(c rune) bool { return c == ';' || unicode.IsSpace(c) }) {
		return p.word()
	}
	if !slices.Contains(conditionNames, name) {
		if near := Near(name, conditionNames); near != "" {
			return fmt.Errorf("%q is no condition of a rule; did you mean %q?", clip(name+":"), near+":")
		}
		return fmt.Errorf("%q is no condition of a rule; there are %s", clip(name+":"), strings.Join(conditionNames, ", "))
	}
	p.rest = value
	text, quoted, err := p.value(name == "command" || name == "regexp")
	if err != nil {
		return err
	}
	if text == "" {
		return fmt.Errorf("%s: has no value", name)
	}
	list := []string{text}
	if !quoted && (name == "kind" || name == "server") {
		list = strings.Split(text, ",")
		if slices.Contains(list, "") {
			return fmt.Errorf("%q: an entry is empty", name+":"+clip(text))
		}
	}
	switch name {
	case "kind":
		p.rule.Kinds = append(p.rule.Kinds, list...)
	case "path":
		p.rule.Paths = append(p.rule.Paths, list...)
	case "command":
		p.rule.Commands = append(p.rule.Commands, list...)
	case "regexp":
		p.rule.CommandRegexps = append(p.rule.CommandRegexps, list...)
	case "cwd":
		p.rule.Cwd = append(p.rule.Cwd, list...)
	case "server":
		p.rule.Servers = append(p.rule.Servers, list...)
	}
	return nil
}

// value reads a value; one that is a line ends at a semicolon.
func (p *ruleParser) value(line bool) (text string, quoted bool, err error) {
	if trimmed := strings.TrimLeft(p.rest, " \t"); line || strings.HasPrefix(p.rest, `"`) {
		p.rest = trimmed
	}
	if strings.HasPrefix(p.rest, `"`) {
		q, err := strconv.QuotedPrefix(p.rest)
		if err != nil {
			return "", false, fmt.Errorf("%q: a quote is not closed, or has a wrong escape", clip(p.rest))
		}
		p.rest = p.rest[len(q):]
		if text, err = strconv.Unquote(q); err != nil {
			return "", false, fmt.Errorf("%q: %w", clip(q), err)
		}
		if next := strings.TrimLeft(p.rest, "; \t\r\n"); next == p.rest && next != "" {
			return "", false, fmt.Errorf("%q follows a quote; put everything into quotes", clip(next))
		}
		return text, true, nil
	}
	end := strings.IndexFunc(p.rest, func(c rune) bool { return c == ';' || !line && unicode.IsSpace(c) })
	if end < 0 {
		end = len(p.rest)
	}
	text, p.rest = strings.TrimSpace(p.rest[:end]), p.rest[end:]
	return text, false, nil
}

// word reads a word without a colon: kinds, * or always.
func (p *ruleParser) word() error {
	word, _, err := p.value(false)
	if err != nil {
		return err
	}
	switch word {
	case "*":
		p.all = true
		return nil
	case "always":
		p.rule.AllowAlways = true
		return nil
	}
	for kind := range strings.SplitSeq(word, ",") {
		if !acpv2.ToolKind(kind).Known() {
			return fmt.Errorf("%q is no kind of a tool and no condition of a rule; a command is written as %q", clip(kind), "command:"+clip(word))
		}
		p.rule.Kinds = append(p.rule.Kinds, kind)
	}
	return nil
}

// FormatRule writes a rule in one line, from which [ParseRule] returns the same rule without its
// name and effect.
func FormatRule(r acphost.Rule) string {
	var parts []string
	list := func(name string, values []string) {
		plain := !slices.ContainsFunc(values, func(s string) bool { return mustQuote(s, false) || strings.Contains(s, ",") })
		if plain && len(values) > 0 {
			parts = append(parts, name+":"+strings.Join(values, ","))
			return
		}
		for _, s := range values {
			parts = append(parts, name+":"+strconv.Quote(s))
		}
	}
	each := func(name string, values []string, line bool) {
		for _, s := range values {
			if mustQuote(s, line) {
				s = strconv.Quote(s)
			}
			parts = append(parts, name+":"+s)
		}
	}
	list("kind", r.Kinds)
	each("path", r.Paths, false)
	each("command", r.Commands, true)
	each("regexp", r.CommandRegexps, true)
	each("cwd", r.Cwd, false)
	list("server", r.Servers)
	if len(parts) == 0 {
		parts = append(parts, "*")
	}
	if r.AllowAlways {
		parts = append(parts, "always")
	}
	return strings.Join(parts, "; ")
}

// mustQuote reports whether a value would be read as something else.
func mustQuote(s string, line bool) bool {
	return s == "" || s[0] == '"' || line && strings.TrimSpace(s) != s || strings.ContainsFunc(s, func(c rune) bool {
		return c == ';' || c == unicode.ReplacementChar || !unicode.IsPrint(c) || !line && unicode.IsSpace(c)
	})
}

// SuggestRule returns a rule in one line that allows a request, for messages to the user: the
// narrowest that can be written, or "" if none would do.
func SuggestRule(req acphost.Request) string {
	kind := req.Kind
	if kind == "" {
		kind = string(acpv2.ToolKindOther)
	}
	var candidates []acphost.Rule
	if req.Command != "" && !req.CommandUnknown {
		candidates = append(candidates,
			acphost.Rule{Commands: []string{req.Command}},
			acphost.Rule{Kinds: []string{kind}, Commands: []string{req.Command}})
	}
	if len(req.Paths) > 0 && len(req.Paths) <= 4 {
		var globs []string
		for _, p := range req.Paths {
			globs = append(globs, pathPattern(p, req.Cwd))
		}
		candidates = append(candidates, acphost.Rule{Kinds: []string{kind}, Paths: globs})
	}
	if server := serverPattern(req.ToolName); server != "" {
		candidates = append(candidates, acphost.Rule{Servers: []string{server}}, acphost.Rule{Kinds: []string{kind}, Servers: []string{server}})
	}
	candidates = append(candidates, acphost.Rule{Kinds: []string{kind}}, acphost.Rule{Kinds: []string{kind, "execute"}}, acphost.Rule{})
	for _, r := range candidates {
		for _, always := range []bool{false, true} {
			r.AllowAlways = always
			if s := FormatRule(r); RuleAllows(s, req) {
				return s
			}
		}
	}
	return ""
}

// widened are the commands of which an answer “always” may mean all arguments: they look, check, build or test.
// Rules about them do not cover options that run or write something.
var widened = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for program, commands := range map[string]string{
		"go": "test build vet list doc", "git": "status log diff show blame ls-files rev-parse grep", "cargo": "test build check clippy fmt",
		"npm": "test", "pnpm": "test", "yarn": "test", "dotnet": "test build", "gradle": "test build", "mvn": "test",
	} {
		for command := range strings.FieldsSeq(commands) {
			all[program+" "+command] = true
		}
	}
	for program := range strings.FieldsSeq("ls cat head tail wc grep rg tree pytest ruff mypy eslint prettier tsc jest vitest rspec golangci-lint staticcheck") {
		all[program] = true
	}
	return all
})

// NarrowRule returns the rule that an answer “always” about a command stands for: go test * for a command that
// tests, and the like, and otherwise the command as it is; "" if no rule about commands would allow the request.
func NarrowRule(req acphost.Request) string {
	if req.Command == "" || req.CommandUnknown {
		return ""
	}
	words := strings.Fields(req.Command)
	for n := 1; n <= min(2, len(words)); n++ {
		if begin := strings.Join(words[:n], " "); widened()[begin] {
			if s := FormatRule(acphost.Rule{Commands: []string{begin + " *"}}); RuleAllows(s, req) {
				return s
			}
		}
	}
	for _, r := range []acphost.Rule{{Commands: []string{req.Command}}, {Kinds: []string{cmp.Or(req.Kind, string(acpv2.ToolKindOther))}, Commands: []string{req.Command}}} {
		if s := FormatRule(r); RuleAllows(s, req) {
			return s
		}
	}
	return ""
}

// RuleAllows reports whether a rule in one line, all alone, allows a request.
func RuleAllows(s string, req acphost.Request) bool {
	r, err := ParseRule(s)
	if err != nil {
		return false
	}
	r.Effect = acphost.EffectAllow
	policy, err := acphost.NewPolicy(r)
	if err != nil {
		return false
	}
	policy.Default, policy.Commands = acphost.EffectDeny, shellline.Parser{}
	return policy.Decide(context.Background(), req).Effect == acphost.EffectAllow
}

// pathPattern returns the pattern for one file.
func pathPattern(file, cwd string) string {
	if cwd != "" && filepath.IsAbs(file) {
		if rel, err := filepath.Rel(cwd, file); err == nil && filepath.IsLocal(rel) {
			file = rel
		}
	}
	file = filepath.ToSlash(file)
	var b strings.Builder
	for _, c := range file {
		if strings.ContainsRune(`*?[]{}\`, c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	if !strings.HasPrefix(file, "/") && filepath.VolumeName(file) == "" {
		return "./" + b.String()
	}
	return b.String()
}

// serverPattern returns the pattern for the tool of an MCP server, or "".
func serverPattern(tool string) string {
	rest, ok := strings.CutPrefix(tool, "mcp__")
	if !ok {
		return ""
	}
	server, name, ok := strings.Cut(rest, "__")
	if !ok || server == "" || name == "" || strings.ContainsAny(rest, "*?") {
		return ""
	}
	return server + "/" + name
}
