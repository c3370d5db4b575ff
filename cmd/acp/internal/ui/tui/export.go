package tui

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/cmd/acp/internal/ui/export"
)

// export writes the conversation to a file, in the format that its extension names. It does not
// overwrite a file.
func (m *model) export(path string) tea.Cmd {
	t := m.shown()
	if t == nil {
		return m.remark("there is no conversation to export")
	}
	if path == "" {
		return m.remark("type the name of a file after /export, such as talk.md")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(m.opt.cwd, path)
	}
	snap := t.Snapshot()
	about := store.Session{
		Key: store.Key{Agent: m.opt.Agent.Name, ID: string(t.ID())},
		Cwd: m.opt.cwd, Title: snap.Session().Title,
	}
	return func() tea.Msg {
		format, err := export.FormatOf(path)
		if err != nil {
			return failedMsg{fmt.Errorf("exporting the conversation: %w", err)}
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return failedMsg{fmt.Errorf("%s exists already: use another name", tilde(path))}
		}
		if err != nil {
			return failedMsg{fmt.Errorf("exporting the conversation: %w", err)}
		}
		if err := errors.Join(export.Write(f, format, about, snap), f.Close()); err != nil {
			_ = os.Remove(path)
			return failedMsg{fmt.Errorf("exporting the conversation: %w", err)}
		}
		return saidMsg{"written to " + tilde(path)}
	}
}
