package holder

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

// Defaults and fixed bounds of a [Config].
const (
	DefaultLease = 8 * time.Second
	MaxLease     = 15 * time.Minute // of any renewal
	DefaultRing  = 16 << 20         // bytes
	MaxFrame     = 1 << 30          // bytes, of a line or a frame
	minToken     = 16               // characters
	maxConfig    = 4 << 20          // bytes of a Config as JSON
	maxSocket    = 103              // bytes of a path, the least that a system allows
	suffix       = ".sock"
	fresh        = ".new" // of a socket on which nobody listens yet
)

// A Command is the agent's.
type Command struct {
	// Path is the program. Without a separator it is looked up in the PATH of Env.
	Path string `json:"path"`
	// Args are the arguments, without the program's name.
	Args []string `json:"args,omitempty"`
	// Dir is the directory to run in; [Start] makes it absolute, and "" that of its process.
	Dir string `json:"dir,omitempty"`
	// Env is the environment as in [os.Environ]; [Start] replaces nil by that of its process. The
	// holder's own environment has next to nothing of it.
	Env []string `json:"env,omitempty"`
}

// A Config says what a holder holds. [Start] sends it over the holder's standard input, since other
// users of the machine can read command lines. The zero value of each field but Dir and Command has
// a default.
type Config struct {
	// Dir is the directory of the socket. It must belong to the user and be closed to others: 0700.
	// [Start] creates it.
	Dir string `json:"dir"`
	// ID names the holder: the socket is ID.sock in Dir, whose path may have up to 103 bytes. It
	// consists of letters, digits, - and _. Start replaces "" by a random one.
	ID string `json:"id"`
	// Token is the secret of whoever may attach, at least 16 characters. Start replaces "" by a
	// random one.
	Token string `json:"token"`

	// Command is the agent.
	Command Command `json:"command"`

	// Lease is how long the holder waits for its gateway; 0 means [DefaultLease], and [MaxLease] is
	// the most.
	Lease time.Duration `json:"lease,omitempty"`
	// CloseGrace is how long the agent may take to end when its input has ended, and TermGrace how
	// long after it was asked to terminate. 0 means 2 s; a negative value means not to wait.
	CloseGrace time.Duration `json:"closeGrace,omitempty"`
	TermGrace  time.Duration `json:"termGrace,omitempty"`
	// Ring bounds the unacknowledged events, in bytes; 0 means [DefaultRing].
	Ring int `json:"ring,omitempty"`
	// MaxFrame bounds a line of the agent and a frame for it, in bytes; 0 means
	// [jsonrpc.DefaultMaxFrame].
	MaxFrame int `json:"maxFrame,omitempty"`

	// Ready, if not nil, is called by [Run] when the agent runs and the socket can be dialled, with
	// the number of the agent's process.
	Ready func(agent int) `json:"-"`
}

// Socket returns the path of the socket.
func (c Config) Socket() string { return filepath.Join(c.Dir, c.ID+suffix) }

// withDefaults fills in what is 0.
func (c Config) withDefaults() Config {
	if c.Lease == 0 {
		c.Lease = DefaultLease
	}
	if c.Ring == 0 {
		c.Ring = DefaultRing
	}
	if c.MaxFrame == 0 {
		c.MaxFrame = jsonrpc.DefaultMaxFrame
	}
	return c
}

// started fills in what only the process that starts a holder knows.
func (c Config) started() (_ Config, err error) {
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return c, err
	}
	if c.Command.Dir, err = filepath.Abs(c.Command.Dir); err != nil {
		return c, err
	}
	if c.ID == "" {
		c.ID = rand.Text()[:12] // paths of sockets are short
	}
	if c.Token == "" {
		c.Token = rand.Text()
	}
	if c.Command.Env == nil {
		c.Command.Env = os.Environ()
	}
	return c, nil
}

// check returns what is wrong with a Config that has its defaults.
func (c Config) check() error {
	switch {
	case !filepath.IsAbs(c.Dir):
		return fmt.Errorf("the directory %q of the socket is not absolute", c.Dir)
	case !isID(c.ID):
		return fmt.Errorf("the name %q has other characters than letters, digits, - and _", c.ID)
	case len(c.Socket())+len(fresh) > maxSocket:
		return fmt.Errorf("the path of the socket, %q, is longer than %d bytes", c.Socket(), maxSocket-len(fresh))
	case len(c.Token) < minToken:
		return fmt.Errorf("the token has fewer than %d characters", minToken)
	case len(c.Token) > maxControl/8:
		return fmt.Errorf("the token has more than %d characters", maxControl/8)
	case c.Command.Path == "":
		return errors.New("there is no command")
	case c.Lease < 0 || c.Lease > MaxLease:
		return fmt.Errorf("a lease of %v is not between 0 and %v", c.Lease, MaxLease)
	case c.Ring < 0:
		return fmt.Errorf("a ring of %d bytes", c.Ring)
	case c.MaxFrame < 0 || c.MaxFrame > MaxFrame:
		return fmt.Errorf("a limit of %d bytes is not between 0 and %d", c.MaxFrame, MaxFrame)
	}
	return nil
}

func isID(s string) bool {
	for _, r := range s {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_':
		default:
			return false
		}
	}
	return s != ""
}

// readConfig reads a Config as JSON, to the end of the input.
func readConfig(r io.Reader) (c Config, err error) {
	data, err := io.ReadAll(io.LimitReader(r, maxConfig+1))
	if err != nil {
		return c, err
	}
	if len(data) > maxConfig {
		return c, fmt.Errorf("it has more than %d bytes", maxConfig)
	}
	return c, json.Unmarshal(data, &c)
}

// version is that of the wire.
const version = 1

// A hello is the first packet of a gateway.
type hello struct {
	Version int    `json:"version"`
	Token   string `json:"token"`
	Have    uint64 `json:"have"` // the last event that it has
}

// A welcome is the answer to it.
type welcome struct {
	Version  int           `json:"version"`
	PID      int           `json:"pid"`      // of the holder
	Agent    int           `json:"agent"`    // of the agent, as long as that runs
	Last     uint64        `json:"last"`     // event there is
	Accepted uint64        `json:"accepted"` // frames that the agent has got or will get
	Written  uint64        `json:"written"`  // of these, those that were written to it
	Queued   int           `json:"queued"`   // bytes of the others
	Lease    time.Duration `json:"lease"`
	MaxFrame int           `json:"maxFrame"`
}

// A refusal is the other answer to a hello.
type refusal struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// The codes of refusals.
const (
	codeToken   = "token"
	codeVersion = "version"
	codeGap     = "gap"
	codeEnding  = "ending"
)

// An ending says how the agent has ended, or why that is not known.
type ending struct {
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"`
	Stderr string `json:"stderr,omitempty"`
	Error  string `json:"error,omitempty"`
}

// encode returns a value of this package as JSON.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // no type of this package makes that happen
	}
	return data
}
