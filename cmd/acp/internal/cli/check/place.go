package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/goacp/acp/trace"
)

// scratch are the files of a directory that is made for a check: something to read and
// to list, and the first of the files that prompts name. Those are the client's: an agent
// that reads the disk instead finds another text.
var scratch = map[string]string{
	"README.md":       "# A project\n\nacp check has made this directory, and removes it when it ends.\n",
	"src/hello.txt":   "hello\n",
	"acp-check-0.txt": "This is what is on the disk. The client has another text.\n",
}

// place returns the directory that sessions of an agent are opened in, and what takes it
// away: it is made for the check, unless the user has named one. Agents are started where
// the user is in any case, so that relative paths in their commands mean what they say.
func (o *Options) place() (dir string, leave func(), err error) {
	if o.Here {
		return o.App.Cwd, func() {}, nil
	}
	bad := func(err error) (string, func(), error) {
		_ = os.RemoveAll(dir)
		return "", nil, fmt.Errorf("a directory for sessions: %w; --cwd DIR names one that there is", err)
	}
	if dir, err = os.MkdirTemp("", "acp-check-"); err != nil {
		return bad(err)
	}
	// Agents may tell it without links, and that is compared.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return bad(err)
	}
	for name, text := range scratch {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return bad(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return bad(err)
		}
	}
	return dir, sync.OnceFunc(func() {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintf(o.App.Err, "acp: the directory of the check could not be removed: %v\n", err)
		}
	}), nil
}

const (
	// litterName is the file that clients under test are asked to write.
	litterName = "acp-check.txt"
	// maxLitter bounds the directories that are tidied up after a client, and maxOpens the
	// requests that are looked at for them, in bytes.
	maxLitter = 64
	maxOpens  = 1 << 20
)

// litterNames are also the links and the pipe that commands make which clients run, and
// remove again unless something is wrong.
var litterNames = []string{litterName, "acp-check-loop", "acp-check-out", "acp-check-pipe"}

// A litter takes away the files that a client under test has written into the directories of
// its sessions since it was asked to: those that were not there when the session was opened.
type litter struct {
	mu    sync.Mutex
	files map[string]bool // whether it is ours
}

// frame looks at what passes. Frames without a directory cost a search.
func (l *litter) frame(dir trace.Direction, data []byte) {
	if dir != trace.ToAgent || len(data) > maxOpens || !bytes.Contains(data, []byte(`"cwd"`)) {
		return
	}
	var msg struct {
		Params struct {
			Cwd string `json:"cwd"`
		} `json:"params"`
	}
	if json.Unmarshal(data, &msg) != nil || !filepath.IsAbs(msg.Params.Cwd) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range litterNames {
		file := filepath.Join(msg.Params.Cwd, name)
		if _, known := l.files[file]; known || len(l.files) >= maxLitter*len(litterNames) {
			return
		}
		if l.files == nil {
			l.files = map[string]bool{}
		}
		_, err := os.Lstat(file)
		l.files[file] = os.IsNotExist(err)
	}
}

// clear removes the files.
func (l *litter) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for file, ours := range l.files {
		info, err := os.Lstat(file)
		if ours && err == nil && info.Mode()&os.ModeType&^(os.ModeSymlink|os.ModeNamedPipe) == 0 {
			_ = os.Remove(file)
		}
	}
}
