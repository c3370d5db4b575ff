package shown

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/transcript"
)

// This file reads what the agents of Claude and codex say in metadata. What it does not understand says nothing, and
// nothing fails because of it. Texts are safe to show, on one line, and bounded.

// maxVendor bounds a name that is shown, in bytes, and maxModels the models of a turn.
const (
	maxVendor = 60
	maxModels = 20
)

// maxMeta bounds the metadata that is read, in bytes: it is read anew for each drawing.
const maxMeta = 64 << 10

// member returns a member of metadata, or nil.
func member(meta json.RawMessage, names ...string) json.RawMessage {
	if len(meta) > maxMeta {
		return nil
	}
	for _, name := range names {
		var all map[string]json.RawMessage
		if json.Unmarshal(meta, &all) != nil {
			return nil
		}
		meta = all[name]
	}
	return meta
}

// textIn returns a member that is a text, or "".
func textIn(meta json.RawMessage, names ...string) (s string) {
	_ = json.Unmarshal(member(meta, names...), &s)
	return s
}

// Model returns the model that a usage_update names, or "".
func Model(meta json.RawMessage) string {
	return safetext.Line(textIn(meta, "_claude/model"), maxVendor)
}

// Parent returns the tool call in which another one was made, by an agent that does not show its subagents, or nil.
func Parent(t *transcript.Snapshot, c *transcript.ToolCall) *transcript.ToolCall {
	if len(c.Meta) == 0 {
		return nil
	}
	id := acp.ToolCallID(textIn(c.Meta, "claudeCode", "parentToolUseId"))
	if id == "" || id == c.ID {
		return nil
	}
	return t.ToolCall(id)
}

// Async reports whether the agent works on while the user answers an elicitation.
func Async(meta json.RawMessage) bool { return textIn(meta, "codex", "delivery") == "async" }

// WorksOn is what is said of a question whose answer the agent does not wait for.
const WorksOn = "The agent works on meanwhile; an answer after it has finished may come too late."

// Task returns what an item of the background does that is neither a command nor a subagent, or "".
func Task(w acp.BackgroundWork) string {
	u, ok := w.(*acpv2.UnknownBackgroundWork)
	if !ok {
		return ""
	}
	if u.Type == "_claude/task" {
		if s := safetext.Line(strings.TrimSpace(textIn(u.Raw, "description")), 200); s != "" {
			return s
		}
	}
	return "a task of the agent (" + safetext.Line(u.Type, maxVendor) + ")"
}

// A Limit is a limit of an account, and how near it is.
type Limit struct {
	Status string // allowed, allowed_warning or rejected, or another word of the agent
	Name   string // in words, or ""
	Used   int    // in percent; -1 if it is not known
	Resets time.Time
}

// limitNames are the limits of Claude in words.
var limitNames = map[string]string{
	"five_hour": "5-hour limit", "seven_day": "weekly limit", "seven_day_opus": "weekly limit of Opus",
	"seven_day_sonnet": "weekly limit of Sonnet", "overage": "extra usage",
}

// LimitOf returns the limit that a usage_update reports, or nil.
func LimitOf(meta json.RawMessage) *Limit {
	raw := member(meta, "_claude/rateLimit")
	l := &Limit{Status: safetext.Line(textIn(raw, "status"), maxVendor), Used: -1}
	if l.Status == "" {
		return nil
	}
	kind := textIn(raw, "rateLimitType")
	if l.Name = limitNames[kind]; l.Name == "" {
		l.Name = safetext.Line(strings.ReplaceAll(kind, "_", " "), maxVendor)
	}
	var n float64
	if json.Unmarshal(member(raw, "utilization"), &n) == nil && member(raw, "utilization") != nil && n >= 0 && n <= 1000 {
		if n <= 1 { // a fraction, or else percent
			n *= 100
		}
		l.Used = int(math.Round(n))
	}
	n = 0
	if json.Unmarshal(member(raw, "resetsAt"), &n) == nil && n > 0 && n < 1e14 {
		if n > 1e11 { // in milliseconds
			n /= 1000
		}
		l.Resets = time.Unix(int64(n), 0)
	}
	return l
}

// Warns reports whether the user should see a limit at the given time.
func (l *Limit) Warns(now time.Time) bool {
	return l != nil && l.Status != "allowed" && (l.Resets.IsZero() || now.Before(l.Resets))
}

// String says in words how near the limit is.
func (l *Limit) String() string {
	name := l.Name
	if name == "" {
		name = "limit"
	}
	var parts []string
	switch {
	case l.Status == "rejected":
		parts = append(parts, "reached")
	case l.Used >= 0:
		parts = append(parts, fmt.Sprintf("%d%% used", l.Used))
	default:
		parts = append(parts, strings.ReplaceAll(strings.TrimPrefix(l.Status, "allowed_"), "_", " "))
	}
	if !l.Resets.IsZero() {
		parts = append(parts, "resets "+l.Resets.Local().Format("Mon 15:04"))
	}
	return name + " " + strings.Join(parts, ", ")
}

// A ModelTokens says how many tokens a turn has used of one model.
type ModelTokens struct {
	Model  string          `json:"model"`
	Tokens uint64          `json:"totalTokens"`
	Counts json.RawMessage `json:"tokenCount"` // as the agent says it: an object
}

// LastModels is [Models] of the turn that has ended last in a session.
func LastModels(s *transcript.Session) []ModelTokens {
	idle, ok := s.State.Update().(*acp.IdleStateUpdate)
	if !ok {
		return nil
	}
	return Models(idle.Meta)
}

// Tasks returns what runs in the background of a session that is neither a command nor a subagent.
func Tasks(s *transcript.Session) (list []string) {
	for _, w := range s.State.Background {
		if what := Task(w); what != "" {
			list = append(list, what)
		}
	}
	return list
}

// Models returns the tokens that a turn has used by model, at most 20 of them, from the metadata of the end of the turn.
// They need not add up to what the turn reports as its own.
func Models(meta json.RawMessage) (list []ModelTokens) {
	var rows []json.RawMessage
	if json.Unmarshal(member(meta, "quota", "model_usage"), &rows) != nil {
		return nil
	}
	for _, row := range rows {
		counts := member(row, "token_count")
		m := ModelTokens{Model: safetext.Line(textIn(row, "model"), maxVendor), Counts: counts}
		if m.Model == "" || len(counts) == 0 || counts[0] != '{' || len(counts) > 1000 || len(list) == maxModels {
			continue
		}
		_ = json.Unmarshal(member(counts, "totalTokens"), &m.Tokens)
		list = append(list, m)
	}
	return list
}
