// Package remembered keeps what was learned about agents when they were started, so that they need
// not be started again just to learn it. It may be wrong: it is a shortcut, never a reason to fail.
// It remembers at most 256 agents; see [MaxAgents].
package remembered

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// MaxAgents bounds how many agents are remembered. The one that was learned about first makes
	// room.
	MaxAgents = 256
	// MaxAge is how long something is remembered: the agent may have been updated since.
	MaxAge = 30 * 24 * time.Hour

	maxFile = 1 << 20 // bytes
)

// An Agent is what is known of an agent.
type Agent struct {
	Protocol int       `json:"protocol,omitempty"` // 1 if it speaks version 1 only; 0 is not known
	NoFiles  bool      `json:"noFiles,omitempty"`  // it works worse with files lent to it
	Name     string    `json:"name,omitempty"`     // that it has given
	Version  string    `json:"version,omitempty"`  // that it has given
	Learned  time.Time `json:"learned"`
}

// A Memory is a file that several processes may use at once: the last write counts. Its methods may
// be called from any goroutine. Nil remembers nothing.
type Memory struct {
	path string
	now  func() time.Time
}

// New returns the memory in a file. Neither the file nor its directory need exist.
func New(path string) *Memory { return &Memory{path, time.Now} }

// Key names an agent by the command that starts it, or its URL.
func Key(argv []string) string {
	data, _ := json.Marshal(argv) // strings cannot fail
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// Get returns what is known of an agent: the zero Agent if that is nothing, or too old. A file that
// cannot be read counts as empty.
func (m *Memory) Get(key string) Agent {
	if m == nil {
		return Agent{}
	}
	return m.read()[key]
}

// Put remembers an agent. The zero Agent is forgotten.
func (m *Memory) Put(key string, a Agent) error {
	if m == nil {
		return nil
	}
	all := m.read()
	if _, known := all[key]; !known && a == (Agent{}) {
		return nil
	}
	delete(all, key)
	if a != (Agent{}) {
		for len(all) >= MaxAgents {
			oldest := ""
			for k, v := range all {
				if oldest == "" || v.Learned.Before(all[oldest].Learned) {
					oldest = k
				}
			}
			delete(all, oldest)
		}
		a.Learned = m.now().UTC().Truncate(time.Second)
		all[key] = a
	}
	if err := m.write(all); err != nil {
		return fmt.Errorf("remember an agent: %w", err)
	}
	return nil
}

// Learn remembers what an agent turned out to be, if that differs from what was known. An agent of
// version 1 that was updated is forgotten, so that it is examined again the next time; so is one
// with nothing worth remembering.
func (m *Memory) Learn(key string, was, now Agent) error {
	now.Name, now.Version, now.Learned = cut(now.Name), cut(now.Version), was.Learned
	switch {
	case was == now:
		return nil
	case was.Protocol != 0 && (was.Name != now.Name || was.Version != now.Version), now.Protocol == 0 && !now.NoFiles:
		now = Agent{}
	}
	return m.Put(key, now)
}

// cut bounds what an agent says of itself.
func cut(text string) string { return strings.ToValidUTF8(text[:min(len(text), 100)], "") }

// read reads the file, without what is too old. One that is broken, too large or not a regular file
// counts as empty.
func (m *Memory) read() map[string]Agent {
	all := map[string]Agent{}
	f, err := os.Open(m.path)
	if err != nil {
		return all
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return all
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil || len(data) > maxFile || json.Unmarshal(data, &all) != nil {
		return map[string]Agent{}
	}
	now := m.now()
	for k, a := range all {
		if age := now.Sub(a.Learned); age < 0 || age > MaxAge {
			delete(all, k)
		}
	}
	return all
}

// write replaces the file.
func (m *Memory) write(all map[string]Agent) error {
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	dir := filepath.Dir(m.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".agents-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), m.path)
	}
	if err != nil {
		if gone := os.Remove(f.Name()); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}
