package tool

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"sync"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
)

// Bounds of a draft: what is longer is shown when it is complete.
const (
	maxDraft     = 256 << 10 // of the input
	maxDraftFile = 64 << 10  // of the file that changes
	minDraft     = 256       // how much has to be added before it is shown again
)

// A Draft shows a change of a file while a model still writes it. The call that is shown
// becomes that of the tool when it runs. Its methods are called one after the other.
type Draft struct {
	env  Env
	tool string
	h    *acp.ToolCallHandle // nil before it is shown

	input []byte
	shown int  // how long input was then
	taken bool // by the tool

	place  place
	before string
	state  draftState
}

// A draftState says what is shown of a draft.
type draftState int

const (
	draftNothing draftState = iota // nothing: the path is not known
	draftChange                    // the change
	draftPath                      // the path alone
)

// NewDraft returns a draft if a tool is one that changes files, or nil otherwise.
func NewDraft(env Env, tool string) *Draft {
	if tool != Edit.Name && tool != Write.Name && tool != Patch.Name {
		return nil
	}
	return &Draft{env: env, tool: tool}
}

// Write adds a piece of the input.
func (d *Draft) Write(piece string) {
	if d.taken || d.state == draftPath || len(d.input)+len(piece) > maxDraft {
		return
	}
	d.input = append(d.input, piece...)
	if len(d.input)-d.shown < max(minDraft, d.shown/2) {
		return
	}
	d.shown = len(d.input)
	if whole, ok := closeJSON(d.input); ok {
		d.show(whole)
	}
}

// Take returns the call if one is shown, the first time, or nil otherwise.
func (d *Draft) Take() *acp.ToolCallHandle {
	h := d.h
	d.h, d.taken = nil, true
	return h
}

// Drop ends the call, unless a tool has taken it.
func (d *Draft) Drop() {
	if h := d.Take(); h != nil {
		_ = h.SetStatus(acp.ToolCallStatusCancelled) // kept by the turn
	}
}

// show shows what an input means that was closed where it breaks off.
func (d *Draft) show(input []byte) {
	var in struct {
		Path  string        `json:"path"`
		Text  string        `json:"text"`
		Edits []Replacement `json:"edits"`
		All   bool          `json:"all"`
	}
	if d.tool == Patch.Name {
		d.open("Patch", nil)
		return
	}
	// The path is complete once something follows it.
	if json.Unmarshal(input, &in) != nil || in.Path == "" || in.Text == "" && in.Edits == nil {
		return
	}
	if d.state == draftNothing {
		d.begin(in.Path)
	}
	if d.state != draftChange {
		return
	}
	change := acp.FileChange{Path: d.place.path, Before: d.before, After: in.Text, Created: d.tool == Write.Name}
	if d.tool == Edit.Name {
		in.Edits = slices.DeleteFunc(in.Edits, func(r Replacement) bool { return r.Old == "" || r.New == "" })
		r, err := replace(d.before, in.Edits, in.All, "", d.env.Served().File(d.place.real, d.before))
		if err != nil || r.after == d.before {
			return // it may be complete the next time
		}
		change.After = r.after
	}
	_ = d.h.SetChange(change)
}

// begin shows the path, and finds out whether the change can be shown, too: not in a file
// that is large, out of the session's directories, or hidden by a rule.
func (d *Draft) begin(path string) {
	p, err := locate(d.env, path)
	if err != nil {
		return
	}
	title := "Edit "
	if d.tool == Write.Name {
		title = "Write "
	}
	d.open(title+p.shown, []acp.ToolCallLocation{{Path: p.path}})
	if !p.inside || d.env.Judge(using(acp.ToolKindEdit, p)).Effect == acphost.EffectDeny {
		return
	}
	text, err := readDisk(p.path)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case d.tool == Write.Name && !missing: // what is not written yet would look deleted
	case d.tool == Edit.Name && (err != nil || len(text) > maxDraftFile || binary(text)):
	default:
		d.state, d.place, d.before = draftChange, p, text
	}
}

// open shows a call, with nothing more than its title.
func (d *Draft) open(title string, where []acp.ToolCallLocation) {
	d.state = draftPath
	d.h = d.env.Output().ToolCall(acp.ToolCall{
		Name: d.tool, Title: prose.OneLine(title, 200), Kind: acp.ToolKindEdit, Status: acp.ToolCallStatusPending, Locations: where,
	})
}

// Drafts are those of an answer, by the id of the wish. Its methods may be called from any
// goroutine. The zero value has none.
type Drafts struct {
	mu  sync.Mutex
	all map[string]*Draft
}

// Write adds a piece to a draft, and begins it with the first one.
func (d *Drafts) Write(env Env, id, tool, piece string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	draft, ok := d.all[id]
	if !ok {
		if d.all == nil {
			d.all = map[string]*Draft{}
		}
		draft = NewDraft(env, tool)
		d.all[id] = draft
	}
	if draft != nil {
		draft.Write(piece)
	}
}

// Take returns the call of a draft, or nil if there is none, or no longer.
func (d *Drafts) Take(id string) *acp.ToolCallHandle {
	d.mu.Lock()
	defer d.mu.Unlock()
	if draft := d.all[id]; draft != nil {
		return draft.Take()
	}
	return nil
}

// Drop ends all drafts that no tool has taken.
func (d *Drafts) Drop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, draft := range d.all {
		if draft != nil {
			draft.Drop()
		}
	}
	d.all = nil
}

// closeJSON returns a JSON text that breaks off anywhere with what is missing at its end,
// or without its last, unfinished member.
func closeJSON(text []byte) ([]byte, bool) {
	var open, safeOpen []byte // the ends that are missing
	safe := 0                 // up to here there are only finished values
	inString, unit := false, 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case inString && c == '\\':
			unit = i
			if i++; i < len(text) && text[i] == 'u' {
				i += 4
			}
			if i >= len(text) {
				text = text[:unit] // half an escape
			}
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			open = append(open, c+2) // } and ]
			safe, safeOpen = i+1, slices.Clone(open)
		case c == '}' || c == ']':
			if len(open) == 0 || open[len(open)-1] != c {
				return nil, false
			}
			open = open[:len(open)-1]
		case c == ',':
			safe, safeOpen = i, slices.Clone(open)
		}
	}
	whole := slices.Clone(text)
	if inString {
		whole = append(whole, '"')
	}
	slices.Reverse(open)
	if whole = append(whole, open...); json.Valid(whole) {
		return whole, true
	}
	slices.Reverse(safeOpen)
	whole = append(slices.Clone(text[:safe]), safeOpen...)
	return whole, json.Valid(whole)
}
