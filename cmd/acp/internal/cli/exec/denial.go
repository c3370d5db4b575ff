package exec

import (
	"context"
	"fmt"
	"strings"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/shown"
)

// suggester returns a function that finds the rule that would permit a request if it were added
// with --allow to the settings in p, or "" if something else denies the request. Each suggestion is
// tried against the real policy, so that the user is never offered a flag that does not help.
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

// denial returns the line that reports a denied request, and what the user can do about it.
func denial(rec acphost.Record, rule string) string {
	line := "denied: " + what(rec)
	switch {
	case rule != "" && rule == safetext.Visible(rule): // what cannot be seen cannot be copied
		line += why(rec) + "; allow it with --allow " + quote(safetext.Line(rule, 4000))
		if rule == "kind:execute" || rule == "kind:execute; always" {
			line += ", which allows every command"
		}
		return line
	case rec.Reason == acphost.ReasonSeveral:
		return line + "; several answers allow it, and acp exec does not choose: --ask asks you"
	case rec.By == acphost.ByUser:
		return line + ", as you answered"
	case rec.By == acphost.ByTimeout:
		return line + "; there was no answer in time"
	case rec.By == acphost.ByRule && rec.Rule != "":
		return line + " by " + safetext.Line(rec.Rule, 100) + why(rec)
	case rec.Rule != "":
		return line + "; no --allow rule can permit it: see " + safetext.Line(rec.Rule, 100) + why(rec)
	}
	return line + "; no --allow rule can permit it"
}

// why returns the reason of a decision and the part of the command that it concerns, in
// parentheses, or "" if the line would only repeat itself.
func why(rec acphost.Record) string {
	reason, part := safetext.Line(rec.Reason, 200), safetext.VisibleLine(rec.Part, 200)
	rule := "the rule " + safetext.Line(rec.Rule, 100)
	switch command, certain := rec.Shows(); {
	case reason == "no rule allows it":
		return ""
	case reason == rule+" denies it", reason == rule+" wants it to be asked", !certain && command == "":
		reason = ""
	}
	if part == safetext.VisibleLine(rec.Command, 200) {
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

// certainty returns how reliably the agent has said what would run: "certain", "shown" or
// "unknown". It is "" if nothing would run. The words are part of docs/exec-json.md.
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

// what describes a request on one line: its title, and the command or path if the title does not
// contain it.
func what(rec acphost.Record) string {
	parts := []string{}
	add := func(s string, most int) {
		if s = safetext.VisibleLine(s, most); s != "" && !strings.Contains(strings.Join(parts, " "), s) {
			parts = append(parts, s)
		}
	}
	command, certain := rec.Shows()
	if !shown.Same(rec.Title, command, rec.Cwd) {
		add(rec.Title, 120)
	}
	add(strings.TrimRight(command, "\n"), 500)
	if len(rec.Paths) > 0 && command == "" {
		add(rec.Paths[0], 200)
	}
	if len(parts) == 0 {
		add(rec.Kind, 40)
	}
	if len(parts) == 0 {
		return "something that the agent did not describe"
	}
	text := strings.ReplaceAll(strings.Join(parts, ": "), "?: ", "? ")
	if !certain && command == "" {
		text += " (it is not known what would run)"
	}
	return text
}

// quote returns s quoted for a shell. It always quotes, because a rule without special characters
// looks like one that needs no quotes when it is edited.
func quote(s string) string {
	if q := roster.Quote(s); q != s {
		return q
	}
	return "'" + s + "'"
}

// denials is the error of a turn with denied requests: their number.
type denials int

// Error returns the number of denied requests in words.
func (n denials) Error() string {
	return fmt.Sprintf("%d permission %s denied", n, plural(int(n), "request was", "requests were"))
}

// Silent reports whether each of them was listed already, so that no further message is needed.
func (n denials) Silent() bool { return n <= maxDenials }

// breaches is the error of a turn in which the agent broke rules: their number.
type breaches int

// Error returns the number of broken rules in words.
func (n breaches) Error() string {
	return fmt.Sprintf("%d %s broken", n, plural(int(n), "rule was", "rules were"))
}

// Silent reports whether each of them was listed already.
func (n breaches) Silent() bool { return n <= maxDenials }
