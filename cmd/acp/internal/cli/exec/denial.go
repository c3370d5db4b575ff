package exec

import (
	"context"
	"strings"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/shown"
)

// suggester returns a function that finds the rule which, given with --allow, would permit a request
// under the settings as they are; "" if there is none, since something denies it.
func suggester(p config.Permissions, base string) func(acphost.Request) string {
	return func(req acphost.Request) string {
		rule := config.SuggestRule(req)
		if rule == "" {
			return ""
		}
		with := p
		with.Allow = append(append([]string(nil), p.Allow...), rule)
		policy, err := config.ReadRules(with, base).Policy()
		if err != nil {
			return ""
		}
		if d := policy.Decide(context.Background(), req); d.Effect != acphost.EffectAllow {
			return ""
		}
		return rule
	}
}

// denial is the line that tells that a request was denied.
func denial(rec acphost.Record, rule string) string {
	line := "denied: " + what(rec)
	switch {
	case rule != "":
		return line + why(rec) + "; allow it with --allow " + quote(safetext.Line(rule, 4000))
	case rec.By == acphost.ByUser:
		return line + ", as you answered"
	case rec.By == acphost.ByTimeout:
		return line + "; there was no answer in time"
	case rec.By == acphost.ByRule && rec.Rule != "":
		return line + " by " + safetext.Line(rec.Rule, 100) + why(rec)
	case rec.Rule != "":
		return line + "; no --allow permits it: see " + safetext.Line(rec.Rule, 100) + why(rec)
	}
	return line + "; no --allow permits it"
}

// why says why the rules did not allow something, and which part of a command that is about, as far as
// the line does not say so already.
func why(rec acphost.Record) string {
	reason, part := safetext.Line(rec.Reason, 200), safetext.Line(rec.Part, 200)
	rule := "the rule " + safetext.Line(rec.Rule, 100)
	switch command, certain := rec.Shows(); {
	case reason == "no rule allows it":
		return ""
	case reason == rule+" denies it", reason == rule+" wants it to be asked", !certain && command == "":
		reason = ""
	}
	if part == safetext.Line(rec.Command, 200) {
		part = ""
	}
	switch {
	case reason != "" && part != "":
		return " (" + part + ": " + reason + ")"
	case reason+part != "":
		return " (" + reason + part + ")"
	}
	return ""
}

// certainty says how sure it is what would be run; "" if nothing would be.
func certainty(rec acphost.Record) string {
	command, certain := rec.Shows()
	switch {
	case certain && command == "":
		return ""
	case certain:
		return "certain"
	case command != "":
		return "shown"
	}
	return "unknown"
}

// what names a request in some words, and what would be run.
func what(rec acphost.Record) string {
	parts := []string{}
	add := func(s string, most int) {
		if s = safetext.Line(s, most); s != "" && !strings.Contains(strings.Join(parts, " "), s) {
			parts = append(parts, s)
		}
	}
	command, certain := rec.Shows()
	if !shown.Same(rec.Title, command, rec.Cwd) {
		add(rec.Title, 120)
	}
	add(command, 500)
	if len(rec.Paths) > 0 && command == "" {
		add(rec.Paths[0], 200)
	}
	if len(parts) == 0 {
		add(rec.Kind, 40)
	}
	if len(parts) == 0 {
		return "something the agent did not name"
	}
	text := strings.ReplaceAll(strings.Join(parts, ": "), "?: ", "? ")
	if !certain && command == "" {
		text += " (what would be run is not known)"
	}
	return text
}

// quote writes a word for a shell, always in quotes: rules have signs in them.
func quote(s string) string {
	if q := roster.Quote(s); q != s {
		return q
	}
	return "'" + s + "'"
}
