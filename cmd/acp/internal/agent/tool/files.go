package tool

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
)

const (
	maxSeen     = 4096    // files whose last texts are remembered
	maxCompared = 8 << 20 // bytes of a file that is compared
)

// Files reconciles the files of a client with those on disk. An editor that lends its files
// shows what the user has typed and not saved; but after a command has changed a file, some
// editors still show the old text. Its methods may be called from any goroutine. The zero
// value has seen nothing.
type Files struct {
	mu   sync.Mutex
	seen map[string]pair
}

// A pair are the texts of one file, by their hashes, and what counts of them.
type pair struct {
	client, disk [sha256.Size]byte
	state        fileState
}

// A fileState says why the texts of a file differ.
type fileState int

const (
	same    fileState = iota
	unsaved           // the user has typed something
	old               // the client shows an old text
)

// ErrConflict says that a file was changed on disk, and otherwise in the editor.
var ErrConflict = errors.New("the file has changed on disk, and the editor has other changes that are not saved: ask the user to save or to discard them")

// Read returns the text of a file as it counts: that of the client, which lends its files,
// unless only the one on disk has changed since it was read last. stale says that the
// client shows an old text.
func (f *Files) Read(out *acp.Output, path string) (text string, stale bool, err error) {
	text, err = out.ReadFile(path)
	disk, diskErr := readDisk(path)
	if err == nil && text == "" && errors.Is(diskErr, fs.ErrNotExist) {
		return "", false, fs.ErrNotExist // some editors say that of a file that does not exist
	}
	if err == nil && diskErr == nil && !utf8.ValidString(disk) && plain(unixLines(text)) == plain(unixLines(disk)) {
		text = disk // bytes that are not UTF-8 cannot be sent
	}
	if err == nil && diskErr == nil && unixLines(text) == unixLines(disk)+"\n" {
		text = disk // some send a line too many
	}
	if err != nil || diskErr != nil {
		if errors.Is(err, fs.ErrNotExist) && diskErr == nil {
			return disk, true, nil // a command has just written it
		}
		return text, false, err
	}
	now := pair{client: sha256.Sum256([]byte(unixLines(text))), disk: sha256.Sum256([]byte(unixLines(disk)))}
	f.mu.Lock()
	defer f.mu.Unlock()
	was, known := f.seen[path]
	client, onDisk := was.client != now.client, was.disk != now.disk // has changed
	switch {
	case now.client == now.disk:
	case !known, was.state == same && !onDisk, was.state == unsaved && !onDisk:
		now.state = unsaved
	case was.state == same && !client, was.state == old && !client:
		now.state, text = old, disk
	default:
		return "", false, ErrConflict
	}
	f.keep(path, now)
	return text, now.state == old, nil
}

// Wrote remembers what was written.
func (f *Files) Wrote(path, text string) {
	h := sha256.Sum256([]byte(unixLines(text)))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keep(path, pair{client: h, disk: h})
}

func (f *Files) keep(path string, p pair) {
	if f.seen == nil || len(f.seen) >= maxSeen {
		f.seen = map[string]pair{}
	}
	f.seen[path] = p
}

// plain is a text without bytes that are not UTF-8, and what stands for them.
func plain(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\uFFFD", "")
}

// unixLines is a text with the line ends that editors have in memory.
func unixLines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// readDisk returns the text of a regular file that is small enough to be edited.
func readDisk(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxCompared {
		return "", fmt.Errorf("%s cannot be compared", prose.OneLine(path, 200))
	}
	data, err := os.ReadFile(path)
	return string(data), err
}
