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

// scratch are the files of a temporary directory: something to read and to list, and the
// first file that prompts name. The client serves that file with another text, which shows
// whether an agent reads it through the client or from the disk.
var scratch = map[string]string{
	"README.md":       "# A project\n\nacp check has created this directory and removes it at the end.\n",
	"src/hello.txt":   "hello\n",
	"acp-check-0.txt": "This is the text on the disk. The client has another text.\n",
}

// place returns the directory for the sessions of an agent, and the function that removes it.
// It is the one that the user has named with --cwd, or a temporary one, in which newScratch makes
// those of the sessions. The agent itself always runs in the user's directory, so that relative
// paths in its command work.
func (o *Options) place() (dir string, leave func(), err error) {
	if o.Here {
		return o.App.Cwd, func() {}, nil
	}
	bad := func(err error) (string, func(), error) {
		return "", nil, fmt.Errorf("creating a directory for sessions: %w; use --cwd DIR to name an existing one", err)
	}
	made, err := os.MkdirTemp("", "acp-check-")
	if err != nil {
		return bad(err)
	}
	// Agents may report the directory with its links resolved, and rules compare it.
	if dir, err = filepath.EvalSymlinks(made); err != nil {
		_ = os.RemoveAll(made)
		return bad(err)
	}
	return dir, sync.OnceFunc(func() {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintf(o.App.Err, "acp: the directory of the check could not be removed: %v\n", err)
		}
	}), nil
}

// newScratch makes a directory with the files of scratch in another one, which is removed as a whole.
func newScratch(in string) (string, error) {
	dir, err := os.MkdirTemp(in, "")
	if err != nil {
		return "", err
	}
	for name, text := range scratch {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	return dir, nil
}

const (
	// litterName is the file that clients under test are asked to write.
	litterName = "acp-check.txt"
	// maxLitter bounds the directories that are cleaned up after a client. maxOpens bounds
	// the requests that are searched for directories, in bytes.
	maxLitter = 64
	maxOpens  = 1 << 20
)

// litterNames are all names that clients under test create. Except for the first, the commands
// that create them also remove them, unless something goes wrong.
var litterNames = []string{litterName, "acp-check-loop", "acp-check-out", "acp-check-pipe"}

// A litter removes the files that a client under test has created in the directories of its
// sessions because the check asked it to. Files that existed when the session was opened are
// the user's and stay. Its methods may be called from any goroutine.
type litter struct {
	mu    sync.Mutex
	files map[string]bool // whether the file did not exist before, and so is ours
}

// frame records the directories that the client opens sessions in. For other frames it only
// searches for "cwd".
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

// clear removes the files. It checks their type, in case the user has put something else there.
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
