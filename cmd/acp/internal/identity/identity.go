// Package identity knows who the clients of a gateway are and what they may do. It keeps the devices of
// users and their credentials, pairs new devices, notices revocations, and authenticates requests: by
// the credential of a device, by the user at the other end of a Unix socket, or by a [Team], which is
// package identity/oidc for OpenID Connect. [Gate] combines these for [acphttp.Server].
//
// Packages below it: identity/audit is the log of who did what, identity/cert has certificates and the
// rule about where a server may listen.
//
// Not here: sessions of browsers (cookies, passkeys, the code flow of OpenID Connect), and rights other
// than roles and lists of agents and sessions.
package identity

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Dir is the directory of this package below the state directory of the program: it has the store and
// the audit log.
func Dir(state string) string { return filepath.Join(state, "identity") }

// A Role says what a principal may do in a session. A role includes those before it. The zero value may
// do nothing.
type Role int

// The roles.
const (
	None     Role = iota // nothing
	Viewer               // read
	Prompter             // send prompts and cancel their turns
	Approver             // answer permission requests
	Owner                // everything: manage devices, run new agents, change settings
)

var roleNames = []string{"none", "viewer", "prompter", "approver", "owner"}

// String returns the name of the role, such as "viewer".
func (r Role) String() string {
	if r < None || r > Owner {
		return fmt.Sprintf("Role(%d)", int(r))
	}
	return roleNames[r]
}

// ParseRole returns the role of a name, other than None.
func ParseRole(name string) (Role, error) {
	if i := slices.Index(roleNames, name); i > 0 {
		return Role(i), nil
	}
	return None, fmt.Errorf("there is no role %q: %s", name, strings.Join(roleNames[1:], ", "))
}

// MarshalText implements [encoding.TextMarshaler].
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (r *Role) UnmarshalText(text []byte) (err error) {
	if string(text) == roleNames[None] {
		*r = None
		return nil
	}
	*r, err = ParseRole(string(text))
	return err
}

// maxScope bounds each list of a Scope, and maxScopeName a name in it, in bytes.
const (
	maxScope     = 64
	maxScopeName = 256
)

// A Scope restricts a principal to some agents and some sessions. An empty list restricts nothing, so
// the zero value permits everything. Each list has at most 64 entries of 256 bytes.
type Scope struct {
	Agents   []string `json:"agents,omitempty"`
	Sessions []string `json:"sessions,omitempty"`
}

// Agent reports whether the scope includes an agent.
func (s Scope) Agent(name string) bool { return len(s.Agents) == 0 || slices.Contains(s.Agents, name) }

// Session reports whether the scope includes a session.
func (s Scope) Session(id string) bool {
	return len(s.Sessions) == 0 || slices.Contains(s.Sessions, id)
}

// plain returns the scope with nil for empty lists, which mean the same.
func (s Scope) plain() Scope {
	if len(s.Agents) == 0 {
		s.Agents = nil
	}
	if len(s.Sessions) == 0 {
		s.Sessions = nil
	}
	return s
}

func (s Scope) check() error {
	for _, list := range [][]string{s.Agents, s.Sessions} {
		if len(list) > maxScope {
			return fmt.Errorf("a scope has at most %d agents and %d sessions", maxScope, maxScope)
		}
		for _, name := range list {
			if name == "" || len(name) > maxScopeName {
				return fmt.Errorf("a name in a scope has from 1 to %d bytes", maxScopeName)
			}
		}
	}
	return nil
}

// A Kind is a way in which a principal was authenticated.
type Kind string

// The kinds.
const (
	KindDevice Kind = "device" // by the credential of a device
	KindLocal  Kind = "local"  // by the user at the other end of a Unix socket
	KindTeam   Kind = "team"   // by a [Team]
)

// A Principal is an authenticated client. The zero value may do nothing.
type Principal struct {
	Kind Kind   `json:"kind"`
	User string `json:"user"`
	// Device is the id of the device, which is not secret: for a team's principal the subject of its
	// token, "" for a local one. Name is what people call the device.
	Device string `json:"device,omitempty"`
	Name   string `json:"name,omitempty"`
	Role   Role   `json:"role"`
	Scope  Scope  `json:"scope,omitzero"`
	// Groups are those of a team's principal that rights are about, sorted.
	Groups []string `json:"groups,omitempty"`
	// Expires is when the credential ends; the zero time means never. It is not part of [Principal.Key].
	Expires time.Time `json:"-"`
}

// May reports whether the principal has a role, or one that includes it.
func (p Principal) May(r Role) bool { return p.Role >= r }

// Key returns a text that is equal for equal principals, whenever their credentials expire. It is what
// [Gate.Authenticate] returns to [acphttp.Server]; [ParseKey] is the reverse. It has no secret in it.
func (p Principal) Key() string {
	p.Scope = p.Scope.plain()
	text, err := json.Marshal(p)
	if err != nil { // no field has such a value
		return ""
	}
	return string(text)
}

// ParseKey returns the principal of a [Principal.Key], without Expires.
func ParseKey(key string) (Principal, error) {
	var p Principal
	if err := json.Unmarshal([]byte(key), &p); err != nil {
		return Principal{}, fmt.Errorf("this is not the key of a principal: %w", err)
	}
	p.Scope = p.Scope.plain()
	return p, nil
}

// Errors of this package. [errors.Is] finds them.
var (
	// ErrCredential says that a credential is not known: it is wrong, was revoked or has expired.
	ErrCredential = errors.New("the credential is wrong, was revoked or has expired")
	// ErrThrottled says that an address has sent too many wrong credentials or codes.
	ErrThrottled = errors.New("too many wrong attempts")
	// ErrTicket says that a ticket or a code cannot be redeemed. It does not say whether it is wrong,
	// was redeemed or has expired: those who guess learn nothing.
	ErrTicket = errors.New("the ticket or the code is wrong, was used or has expired")
	// ErrWaiting says that a ticket was claimed and is redeemed once that is approved.
	ErrWaiting = errors.New("waiting for the approval")
	// ErrDenied says that the claim of a ticket was denied, or a user has no role.
	ErrDenied = errors.New("denied")
	// ErrNotFound says that there is no such device or ticket.
	ErrNotFound = errors.New("not found")
	// ErrName says that a device of that name exists.
	ErrName = errors.New("there is a device of that name")
	// ErrTooMany says that a bound was reached.
	ErrTooMany = errors.New("too many")
	// ErrStore says that the file of the store is of another program, of a later version, damaged, or
	// was deleted while it was in use.
	ErrStore = errors.New("the store of devices cannot be used")
)

// maxName bounds names of users and devices, in bytes.
const maxName = 64

// checkName returns why a name of a user or a device is refused, or nil. Names are shown on terminals
// and written on command lines.
func checkName(what, name string) error {
	switch {
	case name == "" || len(name) > maxName:
		return fmt.Errorf("the name of a %s has from 1 to %d bytes", what, maxName)
	case strings.HasPrefix(name, "-"):
		return fmt.Errorf("the name of a %s does not begin with -", what)
	case strings.ContainsFunc(name, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("._-+@", c)
	}):
		return fmt.Errorf("the name of a %s has letters, digits and ._-+@ only", what)
	}
	return nil
}

// cleanName makes a name of what a device calls itself, or returns "".
func cleanName(name string) string {
	var b strings.Builder
	for _, c := range name {
		switch {
		case b.Len() >= maxName-8: // room for a character and a number
			return b.String()
		case unicode.IsLetter(c), unicode.IsDigit(c), c == '.' || c == '_':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.TrimSuffix(b.String(), "-")
}
