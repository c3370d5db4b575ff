package config

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/filelock"
)

// MCPFile is the name of the file that lists the MCP servers of a project.
const MCPFile = ".mcp.json"

// trustFile is the record of the files that the user trusts.
type trustFile struct {
	Version int                   `json:"version"`
	Files   map[string]trustEntry `json:"files"` // by what trustName returns
}

// A trustEntry is the content of a file that was trusted, and when.
type trustEntry struct {
	SHA256 string    `json:"sha256"` // of the content, in hexadecimal
	Since  time.Time `json:"since"`
}

// Trusts reports whether the user trusts a file with this content. Changed content is not trusted.
// The directory may be named by symbolic links, but trust belongs to the file of that name in it: a
// link to a trusted file of another project is not trusted, since relative names in it mean other
// files here.
func (c *Config) Trusts(file string, content []byte) (bool, error) {
	if c.Dirs.State == "" {
		return false, nil
	}
	t, err := readTrust(c.trustPath())
	if err != nil {
		return false, err
	}
	e, ok := t.Files[trustName(file)]
	return ok && e.SHA256 == sum(content), nil
}

// Changed reports whether the user has trusted an earlier content of a file. It is for messages
// about files that are not trusted now; a file that cannot be read counts as not changed.
func (c *Config) Changed(file string) bool {
	if c.Dirs.State == "" {
		return false
	}
	t, err := readTrust(c.trustPath())
	if err != nil {
		return false
	}
	_, ok := t.Files[trustName(file)]
	return ok
}

// Trusted reports whether the user of this process trusts a file as it is now. Use [Config.Trusts]
// with the content that was read where that matters.
func Trusted(file string) (bool, error) {
	data, err := readFile(file)
	if err != nil {
		return false, err
	}
	home, _ := os.UserHomeDir() // "" trusts nothing
	c := &Config{Dirs: DirsOf(os.Environ(), home)}
	return c.Trusts(file, data)
}

// Trust records that the user trusts files as they are now. It is atomic: either all are trusted or
// none. Use [Config.TrustContent] where the user has seen what is in them, or this program has written it.
func (c *Config) Trust(files ...string) error {
	contents, err := ReadAll(files...)
	if err != nil {
		return err
	}
	return c.TrustContent(contents)
}

// ReadAll returns the contents of files of settings, by name.
func ReadAll(files ...string) (map[string][]byte, error) {
	contents := map[string][]byte{}
	for _, f := range files {
		data, err := readFile(f)
		if err != nil {
			return nil, err
		}
		contents[f] = data
	}
	return contents, nil
}

// TrustContent records that the user trusts files with exactly these contents, by name: what somebody else has put in their
// places since is not trusted. It is atomic.
func (c *Config) TrustContent(contents map[string][]byte) error {
	return c.changeTrust(func(t *trustFile) {
		for f, data := range contents {
			t.Files[trustName(f)] = trustEntry{SHA256: sum(data), Since: time.Now().UTC().Truncate(time.Second)}
		}
	})
}

// Untrust withdraws trust from files, which need not exist any more. It returns those that were
// trusted, with any content.
func (c *Config) Untrust(files ...string) ([]string, error) {
	var had []string
	err := c.changeTrust(func(t *trustFile) {
		for _, f := range files {
			if _, ok := t.Files[trustName(f)]; ok {
				delete(t.Files, trustName(f))
				had = append(had, f)
			}
		}
	})
	return had, err
}

// TrustedFiles returns the names of all files that the user has trusted, sorted.
func (c *Config) TrustedFiles() ([]string, error) {
	if c.Dirs.State == "" {
		return nil, nil
	}
	t, err := readTrust(c.trustPath())
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(t.Files)), nil
}

func (c *Config) trustPath() string { return filepath.Join(c.Dirs.State, "trust.json") }

// changeTrust reads the record, changes it and writes it, while it holds its lock.
func (c *Config) changeTrust(change func(*trustFile)) error {
	if c.Dirs.State == "" {
		return errors.New("there is no place to remember trust in: set HOME or XDG_STATE_HOME")
	}
	// Another process may do the same at this moment, and neither may undo what the other does.
	err := filelock.Do(context.Background(), filepath.Join(c.Dirs.State, "trust.lock"), func() error {
		t, err := readTrust(c.trustPath())
		if err != nil {
			return err
		}
		change(t)
		data, err := json.MarshalIndent(t, "", "  ")
		if err != nil {
			return err
		}
		return writeFile(c.trustPath(), append(data, '\n'), 0o600)
	})
	if _, told := errors.AsType[*Error](err); err != nil && !told {
		return fmt.Errorf("remember trust: %w", err)
	}
	return err
}

// readTrust reads the record. A broken file is an error: nothing may continue as if it had not been
// changed.
func readTrust(name string) (*trustFile, error) {
	t := &trustFile{Version: 1, Files: map[string]trustEntry{}}
	data, err := readFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, t); err != nil {
		return nil, fail(&Problem{Source: name, Err: fmt.Errorf("is broken, remove it to trust nothing: %w", err)})
	}
	if t.Version != 1 {
		return nil, fail(&Problem{Source: name, Err: fmt.Errorf("is of version %d, which this program does not know", t.Version)})
	}
	if t.Files == nil {
		t.Files = map[string]trustEntry{}
	}
	return t, nil
}

func sum(content []byte) string {
	s := sha256.Sum256(content)
	return hex.EncodeToString(s[:])
}

// trustName returns the absolute name of a file in a directory without links.
func trustName(file string) string {
	abs, err := filepath.Abs(file)
	if err != nil {
		return filepath.Clean(file)
	}
	return filepath.Join(realName(filepath.Dir(abs)), filepath.Base(abs))
}

// realName returns a name without links, even of a file that no longer exists.
func realName(file string) string {
	abs, err := filepath.Abs(file)
	if err != nil {
		return filepath.Clean(file)
	}
	if name, err := filepath.EvalSymlinks(abs); err == nil {
		return name
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
		return filepath.Join(dir, filepath.Base(abs))
	}
	return abs
}

// writeFile replaces a file atomically: readers, and the next process after a crash, see the old
// content or the new one. If the name is a link, the file that it leads to is replaced.
func writeFile(name string, data []byte, mode os.FileMode) error {
	name = realName(name)
	if info, err := os.Stat(name); err == nil {
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error counts
	}
	return err
}

// ProjectFiles returns the files in a directory that have effect only if they are trusted: its
// settings, the policy these name, and its MCP servers.
func ProjectFiles(dir string) ([]string, error) {
	var files []string
	name := filepath.Join(dir, ProjectFile)
	data, err := readFile(name)
	switch {
	case err == nil:
		doc, problem := parseDocument(name, data)
		if problem != nil {
			return nil, fail(problem)
		}
		if _, problems := doc.items(name); len(problems) > 0 {
			return nil, fail(problems...)
		}
		files = append(files, name)
		if policy, _ := doc.value(path{"permissions", "policy"}).(string); policy != "" {
			home, _ := os.UserHomeDir() // "" leaves ~ as it is
			files = append(files, absolute(policy, dir, home))
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	name = filepath.Join(dir, MCPFile)
	if _, err := os.Stat(name); err == nil {
		files = append(files, name)
	}
	return files, nil
}
