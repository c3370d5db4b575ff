//go:build unix

package own

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/filelock"
)

// A Config says how the server in the background is started.
type Config struct {
	// State is the state directory of the user.
	State string
	// Program is this program, and Args what follows "serve", apart from where it listens.
	Program string
	Args    []string
	// Environ is its environment; nil means that of this process.
	Environ []string
}

// startTime bounds how long a server may take until it listens.
const startTime = 20 * time.Second

// Start returns the server of the user, and starts one in the background if there is none.
func Start(ctx context.Context, cfg Config) (s Server, err error) {
	if cfg.State == "" {
		return s, errors.New("there is no home directory for the gateway")
	}
	err = filelock.Do(ctx, filepath.Join(dir(cfg.State), "start.lock"), func() error {
		found, ok, err := Find(ctx, cfg.State)
		if s = found; ok || err != nil {
			return err
		}
		if err := start(ctx, cfg); err != nil {
			return err
		}
		if s, ok, err = Find(ctx, cfg.State); ok || err != nil {
			return err
		}
		return errors.New("the gateway was started and has ended; its log is " + LogFile(cfg.State))
	})
	return s, err
}

// start starts the server and waits until it listens.
func start(ctx context.Context, cfg Config) error {
	socket, err := Socket(cfg.State)
	if err != nil {
		return err
	}
	log, err := OpenLog(LogFile(cfg.State))
	if err != nil {
		return err
	}
	defer log.Close()
	said, err := log.file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.Command(cfg.Program, append([]string{"serve", "--background", "--listen", "unix:" + socket}, cfg.Args...)...)
	cmd.Dir, cmd.Env = "/", cfg.Environ
	cmd.Stdout, cmd.Stderr = w, log.file
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // neither Ctrl-C nor the end of the terminal reaches it
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		return fmt.Errorf("starting a gateway: %w", err)
	}
	first := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(io.LimitReader(r, 1<<16)).ReadString('\n')
		first <- line
	}()
	timer := time.NewTimer(startTime)
	defer timer.Stop()
	select {
	case line := <-first:
		if strings.HasPrefix(line, "unix:") {
			return cmd.Process.Release() // it is nobody's child from now on
		}
		err = fmt.Errorf("the gateway does not start: %s", lastLine(cfg.State, said))
	case <-timer.C:
		err = fmt.Errorf("the gateway has not started in %v; its log is %s", startTime, LogFile(cfg.State))
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return err
}

// lastLine returns the last line that a server has written to its log since a place in it.
func lastLine(state string, since int64) string {
	f, err := os.Open(LogFile(state))
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	text := make([]byte, 4<<10)
	n, _ := f.ReadAt(text, since)
	lines := strings.Split(strings.TrimSpace(string(text[:n])), "\n")
	line := strings.TrimPrefix(strings.TrimPrefix(lines[len(lines)-1], "acp: "), "acp serve: ")
	if line == "" {
		return "it says nothing; its log is " + LogFile(state)
	}
	return line
}

// maxSocket bounds the path of a socket, in bytes: systems take 104 at most.
const maxSocket = 100

// Socket returns where the server in the background listens, in a directory that only the user can use: below
// XDG_RUNTIME_DIR, in the state directory, or in the directory for temporary files if the others have too long a name.
func Socket(state string) (string, error) {
	sum := sha256.Sum256([]byte(state))
	name := "own-" + hex.EncodeToString(sum[:6]) + ".sock"
	var err error
	for _, base := range []string{
		filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "acp"), dir(state), filepath.Join(os.TempDir(), fmt.Sprintf("acp-%d", os.Getuid())),
	} {
		if !filepath.IsAbs(base) || len(base)+1+len(name) > maxSocket {
			continue
		}
		if err = private(base); err == nil {
			return filepath.Join(base, name), nil
		}
	}
	return "", errors.Join(errors.New("there is no place for the socket of the gateway: set XDG_RUNTIME_DIR to a directory of yours"), err)
}

// private makes a directory that only the user can use, or checks that it is one.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case ok && int(owner.Uid) != os.Getuid():
		return fmt.Errorf("%s belongs to another user", dir)
	case info.Mode().Perm()&0o077 != 0:
		return os.Chmod(dir, 0o700)
	}
	return nil
}

// Stop asks a server to end, with its agents, and waits until it serves nobody any more.
func Stop(ctx context.Context, state string, s Server) error {
	if s.PID <= 1 {
		return fmt.Errorf("%d is not the process of a server", s.PID)
	}
	if err := os.WriteFile(stopping(state), []byte(strconv.Itoa(s.PID)), 0o600); err != nil {
		return err
	}
	defer func() { _ = os.Remove(stopping(state)) }()
	if err := syscall.Kill(s.PID, syscall.SIGTERM); err != nil {
		return fmt.Errorf("ending process %d: %w", s.PID, err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		unlocked, ok := isUnlocked(state)
		if unlocked || !ok && syscall.Kill(s.PID, 0) != nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("process %d has not ended: %w", s.PID, context.Cause(ctx))
		}
	}
}

// isUnlocked reports whether nobody serves the sessions in a directory for state any more: the process of the one that did
// may be there still, since its parent has not asked how it ended. ok is false where files cannot be locked.
func isUnlocked(state string) (unlocked, ok bool) {
	f, err := os.Open(filepath.Join(dir(state), "lock"))
	if err != nil {
		return false, false
	}
	defer f.Close()
	unlocked, err = filelock.TryLock(f, false)
	return unlocked, err == nil
}
