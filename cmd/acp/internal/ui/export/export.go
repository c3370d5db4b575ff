// Package export writes conversations for readers outside of the program: as Markdown, as a
// self-contained HTML file, as JSON for programs, and as plain text for a terminal.
//
// It does not trust the agent's text in any of these formats. Control characters, escape sequences
// and characters that reorder text are removed, or, in JSON, escaped. An HTML page loads nothing,
// runs nothing, and links only to the web and to mail addresses. Markdown of more than 1 MiB in one
// message is not rendered, and an image of more than 16 MiB is left out of the page.
package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/transcript"
)

// A Format is a form in which a conversation is written.
type Format string

// The formats.
const (
	Markdown Format = "markdown"
	HTML     Format = "html"
	JSON     Format = "json"
	Text     Format = "text" // safe for a terminal
)

// Formats are all formats.
var Formats = []Format{Markdown, HTML, JSON, Text}

// ErrFormat is the error for an unknown format.
var ErrFormat = errors.New("unknown format")

// ParseFormat returns the format of that name. It also accepts the extensions md, htm and txt. For
// any other name the error is [ErrFormat].
func ParseFormat(name string) (Format, error) {
	switch f := Format(strings.ToLower(name)); f {
	case Markdown, HTML, JSON, Text:
		return f, nil
	case "md":
		return Markdown, nil
	case "htm":
		return HTML, nil
	case "txt":
		return Text, nil
	}
	return "", fmt.Errorf("%w %q: use markdown, html, json or text", ErrFormat, name)
}

// FormatOf returns the format for a file by its extension, or [ErrFormat].
func FormatOf(file string) (Format, error) {
	ext := strings.TrimPrefix(filepath.Ext(file), ".")
	if ext == "" {
		return "", fmt.Errorf("%w of %q: the name must end in .md, .html, .json or .txt", ErrFormat, filepath.Base(file))
	}
	return ParseFormat(ext)
}

// Write writes a conversation. Fields of the session that are zero are left out.
func Write(w io.Writer, f Format, s store.Session, t *transcript.Snapshot) error {
	switch f {
	case Markdown:
		return writeMarkdown(w, s, t)
	case HTML:
		return writeHTML(w, s, t)
	case JSON:
		return writeJSON(w, s, t)
	case Text:
		return writeText(w, s, t)
	}
	return fmt.Errorf("%w %q", ErrFormat, string(f))
}

// A Document is the JSON format:
//
//	{"version": 1,
//	 "session": {"agent": "gemini", "id": "…", "title": "…", "cwd": "/…", "turns": 3, …},
//	 "conversation": {"version": 1, "entries": [...], …}}
//
// The documentation of package transcript describes the conversation. Later releases of the program
// may add members; any other change would increase the version.
type Document struct {
	Version      int             `json:"version"` // 1
	Session      Session         `json:"session"`
	Conversation json.RawMessage `json:"conversation"`
}

// A Session is the JSON format of the facts about a session, without the conversation. Times are in
// RFC 3339.
type Session struct {
	Agent string `json:"agent"`
	ID    string `json:"id"` // assigned by the agent
	// Conversation is the id assigned by the store. It is unique, whereas agents may reuse theirs.
	Conversation string   `json:"conversation,omitempty"`
	Title        string   `json:"title,omitempty"`
	Command      []string `json:"command,omitempty"` // how the agent was started
	Cwd          string   `json:"cwd,omitempty"`
	Protocol     int      `json:"protocol,omitempty"`
	Created      string   `json:"created,omitempty"`
	Updated      string   `json:"updated,omitempty"`
	Turns        int      `json:"turns"`
}

// SessionOf returns the JSON format of a session.
func SessionOf(s store.Session) Session {
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339)
	}
	return Session{
		Agent: s.Agent, ID: s.ID, Conversation: s.Conversation, Title: s.Title, Command: s.Command, Cwd: s.Cwd, Protocol: s.Protocol,
		Created: at(s.Created), Updated: at(s.Updated), Turns: s.Turns,
	}
}

func writeJSON(w io.Writer, s store.Session, t *transcript.Snapshot) error {
	conversation, err := t.AppendJSON(nil)
	if err != nil {
		return err
	}
	// The parts are written separately, because the encoder would parse the conversation again.
	head, err := json.Marshal(SessionOf(s))
	if err != nil {
		return err
	}
	for _, part := range [][]byte{[]byte(`{"version":1,"session":`), safetext.JSON(head), []byte(`,"conversation":`), safetext.JSON(conversation), []byte("}\n")} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}
