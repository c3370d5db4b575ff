package exec

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/shown"
	"github.com/goacp/acp/transcript"
)

// formVersion is the version of the form of --json. It changes only if existing members change
// their meaning; new members, ops, fields and types of lines leave it as it is.
const formVersion = 1

// The lines of --json, as docs/exec-json.md describes them.
type (
	sessionLine struct {
		Type      string    `json:"type"` // session
		Version   int       `json:"version"`
		Session   string    `json:"session"`
		Agent     agentInfo `json:"agent"`
		Protocol  int       `json:"protocol"`
		Cwd       string    `json:"cwd"`
		Restored  string    `json:"restored"`
		Untrusted []string  `json:"untrusted,omitempty"`
		LeftOut   []string  `json:"leftOut,omitempty"`
		Unheld    string    `json:"unheld,omitempty"`
		Unasked   string    `json:"unasked,omitempty"`
	}
	agentInfo struct {
		Name    string `json:"name"`    // the name by which the user chose it
		Program string `json:"program"` // the name that it reports
		Version string `json:"version"`
	}
	updateLine struct {
		Type    string          `json:"type"` // update
		Session string          `json:"session"`
		Op      string          `json:"op"`
		Field   string          `json:"field,omitempty"`
		Value   json.RawMessage `json:"value,omitempty"`
		Seq     *uint64         `json:"seq,omitempty"`
		Kind    string          `json:"kind,omitempty"`
		ID      string          `json:"id,omitempty"`
		Entry   json.RawMessage `json:"entry,omitempty"`
		Text    string          `json:"text,omitempty"`
		Data    string          `json:"data,omitempty"`
		Trimmed bool            `json:"trimmed,omitempty"`
	}
	permissionLine struct {
		Type       string   `json:"type"` // permission
		Session    string   `json:"session"`
		ToolCallID string   `json:"toolCallId,omitempty"`
		Title      string   `json:"title,omitempty"`
		Kind       string   `json:"kind,omitempty"`
		Command    string   `json:"command,omitempty"`
		Certainty  string   `json:"commandCertainty,omitempty"`
		Paths      []string `json:"paths,omitempty"`
		Effect     string   `json:"effect"`
		By         string   `json:"by"`
		Rule       string   `json:"rule,omitempty"`
		Reason     string   `json:"reason,omitempty"`
		Part       string   `json:"part,omitempty"`
		OptionID   string   `json:"optionId,omitempty"`
		OptionKind string   `json:"optionKind,omitempty"`
		AllowWith  string   `json:"allowWith,omitempty"`
	}
	brokenLine struct {
		Type       string   `json:"type"` // broken
		Session    string   `json:"session"`
		ToolCallID string   `json:"toolCallId,omitempty"`
		Title      string   `json:"title,omitempty"`
		Kind       string   `json:"kind,omitempty"`
		Command    string   `json:"command,omitempty"`
		Paths      []string `json:"paths,omitempty"`
		Rule       string   `json:"rule"`
	}
	noteLine struct {
		Type string `json:"type"` // note
		Kind string `json:"kind"`
		Text string `json:"text"`
	}
	resultLine struct {
		Type       string          `json:"type"` // result
		StopReason string          `json:"stopReason,omitempty"`
		Text       string          `json:"text"`
		Truncated  bool            `json:"truncated,omitempty"`
		Usage      json.RawMessage `json:"usage,omitempty"`
		Context    *contextInfo    `json:"context,omitempty"`
		Cost       json.RawMessage `json:"cost,omitempty"`
		Models     []modelInfo     `json:"models,omitempty"`
		Limit      *limitInfo      `json:"limit,omitempty"`
		Denied     int             `json:"denied"`
		Broken     int             `json:"broken,omitempty"`
		ExitCode   int             `json:"exitCode"`
		SessionID  string          `json:"sessionId,omitempty"`
		Waiting    bool            `json:"waiting,omitempty"`
		Steered    string          `json:"steered,omitempty"`
		Error      *errorInfo      `json:"error,omitempty"`
	}
	modelInfo = shown.ModelTokens
	limitInfo struct {
		Status string `json:"status"`
		Name   string `json:"name,omitempty"`
		Used   *int   `json:"usedPercent,omitempty"`
		Resets string `json:"resets,omitempty"` // RFC 3339
	}
	contextInfo struct {
		Used uint64 `json:"used"`
		Size uint64 `json:"size"`
	}
	errorInfo struct {
		Message string          `json:"message"`
		From    string          `json:"from"` // agent or acp
		Code    int             `json:"code,omitempty"`
		Data    json.RawMessage `json:"data,omitempty"`
	}
)

// appendLine appends v as a line of JSON. Characters that JSON allows but terminals interpret, and
// those that change how the surrounding text is displayed, are escaped.
func appendLine(dst []byte, v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return dst, err
	}
	return append(dst, safetext.JSON(b.Bytes())...), nil
}

// A lines turns the changes of one session into update lines. All changes of one entry in a batch
// become one line, so that a reader can rebuild the entries: created and updated carry the whole
// entry, appended carries what is added at its end.
type lines struct {
	session string
	known   map[uint64]uint64 // entries that were written; for terminals, up to which byte of output
}

// appendBatch appends the lines of a batch of changes. nil stands for a replaced history, which is
// written anew after a line with the op "reset".
func (l *lines) appendBatch(dst []byte, snap *transcript.Snapshot, changes []transcript.Change) ([]byte, error) {
	if l.known == nil {
		l.known = map[uint64]uint64{}
	}
	var err error
	if changes == nil {
		clear(l.known)
		if dst, err = appendLine(dst, updateLine{Type: "update", Session: l.session, Op: "reset"}); err != nil {
			return dst, err
		}
		for e := range snap.Entries() {
			if dst, err = l.appendEntry(dst, e, "created", false); err != nil {
				return dst, err
			}
		}
		return dst, nil
	}
	done := map[uint64]bool{}
	for i, ch := range changes {
		if ch.Op == transcript.OpSession {
			var value []byte
			if ch.Field == backend.FieldCursor {
				value = []byte(ch.Text)
			} else if u := snap.Session().Update(ch.Field); u != nil {
				if value, err = u.AppendJSON(nil); err != nil {
					return dst, err
				}
			}
			if dst, err = appendLine(dst, updateLine{
				Type: "update", Session: l.session, Op: string(ch.Op), Field: string(ch.Field), Value: value, Trimmed: ch.Trimmed,
			}); err != nil {
				return dst, err
			}
			continue
		}
		e := snap.Entry(ch.Seq)
		if ch.Op == transcript.OpNone || done[ch.Seq] || e == nil {
			continue
		}
		done[ch.Seq] = true
		if text, ok := l.appended(ch.Seq, changes[i:]); ok {
			dst, err = appendLine(dst, l.line(e, updateLine{Op: "appended", Text: text}))
		} else if t, isTerminal := e.(*transcript.Terminal); isTerminal && ch.Op == transcript.OpAppended && l.follows(t) {
			raw := t.Raw()
			from := l.known[ch.Seq] - t.Skipped
			l.known[ch.Seq] = t.Skipped + uint64(len(raw))
			dst, err = appendLine(dst, l.line(e, updateLine{Op: "appended", Data: base64.StdEncoding.EncodeToString([]byte(raw[from:]))}))
		} else {
			op := "updated"
			if _, known := l.known[ch.Seq]; !known {
				op = "created"
			}
			dst, err = l.appendEntry(dst, e, op, ch.Trimmed)
		}
		if err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// appended returns the text that the changes add to an entry that was written before. It reports
// false if they do anything else to it.
func (l *lines) appended(seq uint64, changes []transcript.Change) (string, bool) {
	if _, known := l.known[seq]; !known {
		return "", false
	}
	text := ""
	for _, ch := range changes {
		if ch.Seq != seq || ch.Op == transcript.OpSession || ch.Op == transcript.OpNone {
			continue
		}
		if ch.Op != transcript.OpAppended || ch.Text == "" || ch.Trimmed {
			return "", false
		}
		text += ch.Text
	}
	return text, true
}

// follows reports whether the retained output of a terminal continues exactly where the written
// output ended. It does not if more was skipped in between than had been written.
func (l *lines) follows(t *transcript.Terminal) bool {
	written, known := l.known[t.Seq()]
	return known && written >= t.Skipped && written <= t.Skipped+uint64(len(t.Raw()))
}

// appendEntry appends the line that carries a whole entry.
func (l *lines) appendEntry(dst []byte, e transcript.Entry, op string, trimmed bool) ([]byte, error) {
	form, err := transcript.AppendEntry(nil, e)
	if err != nil {
		return dst, err
	}
	l.known[e.Seq()] = 0
	if t, ok := e.(*transcript.Terminal); ok {
		l.known[e.Seq()] = t.Skipped + uint64(len(t.Raw()))
	}
	return appendLine(dst, l.line(e, updateLine{Op: op, Entry: form, Trimmed: trimmed}))
}

// line completes u with the identity of its entry.
func (l *lines) line(e transcript.Entry, u updateLine) updateLine {
	seq := e.Seq()
	u.Type, u.Session, u.Seq, u.Kind, u.ID = "update", l.session, &seq, string(e.EntryKind()), e.EntryID()
	return u
}

// limitOf returns the limit of the account that the agent has reported, or nil.
func limitOf(u *transcript.Usage) *limitInfo {
	l := shown.LimitOf(u.Meta)
	if l == nil {
		return nil
	}
	info := &limitInfo{Status: l.Status, Name: l.Name}
	if l.Used >= 0 {
		info.Used = &l.Used
	}
	if !l.Resets.IsZero() {
		info.Resets = l.Resets.UTC().Format(time.RFC3339)
	}
	return info
}
