// Package tool has the tools of the built-in agent: what it can do to files, with commands
// and with MCP servers.
//
// A [Tool] takes a JSON object, as a language model writes it; slash commands are parsers
// that make one. Its Run shows a tool call to the client, asks for permission where the
// session wants that, acts, and says what came of it. It knows nothing of who asked for
// it: the session lends what a tool needs as an [Env].
package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/agent/edit"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/agent/served"
	"github.com/goacp/acp/cmd/acp/internal/picture"
	"github.com/goacp/acp/cmd/acp/internal/withheld"
)

// A Tool does one thing. The tools are values that are never changed.
type Tool struct {
	Name   string
	About  string          // for a language model
	Schema json.RawMessage // the JSON schema of the input, an object
	Kind   acp.ToolKind
	// Text is the input as one text, for models that were trained on that; nil if there is none.
	Text *TextForm
	// Reads says that the tool changes nothing, so that it can run beside others.
	Reads bool
	// Run runs the tool. An error says that the input cannot be used: then nothing was
	// done, and no call was shown. What went wrong later is in the Result. When ctx is done
	// Run ends soon, with a call that is cancelled.
	Run func(ctx context.Context, env Env, input json.RawMessage) (Result, error)
}

// A TextForm is the input of a tool as one text.
type TextForm struct {
	Name    string // under which models know the tool
	About   string // instead of that of the tool
	Member  string // of the input that is the text
	Grammar string // of the text, as Lark writes it
}

// All returns the tools, in the order in which they are described. [Patch] takes the place
// of [Edit] for models that were trained on it. MCP servers have tools of their own: see
// [CallMCP].
func All() []Tool { return []Tool{Read, Search, Find, Edit, Write, Run, Job, Plan, Fetch, Ask} }

// A Result is what came of a tool.
type Result struct {
	// Said is that in a sentence or two, for people. It is empty if ctx was cancelled.
	Said string
	// Text is that for a language model, with what the tool found; "" is Said. It has at
	// most MaxText bytes, and a little more that says so.
	Text   string
	Images []Image            // that the tool found
	File   string             // that was read; "" otherwise
	Status acp.ToolCallStatus // with which the call ended
	Err    error              // why it failed, unless what it ran did; nil otherwise
}

// An Env is what a session lends to its tools. Its methods may be called from any
// goroutine.
type Env interface {
	// Output sends to the client, and reads and writes files through it.
	Output() *acp.Output
	// Drafted returns the call that was shown while its input was written, the first time;
	// nil if there is none.
	Drafted() *acp.ToolCallHandle
	// Session is what jobs belong to.
	Session() *acp.AgentSession
	Jobs() *Jobs
	// Background is called when a job has begun or ended.
	Background()
	// Files reconciles the client's files with those on disk; nil if it lends none.
	Files() *Files
	// Served is what the model knows of files; nil if there is none, as for what people type.
	Served() *served.Record
	// MCP keeps the connections to the session's MCP servers.
	MCP() *Servers
	// Skill returns the directory of a skill.
	Skill(name string) (dir string, ok bool)
	// Web reads pages of the web.
	Web() *http.Client
	// Keys are kept from commands and servers; nil means none.
	Keys() *withheld.Keys
	Cwd() string     // of the session
	Roots() []string // the directories of the session, Cwd first
	// Ignores reports whether searches leave out what .gitignore files name.
	Ignores() bool
	// Judge returns what the rules say about something that a tool is about to do.
	Judge(req acphost.Request) acphost.Verdict
	// Harmless returns whether a command does nothing but read in the session's directories.
	Harmless(req acphost.Request) acphost.Harmless
	// Restricted reports whether there are rules that deny or ask.
	Restricted() bool
	// Permit asks whether a call may be made, unless that is decided already. It returns
	// nil, or why the call is not made.
	Permit(ctx context.Context, call *acp.ToolCallHandle, q Question) error
	// Intend is called before a file is changed, or a command is run, with what is going to
	// happen. If it returns an error, that does not happen.
	Intend(Intent) error
	// SetPlan keeps the plan of the session, which was sent.
	SetPlan(plan []acp.PlanEntry)
	// Hints are what tools advise, in the words of who asked.
	Hints() Hints
}

// An Intent is what a tool is about to do: a change of a file, or a command.
type Intent struct {
	Path          string
	Before, After string        // all of the file
	Created       bool          // there was none before
	Deleted       bool          // there will be none
	Made          []served.Made // the edits; none if all of the file is written
	Command       string
}

// Hints are pieces of sentences.
type Hints struct {
	ReadOn func(path string, line uint32) string // how to read on from a line
	// ReadLine says how to read on in a line that was cut, from a column.
	ReadLine   func(line, column uint32) string
	ReplaceAll string // how to replace a text wherever it is
	Ignored    string // what makes searches look at ignored files
	ReadAsks   string // what asks where a search leaves out
}

// An Image is what a tool found that is not text, as all models take it.
type Image = picture.Picture

// MaxText bounds the text of a result for a language model, in bytes: what is longer costs
// more than it tells.
const MaxText = 50 << 10

// bounded returns a text of at most MaxText bytes: its beginning and, if tail is set, its
// end.
func bounded(text string, tail int) string {
	if len(text) <= MaxText {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	head := text[:MaxText-tail]
	if i := strings.LastIndexByte(head, '\n'); i > len(head)/2 {
		head = head[:i+1]
	}
	end := text[len(text)-tail:]
	if i := strings.IndexByte(end, '\n'); i >= 0 && i < len(end)/2 {
		end = end[i+1:]
	}
	left := len(text) - len(head) - len(end)
	return strings.ToValidUTF8(head+fmt.Sprintf("\n[%d bytes are left out here]\n", left)+end, "\uFFFD")
}

// A Question is what is asked before a call is made.
type Question struct {
	acp.Permission
	About  About
	Always string // what "always" is about, in the plural
	// Harmless says that a command does nothing but read what may be read without a question.
	Harmless bool
	Request  acphost.Request // the call in the words of rules
}

// About says what an answer that holds for the rest of the session is about.
type About string

// What is asked.
const (
	AboutRead   About = "read outside"
	AboutSearch About = "search"
	AboutEdit   About = "edit"
	AboutWrite  About = "edit outside"
	AboutRun    About = "run " // and the command
	AboutMCP    About = "mcp"
	AboutFetch  About = "fetch " // and the host
)

// A Refusal says why a call was not made.
type Refusal struct {
	Why  string // for people
	Told string // for a language model, with what to do next; "" is Why
}

// Error returns why, as a sentence.
func (r *Refusal) Error() string { return r.Why }

// ErrCancelled is what [Env.Permit] returns if the turn was cancelled meanwhile.
var ErrCancelled = errors.New("cancelled")

// A Misuse says what is wrong with the input of a tool.
type Misuse struct{ Why string }

// Error returns what is wrong.
func (m *Misuse) Error() string { return m.Why }

// Misusef returns a [Misuse].
func Misusef(format string, args ...any) error { return &Misuse{fmt.Sprintf(format, args...)} }

// decode reads the input of a tool. Members that the schema does not name are not
// accepted, since they would mean something to whoever wrote them.
func decode(input json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(input))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if errors.Is(err, io.EOF) {
			return Misusef("the input is empty")
		}
		return Misusef("the input does not fit: %v", prose.Error(err))
	}
	if d.More() {
		return Misusef("there is more than one JSON value in the input")
	}
	return nil
}

// A call is a tool call that runs. Failures to send are kept by the turn.
type call struct {
	env Env
	ctx context.Context // of the turn; a call may be cancelled alone
	h   *acp.ToolCallHandle

	found  string // for a language model
	room   int    // for what is shown of a change, in bytes
	images []Image
}

// begin shows a call. It ends by done, failed or cancelled.
func begin(ctx context.Context, env Env, t acp.ToolCall) *call {
	if h := env.Drafted(); h != nil {
		// It has shown a part of what it shows now.
		_ = h.Update(acp.ToolCallUpdate{
			Name: acpv2.Set(t.Name), Title: acpv2.Set(t.Title), Kind: acpv2.Set(t.Kind), Status: acpv2.Set(t.Status),
			Locations: acpv2.Set(t.Locations), Content: acpv2.Set([]acp.ToolCallContent{}),
		})
		return &call{env: env, ctx: ctx, h: h}
	}
	return &call{env: env, ctx: ctx, h: env.Output().ToolCall(t)}
}

// beginAlone is begin for a call that can be cancelled alone: that ends what it does with
// the context that is returned. end must be called when the tool is done.
func beginAlone(ctx context.Context, env Env, t acp.ToolCall) (c *call, own context.Context, end func()) {
	own, cancel := context.WithCancel(ctx)
	t.Cancel = cancel
	return &call{env: env, ctx: ctx, h: env.Output().WithContext(own).ToolCall(t)}, own, cancel
}

func (c *call) status(s acp.ToolCallStatus)            { _ = c.h.SetStatus(s) }
func (c *call) show(content acp.ToolCallContent)       { _ = c.h.Append(content) }
func (c *call) text(text string)                       { _ = c.h.Text(text) }
func (c *call) locations(where []acp.ToolCallLocation) { _ = c.h.SetLocations(where...) }

func (c *call) permit(q Question) error { return c.env.Permit(c.ctx, c.h, q) }

// done ends the call well.
func (c *call) done(said string) Result {
	c.status(acp.ToolCallStatusCompleted)
	return Result{Said: said, Text: c.found, Images: c.images, Status: acp.ToolCallStatusCompleted}
}

// failed ends the call with what went wrong, or as cancelled if the turn was.
func (c *call) failed(err error) Result {
	if c.ctx.Err() != nil {
		return c.cancelled("")
	}
	Fail(c.h, err)
	return failure(err)
}

// failure is the result of a call that has failed.
func failure(err error) Result {
	res := Result{Said: prose.Sentence(prose.Error(err)) + ".", Status: acp.ToolCallStatusFailed, Err: err}
	if r, ok := errors.AsType[*edit.Refusal](err); ok {
		res.Text = bounded(r.Error(), 0)
	} else if r, ok := errors.AsType[*Refusal](err); ok {
		res.Text = r.Told
	}
	if r, ok := errors.AsType[*unread](err); ok {
		res.Text = bounded(r.full(), 0)
	}
	return res
}

// cancelled ends the call as cancelled. said is for a call that was cancelled alone.
func (c *call) cancelled(said string) Result {
	c.status(acp.ToolCallStatusCancelled)
	if c.ctx.Err() != nil {
		said = ""
	}
	return Result{Said: said, Status: acp.ToolCallStatusCancelled}
}

// Fail ends a call as failed, with the text of err.
func Fail(h *acp.ToolCallHandle, err error) {
	_ = h.Text(prose.Error(err)) // kept by the turn, as that of the status
	_ = h.SetStatus(acp.ToolCallStatusFailed)
}
