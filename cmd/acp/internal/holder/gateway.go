package holder

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

// Errors of [Attach], and those that end the stream of an [Agent]. Calls that are in flight then may
// have been handled: the latter wrap [jsonrpc.ErrOutcomeUnknown], too.
var (
	// ErrNone says that no holder listens on a socket.
	ErrNone = errors.New("holder: there is no holder")
	// ErrToken says that the token is not that of the holder.
	ErrToken = errors.New("holder: the token is wrong")
	// ErrVersion says that the holder speaks another version of its protocol.
	ErrVersion = errors.New("holder: another version")
	// ErrGap says that the holder does not have the events that follow the last one of the gateway.
	ErrGap = errors.New("holder: events are missing")
	// ErrEnding says that the holder is ending its agent.
	ErrEnding = errors.New("holder: the agent is being ended")
	// ErrTaken says that another gateway has attached to the holder.
	ErrTaken = errors.New("holder: another gateway has attached")
	// ErrLost says that the connection to the holder has ended: the holder was killed, and its agent
	// with it, or the lease has lapsed.
	ErrLost = errors.New("holder: the holder is gone")
)

// A Spec says what [Start] starts.
type Spec struct {
	Config Config
	// Program is the command line that runs [Main]; nil means that of this program: acp hold.
	Program []string
}

// A State is what a gateway remembers of an agent between two attachments. The zero value is that of
// a gateway that has seen nothing.
type State struct {
	// Seq is the number of the last event that the gateway has committed: see [Agent.Seq]. Attaching
	// acknowledges it.
	Seq uint64
}

// attachTime bounds an attachment whose context has no deadline.
const attachTime = 30 * time.Second

// Start starts a holder with its agent, in a process that outlives this one and has a session of its own, and attaches to
// it. The error wraps [io/fs.ErrNotExist] if the agent's program or directory does not exist. When ctx is done before the
// agent runs, the holder is killed; when it is done after that, before Start returns, the agent ends with its lease.
//
// Once the connection to the holder has ended, this process waits for that of the holder in the background: it would
// remain as a zombie.
//
// A gateway that wants to find the agent again sets Config.ID and Config.Token and keeps them before
// it calls Start, or keeps [Agent.Socket] and [Agent.Token] afterwards.
func Start(ctx context.Context, s Spec) (*Agent, error) {
	if err := supported(); err != nil {
		return nil, err
	}
	c, err := s.Config.withDefaults().started()
	if err == nil {
		err = c.check()
	}
	if err == nil {
		err = os.MkdirAll(c.Dir, 0o700)
	}
	if err == nil {
		err = checkDir(c.Dir)
	}
	if err != nil {
		return nil, fmt.Errorf("holder: %w", err)
	}
	program := s.Program
	if program == nil {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("holder: %w", err)
		}
		program = []string{self, "hold"}
	}
	ctx, cancel := context.WithTimeout(ctx, attachTime)
	defer cancel()
	holder, err := launch(ctx, program, encode(c))
	if err != nil {
		return nil, err
	}
	a, err := Attach(ctx, c.Socket(), c.Token, State{}) // the lease runs
	go func() {
		if err == nil {
			<-a.over.Done() // waiting takes a thread
		}
		_ = holder.Wait()
	}()
	return a, err
}

// launch starts the process of a holder, gives it its configuration, and waits until it is ready. Without an error the
// process is to be waited for.
func launch(ctx context.Context, program []string, config []byte) (*exec.Cmd, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("holder: starting %s: %w", program[0], context.Cause(ctx))
	}
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("holder: %w", err)
	}
	defer inW.Close()
	outR, outW, err := os.Pipe()
	if err != nil {
		_ = inR.Close()
		return nil, fmt.Errorf("holder: %w", err)
	}
	defer outR.Close()
	cmd := exec.Command(program[0], program[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Dir, cmd.Env, cmd.SysProcAttr = inR, outW, "/", holderEnv(), newSession()
	err = cmd.Start()
	_ = inR.Close()
	_ = outW.Close()
	if err != nil {
		return nil, fmt.Errorf("holder: starting %s: %w", program[0], err)
	}
	stop := context.AfterFunc(ctx, func() {
		_ = cmd.Process.Kill()
		_ = inW.SetDeadline(time.Now())
		_ = outR.SetDeadline(time.Now())
	})
	defer stop()
	_, wrote := inW.Write(config)
	_ = inW.Close()
	line, read := bufio.NewReader(io.LimitReader(outR, maxConfig)).ReadString('\n')
	ready := read == nil && startError(line, nil) == nil
	if ready && wrote == nil && stop() {
		return cmd, nil
	}
	exit := cmd.Wait()
	if cause := context.Cause(ctx); cause != nil && (read != nil || ready) {
		return nil, fmt.Errorf("holder: starting %s: %w", program[0], cause)
	}
	if err := startError(line, exit); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("holder: starting %s: %w", program[0], orEOF(wrote))
}

// Gone reports whether a holder has ended and removed its socket, so that Attach would fail. It attaches to nothing; one
// that was killed is found out by Attach alone.
func Gone(socket string) bool {
	_, err := os.Lstat(socket)
	return errors.Is(err, fs.ErrNotExist)
}

// Attach attaches to the holder of a socket. A gateway that was attached before is cut off, see
// [ErrTaken]. The errors wrap [ErrNone], [ErrToken], [ErrVersion], [ErrGap], [ErrEnding] or the cause of ctx.
//
// Frames of the gateway up to [Agent.Sent] have arrived or will. What the gateway had sent beyond
// that has not, and it may send it again.
func Attach(ctx context.Context, socket, token string, s State) (*Agent, error) {
	if err := supported(); err != nil {
		return nil, err
	}
	// Whoever listens gets the token.
	if err := checkDir(filepath.Dir(socket)); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("%w: %w", ErrNone, err)
		}
		return nil, fmt.Errorf("holder: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, attachTime)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		if isDead(err) {
			return nil, fmt.Errorf("%w: %w", ErrNone, err)
		}
		return nil, fmt.Errorf("holder: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	a, err := greetHolder(conn, token, s)
	if !stop() && err == nil {
		err = context.Cause(ctx) // the deadline may be set at any time
	}
	if err != nil {
		_ = conn.Close()
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("holder: attaching: %w", cause)
		}
		return nil, err
	}
	a.socket, a.token = socket, token
	a.begin()
	return a, nil
}

// greetHolder exchanges the first packets.
func greetHolder(conn net.Conn, token string, s State) (*Agent, error) {
	a := newAgent(conn, s.Seq)
	p := packet{kind: kindHello, data: encode(hello{Version: version, Token: token, Have: s.Seq})}
	if err := a.send(p); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	p, err := readPacket(a.r, 0)
	if err != nil {
		// It is ending, or has too many connections.
		return nil, fmt.Errorf("%w: %w", ErrNone, unexpected(err))
	}
	switch p.kind {
	case kindWelcome:
		if err := json.Unmarshal(p.data, &a.greeting); err != nil {
			return nil, fmt.Errorf("holder: attaching: %w: %w", errPacket, err)
		}
		a.sent, a.written = a.greeting.Accepted, a.greeting.Written
		if a.greeting.Queued > 0 {
			a.unwritten = []pending{{a.sent, a.greeting.Queued}}
			a.flying = a.greeting.Queued
		}
		return a, nil
	case kindRefused:
		var r refusal
		if err := json.Unmarshal(p.data, &r); err != nil {
			return nil, fmt.Errorf("holder: attaching: %w: %w", errPacket, err)
		}
		for code, err := range map[string]error{codeToken: ErrToken, codeVersion: ErrVersion, codeGap: ErrGap, codeEnding: ErrEnding} {
			if r.Code == code {
				return nil, fmt.Errorf("%w: %s", err, r.Text)
			}
		}
		return nil, fmt.Errorf("holder: refused: %s", r.Text)
	}
	return nil, fmt.Errorf("holder: attaching: %w: kind %q", errPacket, byte(p.kind))
}

// A Left is a holder that [List] has found.
type Left struct {
	ID     string // the Config.ID that it was started with
	Socket string // for [Attach]
}

// List returns the holders that listen in a directory, by ID, and removes the sockets of those that
// were killed. A directory that does not exist has none. It is safe for concurrent use, in several
// processes, too.
func List(dir string) ([]Left, error) {
	if err := supported(); err != nil {
		return nil, err
	}
	files, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("holder: %w", err)
	}
	var left []Left
	for _, f := range files {
		name := f.Name()
		path := filepath.Join(dir, name)
		if f.Type()&os.ModeSocket == 0 {
			continue
		}
		id, ok := strings.CutSuffix(name, suffix)
		if !ok {
			// A socket that has not got its name after a minute never will.
			if info, err := f.Info(); strings.HasSuffix(name, suffix+fresh) && err == nil && time.Since(info.ModTime()) > time.Minute {
				_ = os.Remove(path)
			}
			continue
		}
		conn, err := net.Dial("unix", path)
		switch {
		case err == nil:
			_ = conn.Close()
		case isDead(err):
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return left, fmt.Errorf("holder: %w", err)
			}
			continue
		}
		left = append(left, Left{ID: id, Socket: path})
	}
	return left, nil
}

// outcome adds that calls in flight may have been handled.
func outcome(err error) error { return fmt.Errorf("%w: %w", err, jsonrpc.ErrOutcomeUnknown) }
