// Package export writes a conversation down, to be read outside of the program: as Markdown, as
// one HTML file that needs nothing else, as JSON for programs, and as plain text for a terminal.
//
// What the agent says is not trusted in any of them. Control characters, escape sequences and
// characters that reorder text are left out, but for JSON, where they are escaped. In HTML
// nothing is loaded, nothing runs, and links lead only to the web and to mail.
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

// Formats are all of them.
var Formats = []Format{Markdown, HTML, JSON, Text}

// ErrFormat says that a format is not known.
var ErrFormat = errors.New("unknown format")

// ParseFormat returns the format of that name; md is Markdown, txt is text. Others are [ErrFormat].
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

// FormatOf returns the format that the name of a file says by its ending. Others are [ErrFormat].
func FormatOf(file string) (Format, error) {
	ext := strings.TrimPrefix(filepath.Ext(file), ".")
	if ext == "" {
		return "", fmt.Errorf("%w of %q: let it end in .md, .html, .json or .txt", ErrFormat, filepath.Base(file))
	}
	return ParseFormat(ext)
}

// Write writes a conversation. Of the session only what is known is written, so the zero value will do.
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

// A Document is the JSON form:
//
//	{"version": 1,
//	 "session": {"agent": "gemini", "id": "…", "title": "…", "cwd": "/…", "turns": 3, …},
//	 "conversation": {"version": 1, "entries": [...], …}}
//
// The conversation has the form that the documentation of package transcript describes. Later versions
// of the program may add members; anything else would be version 2.
type Document struct {
	Version      int             `json:"version"` // 1
	Session      Session         `json:"session"`
	Conversation json.RawMessage `json:"conversation"`
}

// A Session is the JSON form of what is known of a session besides what was said. Times are of RFC 3339.
type Session struct {
	Agent string `json:"agent"`
	ID    string `json:"id"` // the agent's
	// Conversation is the id that the store gave the session: agents give some of theirs again.
	Conversation string   `json:"conversation,omitempty"`
	Title        string   `json:"title,omitempty"`
	Command      []string `json:"command,omitempty"` // how the agent was started
	Cwd          string   `json:"cwd,omitempty"`
	Protocol     int      `json:"protocol,omitempty"`
	Created      string   `json:"created,omitempty"`
	Updated      string   `json:"updated,omitempty"`
	Turns        int      `json:"turns"`
}

// SessionOf returns the JSON form of a session.
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
	// The conversation is written as it is: the encoder would go over it again.
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
