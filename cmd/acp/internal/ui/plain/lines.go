// Package plain holds conversations as lines of text, for screen readers, simple terminals and
// pipes. Nothing moves, blinks or has a colour, and everything is written once, because a screen
// reader reads each line aloud. [Run] is a whole conversation; acp exec uses the lines and the
// [Stream] for its own output.
//
// A line of input has at most 4 MiB; at most 64 prompts are queued while a turn runs.
package plain

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/shown"
	"github.com/goacp/acp/transcript"
)

// maxTitle bounds a title, in cells.
const maxTitle = 160

// ToolLine returns a line with the title and the status of a tool call, and its file if the title
// does not name it.
func ToolLine(t *transcript.ToolCall) string {
	title := safetext.Line(shown.Title(t), maxTitle)
	if t.Title == "" && title == safetext.Line(string(t.Kind), maxTitle) {
		title = "a " + title + " tool"
	}
	if len(t.Locations) > 0 {
		if path := safetext.Line(t.Locations[0].Path, maxTitle); path != "" && !strings.Contains(title, path) && !strings.Contains(title, base(path)) {
			title += " (" + path + ")"
		}
	}
	return "Tool: " + title + " — " + status(t.Status)
}

func base(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }

func status(s acp.ToolCallStatus) string {
	switch s {
	case acpv2.ToolCallStatusPending:
		return "waiting"
	case acpv2.ToolCallStatusInProgress:
		return "running"
	case acpv2.ToolCallStatusCompleted:
		return "done"
	case acpv2.ToolCallStatusFailed:
		return "failed"
	}
	return safetext.Line(string(s), 20)
}

// NoticeLine returns a notice as a line.
func NoticeLine(n *transcript.Notice) string {
	severity := safetext.Line(string(n.Severity), 20)
	if severity == "" {
		severity = "notice"
	}
	line := strings.ToUpper(severity[:1]) + severity[1:] + ": " + safetext.Line(n.Title, maxTitle)
	if d := safetext.Line(n.Description, 500); d != "" {
		line = strings.TrimSuffix(line, ".") + ". " + d
	}
	return line
}

// Question returns the lines of a permission request, with its choices numbered from 1. [Choice]
// reads the answer. What would be done is shown in full, whatever its length: users cannot agree to
// what they do not see.
func Question(req acphost.Request) []string {
	q := shown.Ask(req)
	title := "Permission: " + q.Title
	if q.Theirs {
		title = "Permission, in the agent's words: " + q.Title
	}
	lines := []string{title}
	add := func(first, more, text string) {
		for line := range strings.SplitSeq(text, "\n") {
			lines = append(lines, first+line)
			first = more
		}
	}
	if q.Description != "" {
		add("  ", "  ", q.Description)
	}
	switch {
	case q.Command != "" && q.Certain:
		add("  Command: ", "           ", q.Command)
	case q.Command != "":
		add("  Command, as the agent displays it: ", "    ", q.Command)
	case !q.Certain:
		lines = append(lines, "  It is not known what would run.")
	}
	if q.Cwd != "" {
		lines = append(lines, "  In: "+tilde(q.Cwd))
	}
	for _, p := range q.Paths {
		lines = append(lines, "  File: "+p)
	}
	for _, t := range q.Texts {
		add("  ", "  ", t)
	}
	for _, p := range q.Patches {
		lines = append(lines, "  Change:")
		add("    ", "    ", p)
	}
	if len(q.Input) > 0 {
		lines = append(lines, "  Input:")
	}
	for _, v := range q.Input {
		for _, line := range v.Lines() {
			lines = append(lines, "    "+line)
		}
	}
	for i, o := range req.Options {
		name := safetext.VisibleLine(o.Name, maxTitle)
		if kind := optionKind(o.Kind); kind != "" && !strings.EqualFold(kind, name) {
			name += " (" + kind + ")"
		}
		lines = append(lines, fmt.Sprintf("  %d. %s", i+1, name))
	}
	return lines
}

func optionKind(k acpv2.PermissionOptionKind) string {
	switch k {
	case acpv2.PermissionOptionKindAllowOnce:
		return "allow once"
	case acpv2.PermissionOptionKindAllowAlways:
		return "allow always"
	case acpv2.PermissionOptionKindRejectOnce:
		return "reject once"
	case acpv2.PermissionOptionKindRejectAlways:
		return "reject always"
	}
	return ""
}

// Choice returns the option that an answer to [Question] chooses: by its number, or by y and n,
// which allow and reject once. The empty id dismisses the question. ok is false if the answer is
// invalid.
func Choice(req acphost.Request, answer string) (id acp.PermissionOptionID, ok bool) {
	answer = strings.ToLower(strings.TrimSpace(answer))
	switch answer {
	case "":
		return "", true
	case "y", "yes":
		id = req.Allow()
		return id, id != ""
	case "n", "no":
		return req.Reject(), true
	}
	n, err := strconv.Atoi(answer)
	if err != nil || n < 1 || n > len(req.Options) {
		return "", false
	}
	return req.Options[n-1].OptionID, true
}
