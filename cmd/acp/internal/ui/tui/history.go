package tui

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	tea "charm.land/bubbletea/v2"
)

// The bounds of the history of one project.
const (
	maxHistory     = 1000     // lines
	maxHistoryLine = 64 << 10 // bytes of a line; longer ones are not stored
	maxHistoryFile = 4 << 20  // bytes of the file, before it is cut
)

// A history is what the user has typed in a project. The file has one JSON string per line; all
// running programs append to it.
type history struct {
	path  string // "" means that nothing is stored
	lines []string
}

// historyPath returns the file of a project, or "" without a directory for it. Its name is a hash of
// the project's directory.
func historyPath(dir, cwd string) string {
	if dir == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(cwd))
	return filepath.Join(dir, "history", hex.EncodeToString(sum[:8])+".jsonl")
}

type historyMsg struct{ lines []string }

// loadHistory reads the history. A missing or unreadable file is not reported, because nothing
// depends on it.
func (in *input) loadHistory() tea.Msg { return historyMsg{readHistory(in.history.path)} }

// loaded puts the history from the file before the lines that were typed while it was being read.
func (in *input) loaded(msg historyMsg) {
	in.history.lines = append(msg.lines, in.history.lines...)
	in.at += len(msg.lines)
}

// remember appends a line to the history, and returns the command that writes it to the file.
func (in *input) remember(s string) tea.Cmd {
	h := &in.history
	if n := len(h.lines); n > 0 && h.lines[n-1] == s || len(s) > maxHistoryLine {
		in.at = len(h.lines)
		return nil
	}
	if h.lines = append(h.lines, s); len(h.lines) > maxHistory {
		h.lines = h.lines[len(h.lines)-maxHistory:]
	}
	in.at = len(h.lines)
	path := h.path
	return func() tea.Msg {
		if err := appendHistory(path, s); err != nil && !errors.Is(err, fs.ErrPermission) {
			return failedMsg{err}
		}
		return nil
	}
}

// readHistory returns the last lines of a history file. Of a file that is too long it reads only
// the end; lines that it cannot parse, such as the first one after that jump, are skipped.
func readHistory(path string) []string {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() > maxHistoryFile {
		_, _ = f.Seek(-maxHistoryFile/2, 2)
	}
	var lines []string
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 8*maxHistoryLine)
	for sc.Scan() {
		var s string
		if json.Unmarshal(sc.Bytes(), &s) == nil && s != "" {
			lines = append(lines, s)
		}
	}
	if len(lines) > maxHistory {
		lines = lines[len(lines)-maxHistory:]
	}
	return lines
}

// appendHistory appends a line to the file. A file that is too long is first cut to its last lines.
func appendHistory(path, s string) error {
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if st, err := os.Stat(path); err == nil && st.Size() > maxHistoryFile {
		lines := readHistory(path)
		var all []byte
		for _, l := range lines {
			b, _ := json.Marshal(l)
			all = append(append(all, b...), '\n')
		}
		if err := os.WriteFile(path, all, 0o600); err != nil {
			return err
		}
	}
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Close())
}
