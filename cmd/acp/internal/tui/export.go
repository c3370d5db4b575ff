package tui

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp/transcript"
)

// export writes the conversation to a file, by its name as Markdown, JSON or
// HTML. It does not write over a file.
func (m *model) export(path string) tea.Cmd {
	t := m.shown()
	if t == nil {
		return m.remark("there is nothing to write")
	}
	if path == "" {
		return m.remark("/export needs the name of a file, such as talk.md")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(m.opt.cwd, path)
	}
	snap := t.Snapshot()
	return func() tea.Msg {
		data, err := render(snap, strings.ToLower(filepath.Ext(path)))
		if err == nil {
			var f *os.File
			if f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
				_, err = f.Write(data)
				if e := f.Close(); err == nil {
					err = e
				}
			}
		}
		if err != nil {
			return failedMsg{fmt.Errorf("write the conversation: %w", err)}
		}
		return saidMsg{"written to " + tilde(path)}
	}
}

// render makes the file.
func render(s *transcript.Snapshot, ext string) ([]byte, error) {
	switch ext {
	case ".json":
		return s.AppendJSON(nil)
	case ".md":
		var b strings.Builder
		for e := range s.Entries() {
			switch e := e.(type) {
			case *transcript.Message:
				title := map[transcript.Role]string{transcript.RoleUser: "User", transcript.RoleAgent: "Agent", transcript.RoleThought: "Thought"}[e.Role]
				fmt.Fprintf(&b, "## %s\n\n%s\n\n", title, e.Text())
			case *transcript.ToolCall:
				fmt.Fprintf(&b, "- %s (%s)\n\n", one(e.Title), e.Status)
			}
		}
		return []byte(b.String()), nil
	}
	return nil, fmt.Errorf("%q is not .md or .json", ext)
}
