// Package own is the user's own gateway: acp serve on a Unix socket, in the background. It starts when a command needs
// it, and ends when nothing is left to keep.
//
// Each acp serve that keeps its sessions in the state directory of the user is announced there ([Announce]), so that
// commands find it ([Find]). There is one at most, because its directory is locked. [Start] starts one in the background
// unless there is one; of several callers at once one does. It belongs to no terminal and no session of the
// shell, and survives its parent. [Linger] decides when it ends. What it says is in a log of bounded size ([OpenLog]).
package own

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A Server is an acp serve of this user that keeps sessions.
type Server struct {
	PID     int       `json:"pid"`
	URL     string    `json:"url"`
	Started time.Time `json:"started"`
	// Background says that it was started by [Start] and ends by itself.
	Background bool `json:"background,omitempty"`
	// Log is the file with what it says, if it runs in the background.
	Log string `json:"log,omitempty"`
}

// Who returns what a server says of itself where it has a session open; pid is its process.
func Who(pid int) string { return fmt.Sprintf("acp serve (process %d)", pid) }

// maxAnnounced bounds the file of an announcement, in bytes.
const maxAnnounced = 16 << 10

// dir is where the gateway keeps its sessions.
func dir(state string) string { return filepath.Join(state, "gateway") }

func announced(state string) string { return filepath.Join(dir(state), "serving.json") }

// Announce makes a server known to the commands of the user. The caller has the lock of the directory, so nobody else
// announces one. end takes the announcement back.
func Announce(state string, s Server) (end func(), err error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir(state), 0o700); err != nil {
		return nil, err
	}
	if err := os.Remove(stopping(state)); err != nil && !errors.Is(err, fs.ErrNotExist) { // it was for one that was killed
		return nil, err
	}
	f, err := os.CreateTemp(dir(state), ".serving-") // with mode 0600
	if err != nil {
		return nil, err
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), announced(state))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return nil, err
	}
	return func() { _ = os.Remove(announced(state)) }, nil
}

// stopping is the file that says that a server is to end with its agents, and not to leave them to the next one.
func stopping(state string) string { return filepath.Join(dir(state), "stopping") }

// Stopping reports whether [Stop] ends this process.
func Stopping(state string) bool {
	data, err := os.ReadFile(stopping(state))
	return err == nil && string(data) == strconv.Itoa(os.Getpid())
}

// Find returns the server of this user that runs. ok is false if there is none. One that was killed has left its
// announcement: whether somebody listens there is asked.
func Find(ctx context.Context, state string) (s Server, ok bool, err error) {
	if state == "" {
		return s, false, nil
	}
	f, err := os.Open(announced(state))
	if errors.Is(err, fs.ErrNotExist) {
		return s, false, nil
	}
	if err != nil {
		return s, false, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxAnnounced))
	if err != nil {
		return s, false, err
	}
	s, network, address, ok := decode(data)
	if !ok || !listens(ctx, network, address) {
		return Server{}, false, nil // it is left from one that was killed
	}
	return s, true, nil
}

// decode reads an announcement, and where the server listens.
func decode(data []byte) (s Server, network, address string, ok bool) {
	if json.Unmarshal(data, &s) != nil {
		return Server{}, "", "", false
	}
	network = "unix"
	if address, ok = strings.CutPrefix(s.URL, "unix:"); !ok {
		network = "tcp"
		if u, err := url.Parse(s.URL); err == nil {
			address = u.Host
		}
	}
	if address == "" {
		return Server{}, "", "", false
	}
	return s, network, address, true
}

// dialTime bounds how long it may take to connect to a server on this machine.
const dialTime = 2 * time.Second

// listens reports whether somebody listens at an address.
func listens(ctx context.Context, network, address string) bool {
	d := net.Dialer{Timeout: dialTime}
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// Linger returns when nothing has been left to keep for a time, or when ctx is done. busy reports whether there is
// something; it is called once a second, or more often if the time is shorter.
func Linger(ctx context.Context, grace time.Duration, busy func() bool) error {
	every := min(time.Second, max(grace/4, time.Millisecond))
	tick := time.NewTicker(every)
	defer tick.Stop()
	since := time.Now()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if busy() {
			since = time.Now()
		}
		if time.Since(since) >= grace {
			return nil
		}
	}
}

// LogFile returns the file with what the server in the background says.
func LogFile(state string) string { return filepath.Join(dir(state), "own.log") }

// MaxLog bounds a log, in bytes. There are two: when one is full it replaces the one before.
const MaxLog = 1 << 20

// A Log is a file of bounded size. Its methods must not be called concurrently.
type Log struct {
	name string
	file *os.File
	size int64
}

// OpenLog opens a log to write to its end.
func OpenLog(name string) (*Log, error) {
	l := &Log{name: name}
	return l, l.open()
}

func (l *Log) open() error {
	f, err := os.OpenFile(l.name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.size = f, info.Size()
	return nil
}

// Write implements [io.Writer].
func (l *Log) Write(p []byte) (int, error) {
	if l.size > 0 && l.size+int64(len(p)) > MaxLog {
		_ = l.file.Close()
		if err := os.Rename(l.name, l.name+".1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		if err := l.open(); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Write(p[:min(len(p), MaxLog)])
	l.size += int64(n)
	if err == nil && n < len(p) { // the rest of what is too long is dropped
		n = len(p)
	}
	return n, err
}

// Close closes the file.
func (l *Log) Close() error { return l.file.Close() }

// ErrUnsupported says that no gateway is started by itself on this system.
var ErrUnsupported = fmt.Errorf("no gateway starts by itself on this system: run acp serve in a window of its own: %w", errors.ErrUnsupported)
