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
// is shown has to be the same; a request that neither shows one nor has an input,
// or says nothing but a title, is not remembered. Rules that allow or deny come first.
//
// Commands are the same if they differ in white space only, or in a shell that
// does nothing but run them, and paths if they lead to the same file now: see
// [Policy.NormalCommand] and [Policy.Resolve].
type Memory struct {
	Session string   `json:"session,omitempty"` // "" for all
	Effect  Effect   `json:"effect"`            // allow or deny
	Kind    string   `json:"kind,omitempty"`
	Tool    string   `json:"tool,omitempty"`
	Command string   `json:"command,omitempty"` // in its normal form
	Shown   string   `json:"shown,omitempty"`   // of a command that is not certain, likewise
	Cwd     string   `json:"cwd,omitempty"`
	Paths   []string `json:"paths,omitempty"` // in order, each once, with links followed
	Input   string   `json:"input,omitempty"` // the SHA-256 sum of the input without white space, in hexadecimal
	Title   string   `json:"title,omitempty"`
}

// NormalCommand returns a command in the form in which answers that are
// remembered are compared: without white space that means nothing, and without a
// shell around it that does nothing but run it. Commands with the same normal form
// run the same. Without [Policy.Commands], or if the line is not taken apart in
// full, it is the text without white space around it.
func (p *Policy) NormalCommand(command string) string {
	command = strings.TrimSpace(command)
	if p.Commands != nil && command != "" {
		if normal := p.Commands.ParseCommand(command).Normal; normal != "" {
			return normal
		}
	}
	return command
}

// newMemory returns what would be remembered of a request. ok is false if the
// request says too little to be distinguished from others.
func (p *Policy) newMemory(req *Request) (m Memory, ok bool) {
	if req.saysNothing() {
		return m, false // another would be like it
	}
	m = Memory{Kind: req.Kind, Tool: req.ToolName, Command: p.NormalCommand(req.Command), Cwd: req.Cwd}
	if req.commandUnknown() {
		m.Shown = p.NormalCommand(req.Shown)
	}
	at := &places{policy: p}
	for _, path := range req.Paths {
		if path == "" || !filepath.IsAbs(path) && !filepath.IsAbs(req.Cwd) {
			m.Paths = append(m.Paths, path)
			continue
		}
		real := at.place(path, req.Cwd).real
		if real == "" {
			return m, false
		}
		m.Paths = append(m.Paths, filepath.FromSlash(real))
	}
	slices.Sort(m.Paths)
	m.Paths = slices.Compact(m.Paths)
	switch acpv2.ToolKind(m.Kind) {
	case acpv2.ToolKindExecute:
		if !req.commandUnknown() {
			return m, true
		}
	case acpv2.ToolKindEdit:
		if req.pathsKnown() && !req.runs() {
			return m, true
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
	if req.commandUnknown() {
		return m, m.Shown != "" || m.Input != "" // a title such as "Bash" stands for every command
	}
	return m, m.Command != "" || len(m.Paths) > 0 || m.Input != "" || m.Title != ""
}

// same reports whether two memories are of the same request.
func (m *Memory) same(o *Memory) bool {
	return m.Session == o.Session && m.Kind == o.Kind && m.Tool == o.Tool && m.Command == o.Command && m.Shown == o.Shown && m.Cwd == o.Cwd &&
		m.Input == o.Input && m.Title == o.Title && slices.Equal(m.Paths, o.Paths)
}

// recall returns what is remembered about a request, or "".
func (p *Policy) recall(req *Request) Effect {
	own := p.own()
	own.mu.Lock()
	some := p.Remember != RememberNever && len(own.memory) > 0
	own.mu.Unlock()
	if !some {
		return ""
	}
	m, ok := p.newMemory(req) // which looks at the disk
	if !ok {
		return ""
	}
	own.mu.Lock()
	defer own.mu.Unlock()
	for _, o := range slices.Backward(own.memory) { // the latest counts
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
// nothing about itself, or does not say what would be run, is not remembered.
func (p *Policy) Always(req Request, effect Effect) {
	m, ok := p.newMemory(&req)
	if !ok {
		return // another would be like it
	}
	m.Effect = effect
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
	own := p.own()
	most := p.MaxRemembered
	if most <= 0 {
		most = DefaultMaxRemembered
	}
	own.mu.Lock()
	defer own.mu.Unlock()
	for _, m := range memories {
		size := len(m.Session) + len(m.Kind) + len(m.Tool) + len(m.Command) + len(m.Shown) + len(m.Cwd) + len(m.Title) + len(strings.Join(m.Paths, ""))
		if m.Effect != EffectAllow && m.Effect != EffectDeny || size > maxMemoryText {
			continue
		}
		own.memory = slices.DeleteFunc(own.memory, func(o Memory) bool { return o.same(&m) })
		own.memory = append(own.memory, m)
	}
	own.memory = slices.Delete(own.memory, 0, max(0, len(own.memory)-most))
}

// Remembered returns the memories, oldest first.
func (p *Policy) Remembered() []Memory {
	own := p.own()
	own.mu.Lock()
	defer own.mu.Unlock()
	return slices.Clone(own.memory)
}

// Forget drops what a session has left.
func (p *Policy) Forget(session string) {
	own := p.own()
	own.mu.Lock()
	defer own.mu.Unlock()
	own.memory = slices.DeleteFunc(own.memory, func(m Memory) bool { return m.Session != "" && m.Session == session })
}

// short cuts a text for a record.
func short(s string) string {
	if len(s) <= maxRecordText {
		return s
	}
	return strings.ToValidUTF8(s[:maxRecordText], "")
}
