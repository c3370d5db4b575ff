package holder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp/internal/process"
)

// Run starts an agent and holds it until the lease ends, the end of the agent was acknowledged, a
// gateway calls [Agent.Stop], or ctx is done. Then it ends the agent and everything that the agent
// has started, removes the socket and returns nil. The error says that the agent could not be
// started, that the socket could not be made, or that the system does not let the agent end. Run
// uses nothing of its process but files, so a process may hold several agents, which then share its
// fate.
func Run(ctx context.Context, c Config) error {
	if err := supported(); err != nil {
		return err
	}
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return fmt.Errorf("holder: %w", err)
	}
	if err := checkDir(c.Dir); err != nil {
		return fmt.Errorf("holder: %w", err)
	}
	// The agent is started first: once there is a socket there is something to attach to.
	p, err := process.Start(ctx, process.Config{
		Path: c.Command.Path, Args: c.Command.Args, Dir: c.Command.Dir, Env: c.Command.Env,
		StderrTail: stderrBytes, CloseGrace: c.CloseGrace, TermGrace: c.TermGrace,
	})
	if err != nil {
		return fmt.Errorf("holder: %w", err)
	}
	defer func() { _ = p.Stop(context.Background()) }() // closes what is left
	l, err := listen(c.Socket())
	if err != nil {
		kill, cancel := context.WithCancel(ctx)
		cancel()
		return errors.Join(fmt.Errorf("holder: %w", err), p.Stop(kill))
	}
	h := newCore(c, child{p})
	h.shut = sync.OnceFunc(func() {
		_ = os.Remove(c.Socket())
		_ = l.Close()
	})
	h.work.Go(func() { h.serve(l) })
	if c.Ready != nil {
		c.Ready(p.PID())
	}
	if err := h.run(ctx); err != nil {
		return fmt.Errorf("holder: %w", err)
	}
	return nil
}

// listen listens on a socket that has its name only when it can be dialled, so that who finds it and is
// refused knows that nobody listens.
func listen(path string) (net.Listener, error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(&fs.PathError{Op: "listen", Path: path, Err: fs.ErrExist}, err)
	}
	l, err := net.Listen("unix", path+fresh)
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // it would not find it
	err = os.Chmod(path+fresh, 0o600)
	if err == nil {
		err = os.Rename(path+fresh, path)
	}
	if err != nil {
		_ = os.Remove(path + fresh)
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// checkDir returns what is wrong with the directory of a socket: others must not have access to it, nor be able to put
// another one in its place.
func checkDir(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("others have access to %s: its mode is %#o, not 0700", dir, info.Mode().Perm())
	case !isOurs(info):
		return fmt.Errorf("%s belongs to another user", dir)
	}
	parent := filepath.Dir(dir)
	link, err := os.Lstat(parent)
	if err != nil {
		return err
	}
	to, err := os.Stat(parent)
	if err != nil {
		return err
	}
	// In a sticky directory, such as /tmp, only the owner of an entry replaces it.
	sticky := to.Mode()&os.ModeSticky != 0
	if link.Mode()&os.ModeSymlink != 0 && !isOurs(link) || !sticky && (!isOurs(to) || to.Mode().Perm()&0o002 != 0) {
		return fmt.Errorf("others can replace %s: see the owner and the mode of %s", dir, parent)
	}
	return nil
}

// A report is the line that a holder writes to its standard output when it is ready, or will not be.
type report struct {
	Agent   int    `json:"agent,omitempty"`
	Error   string `json:"error,omitempty"`
	Missing bool   `json:"missing,omitempty"` // the program or a directory
}

// Main is the process of a holder, as [Start] begins it: it reads a [Config] from in, writes a line
// to out, and is [Run]. It tunes the runtime to the little that a holder does, so it is for a process
// that does nothing else. An error from before the agent ran was written to out, too.
func Main(ctx context.Context, in io.Reader, out io.Writer) error {
	said := false
	say := func(r report) {
		if !said {
			said = true
			_, _ = out.Write(append(encode(r), '\n')) // whoever started this may be gone
		}
	}
	var warm sync.WaitGroup
	warm.Go(process.Warm) // beside reading, and the start of the watchdog
	defer warm.Wait()
	c, err := readConfig(in)
	if err != nil {
		err = fmt.Errorf("holder: reading the configuration: %w", err)
	} else {
		if runtime.GOMAXPROCS(0) > 2 {
			runtime.GOMAXPROCS(2)
		}
		settled := make(chan struct{})
		settling := time.AfterFunc(time.Hour, func() { defer close(settled); settle() })
		c.Ready = func(agent int) {
			say(report{Agent: agent})
			settling.Reset(settleAfter)
		}
		err = Run(ctx, c)
		if !settling.Stop() {
			<-settled
		}
	}
	if err != nil {
		say(report{Error: err.Error(), Missing: errors.Is(err, fs.ErrNotExist)})
	}
	return err
}

// settleAfter is how long a holder may take to start: attaching touches much of the program once more.
const settleAfter = time.Second

// settle makes the process small. A program that can do more than this has initialized it all.
func settle() {
	debug.SetGCPercent(25) // not before: the heap of a start is above what begins a collection then
	debug.FreeOSMemory()
	Trim()
}

// keptVars are what the holder has of its starter's environment: where files go, what the runtime of
// Go reads, and which tree of processes it belongs to. Secrets may be in the others. It looks for no
// program: that of the agent is in the PATH of its own environment. Without a PATH, what the program is
// linked with does not look for any before main, either.
var keptVars = []string{"HOME", "TMPDIR", "GODEBUG", "GORACE", "GOTRACEBACK", "GOCOVERDIR", process.MarkVar}

func holderEnv() []string {
	env := []string{}
	for _, name := range keptVars {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// startError returns what a holder that could not start an agent has reported.
func startError(line string, exit error) error {
	var r report
	switch {
	case strings.TrimSpace(line) == "":
		return fmt.Errorf("holder: its process ended before it was ready: %w", orEOF(exit))
	case json.Unmarshal([]byte(line), &r) != nil:
		return fmt.Errorf("holder: its process wrote %.200q", line)
	case r.Error == "":
		return nil
	case r.Missing:
		return &missingError{r.Error}
	}
	return errors.New(r.Error)
}

func orEOF(err error) error {
	if err == nil {
		return io.ErrUnexpectedEOF
	}
	return err
}

// A missingError says what does not exist, in the holder's words.
type missingError struct{ text string }

func (e *missingError) Error() string { return e.text }
func (e *missingError) Unwrap() error { return fs.ErrNotExist }
