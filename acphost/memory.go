package acphost

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goacp/acp/acpv2"
)

// DefaultMaxRemembered is the limit of [Policy.MaxRemembered] unless it says
// otherwise.
const DefaultMaxRemembered = 1024

// maxMemoryText is the size of a request, in bytes, beyond which its answer is
// not remembered.
const maxMemoryText = 64 << 10

// A Scope says how far an answer “always” reaches.
type Scope string

// The scopes.
const (
	// RememberSession remembers it in the session it was given in. It is the
	// default.
	RememberSession Scope = "session"
	// RememberForever remembers it in all sessions, for as long as the policy
	// lives; [Policy.Remembered] and [Policy.Recall] make that longer.
	RememberForever Scope = "forever"
	// RememberNever remembers nothing. The agent may do so by itself.
	RememberNever Scope = "never"
)

// A Memory is an answer “always”. It is given to requests of the same kind of
// tool, with the same name, command, working directory and paths. The input has
// to be the same too, or the title if there is no input; these do not count of
// a tool that executes if the command is certain, and of one that edits if it
// says which files. Where it is not certain what would be run, the command that
// is shown has to be the same; a request that neither shows one nor has an input
// is not remembered. Rules that allow or deny come first.
type Memory struct {
	Session string   `json:"session,omitempty"` // "" for all
	Effect  Effect   `json:"effect"`            // allow or deny
	Kind    string   `json:"kind,omitempty"`
	Tool    string   `json:"tool,omitempty"`
	Command string   `json:"command,omitempty"`
	Shown   string   `json:"shown,omitempty"` // the command that is shown, where it is not certain
	Cwd     string   `json:"cwd,omitempty"`
	Paths   []string `json:"paths,omitempty"` // in order, each once
	Input   string   `json:"input,omitempty"` // the SHA-256 sum of the input without white space, in hexadecimal
	Title   string   `json:"title,omitempty"`
}

func newMemory(req *Request) Memory {
	m := Memory{Kind: req.Kind, Tool: req.ToolName, Command: req.Command, Cwd: req.Cwd}
	for _, p := range req.Paths {
		m.Paths = append(m.Paths, filepath.Clean(p))
	}
	slices.Sort(m.Paths)
	m.Paths = slices.Compact(m.Paths)
	switch acpv2.ToolKind(m.Kind) {
	case acpv2.ToolKindExecute:
		if !req.commandUnknown() {
			return m
		}
	case acpv2.ToolKindEdit:
		if req.pathsKnown() && !req.runs() {
			return m
		}
	}
	if input := bytes.TrimSpace(req.RawInput); len(input) > 0 && string(input) != "null" {
		var b bytes.Buffer
		if json.Compact(&b, input) == nil {
			input = b.Bytes()
		}
		sum := sha256.Sum256(input)
		m.Input = hex.EncodeToString(sum[:])
	} else {
		m.Title = req.Title
	}
	if shown := strings.TrimSpace(req.Shown); req.commandUnknown() && shown != "" {
		m.Shown = shown
	}
	return m
}

// tells reports whether a memory tells its request from others. The title of a tool that runs
// something does not: it may be the same for all commands.
func (m *Memory) tells(req *Request) bool {
	if req.commandUnknown() {
		return m.Shown != "" || m.Input != ""
	}
	return m.Command != "" || len(m.Paths) > 0 || m.Input != "" || m.Title != ""
}

// same reports whether two memories are of the same request.
func (m *Memory) same(o *Memory) bool {
	return m.Session == o.Session && m.Kind == o.Kind && m.Tool == o.Tool && m.Command == o.Command && m.Shown == o.Shown && m.Cwd == o.Cwd &&
		m.Input == o.Input && m.Title == o.Title && slices.Equal(m.Paths, o.Paths)
}

// recall returns what is remembered about a request, or "".
func (p *Policy) recall(req *Request) Effect {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Remember == RememberNever || len(p.memory) == 0 {
		return ""
	}
	m := newMemory(req)
	if !m.tells(req) {
		return ""
	}
	for _, o := range slices.Backward(p.memory) { // the latest counts
		if m.Session = ""; o.Session != "" {
			m.Session = req.Session
		}
		if o.same(&m) {
			return o.Effect
		}
	}
	return ""
}

// Recalled returns what the user has answered “always” about requests like this
// one, EffectAllow or EffectDeny, or "" if nothing is remembered. Rules may still
// decide otherwise.
func (p *Policy) Recalled(req Request) Effect { return p.recall(&req) }

// Always remembers that requests like this one are allowed or denied from now
// on, as if the user had chosen an option that says so: for as long as
// [Policy.Remember] says, and not at all if it is another effect. It is made for
// [Policy.Ask] where the agent offers no such option. A request that says
// nothing about itself is not remembered.
func (p *Policy) Always(req Request, effect Effect) {
	m := newMemory(&req)
	m.Effect = effect
	if !m.tells(&req) {
		return // any other would be like it
	}
	switch p.Remember {
	case RememberForever:
	case "", RememberSession:
		if m.Session = req.Session; m.Session == "" {
			return // it would be all
		}
	default:
		return
	}
	p.Recall(m)
}

// Recall adds memories, the latest last, as Remembered has returned them. One
// that is neither allow nor deny, or takes more than 64 kB, is left out.
func (p *Policy) Recall(memories ...Memory) {
	most := p.MaxRemembered
	if most <= 0 {
		most = DefaultMaxRemembered
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range memories {
		size := len(m.Session) + len(m.Kind) + len(m.Tool) + len(m.Command) + len(m.Shown) + len(m.Cwd) + len(m.Title) + len(strings.Join(m.Paths, ""))
		if m.Effect != EffectAllow && m.Effect != EffectDeny || size > maxMemoryText {
			continue
		}
		p.memory = slices.DeleteFunc(p.memory, func(o Memory) bool { return o.same(&m) })
		p.memory = append(p.memory, m)
	}
	p.memory = slices.Delete(p.memory, 0, max(0, len(p.memory)-most))
}

// Remembered returns the memories, oldest first.
func (p *Policy) Remembered() []Memory {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.memory)
}

// Forget drops what a session has left.
func (p *Policy) Forget(session string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.memory = slices.DeleteFunc(p.memory, func(m Memory) bool { return m.Session != "" && m.Session == session })
}

// short cuts a text for a record.
func short(s string) string {
	if len(s) <= maxRecordText {
		return s
	}
	return strings.ToValidUTF8(s[:maxRecordText], "")
}
