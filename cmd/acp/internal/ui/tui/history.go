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
	"regexp"
	"slices"
	"strings"
	"sync"

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

// remember appends to the history what was typed, and returns the command that writes it to the file. As in shells, what
// begins with a blank is not written.
func (in *input) remember(typed string) tea.Cmd {
	h, s := &in.history, strings.TrimSpace(typed)
	if n := len(h.lines); n > 0 && h.lines[n-1] == s || len(s) > maxHistoryLine {
		in.at = len(h.lines)
		return nil
	}
	if h.lines = append(h.lines, s); len(h.lines) > maxHistory {
		h.lines = h.lines[len(h.lines)-maxHistory:]
	}
	in.at = len(h.lines)
	path := h.path
	if strings.HasPrefix(typed, " ") {
		path = ""
	}
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
		if err := writeHistory(path, readHistory(path)); err != nil {
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

// writeHistory replaces a file by one with the given lines.
func writeHistory(path string, lines []string) error {
	var all []byte
	for _, l := range lines {
		b, err := json.Marshal(l)
		if err != nil {
			return err
		}
		all = append(append(all, b...), '\n')
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".history-*") // which only the user can read
	if err != nil {
		return err
	}
	_, err = f.Write(all)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// Forget removes prompts from the history of what was typed in the directory cwd, which is below the directory stateDir. Where
// a line has a placeholder for something long, the prompt has that in its place.
func Forget(stateDir, cwd string, prompts []string) error {
	path := historyPath(stateDir, cwd)
	lines := readHistory(path)
	n := len(lines)
	if lines = slices.DeleteFunc(lines, func(line string) bool { return isOneOf(line, prompts) }); len(lines) == n {
		return nil
	}
	return writeHistory(path, lines)
}

// placeholder is the form of all placeholders: see [input.newMark].
var placeholder = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[#[0-9]+ [^\]\n]*\]`) })

// isOneOf reports whether a line of the history was one of the prompts.
func isOneOf(line string, prompts []string) bool {
	parts := placeholder().Split(strings.TrimSpace(line), -1)
	return slices.ContainsFunc(prompts, func(p string) bool {
		p = strings.TrimSpace(p)
		if len(parts) == 1 {
			return p == parts[0]
		}
		rest, ok := strings.CutPrefix(p, parts[0])
		if !ok || strings.Trim(strings.Join(parts, ""), " \n") == "" { // everything would fit
			return false
		}
		for _, part := range parts[1 : len(parts)-1] {
			if _, rest, ok = strings.Cut(rest, part); !ok {
				return false
			}
		}
		return strings.HasSuffix(rest, parts[len(parts)-1])
	})
}
