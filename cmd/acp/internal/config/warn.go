package config

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/shellline"
)

// maxWarnings bounds what [Warnings] returns.
const maxWarnings = 20

// Warnings returns a line for each pattern in the rules of settings that can never match, with the
// reason: a rule that allows a command with a wildcard which is always asked about, or has several
// commands in it, and a path that no file has. There are at most 20. Rules that cannot be read have
// none: [NewPolicy] says what is wrong with them.
func Warnings(p Permissions, base string) (out []string) {
	check := func(r acphost.Rule, where string) {
		for _, pattern := range r.Commands {
			if why := commandNever(pattern); r.Effect == acphost.EffectAllow && why != "" {
				out = append(out, fmt.Sprintf("%s: %q never matches: %s", where, clip(pattern), why))
			}
		}
		for _, pattern := range append(append([]string(nil), r.Paths...), r.Cwd...) {
			if why := pathNever(pattern); why != "" {
				out = append(out, fmt.Sprintf("%s: %q never matches: %s", where, clip(pattern), why))
			}
		}
	}
	add := func(list []string, effect acphost.Effect) {
		for _, s := range list {
			if r, err := ParseRule(s); err == nil {
				r.Effect = effect
				check(r, "permissions."+string(effect))
			}
		}
	}
	add(p.Deny, acphost.EffectDeny)
	if p.Policy != "" {
		name := p.Policy
		if !filepath.IsAbs(name) {
			name = filepath.Join(base, name)
		}
		if _, rules, err := readPolicy(name); err == nil {
			for _, r := range rules {
				check(r, r.Name)
			}
		}
	}
	add(p.Allow, acphost.EffectAllow)
	if len(out) > maxWarnings {
		out = out[:maxWarnings]
	}
	return out
}

// samples are texts that a wildcard is tried with.
var samples = []string{"x", "", "-c x", "-e x", "--version", "x y", "x -c x", "a.x", "'x'", "1"}

// commandNever says why a pattern with a wildcard allows no command, "" if it allows one or that is not
// certain. One without a wildcard allows the line that is written the same.
func commandNever(pattern string) string {
	if !strings.ContainsAny(pattern, "*?") || strings.Contains(pattern, `\`) {
		return ""
	}
	policy, err := acphost.NewPolicy(acphost.Rule{Name: "it", Effect: acphost.EffectAllow, Commands: []string{pattern}})
	if err != nil {
		return ""
	}
	policy.Commands, policy.Default = shellline.Parser{}, acphost.EffectDeny
	once := []acpv2.PermissionOption{{OptionID: "once", Kind: acpv2.PermissionOptionKindAllowOnce}}
	for _, sample := range samples {
		line := strings.TrimSpace(strings.NewReplacer("*", sample, "?", "x").Replace(pattern))
		d := policy.Decide(context.Background(), acphost.Request{Kind: string(acpv2.ToolKindExecute), Command: line, Cwd: "/", Options: once})
		if line == "" || d.Effect == acphost.EffectAllow {
			return ""
		}
	}
	line := shellline.Parser{}.ParseCommand(strings.NewReplacer("*", "x", "?", "x").Replace(pattern))
	commands, files := 0, false
	for _, part := range line.Parts {
		files = files || len(part.Writes)+len(part.Reads) > 0
		if part.By == 0 && len(part.Words) > 0 {
			commands++
		}
	}
	switch {
	case line.Unsure != "":
		return line.Unsure + ", which only a rule without a wildcard allows"
	case commands > 1:
		return "it has several commands, and each is compared alone; give each a rule"
	case files:
		return "what a command reads or writes is decided by rules about paths"
	}
	for _, part := range line.Parts {
		for _, o := range part.Options {
			return o.Name + " " + o.Does + ", which a wildcard before it does not cover"
		}
	}
	return ""
}

// pathNever says why no path matches a pattern, "" if one may.
func pathNever(pattern string) string {
	slashed := strings.TrimPrefix(strings.TrimPrefix(pattern, "./"), "~/")
	switch {
	case pattern == "/":
		return ""
	case strings.HasSuffix(pattern, "/"):
		return "paths do not end with a slash; write " + strings.TrimRight(pattern, "/") + "/** for all below"
	case strings.Contains(slashed, "//") || strings.HasPrefix(slashed, "../") || strings.Contains("/"+slashed+"/", "/../") || strings.Contains("/"+slashed+"/", "/./"):
		return "paths are compared without empty names, . and .."
	}
	return ""
}
