package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/served"
	"github.com/goacp/acp/cmd/acp/internal/agent/tool"
	"github.com/goacp/acp/cmd/acp/internal/agent/window"
	"github.com/goacp/acp/cmd/acp/internal/model"
)

// A conversation is that of a session with a model. session.mu guards it.
type conversation struct {
	messages []*model.Message // never changed; the slice is copied when it grows
	usage    model.Usage      // of all answers, with their cost
	cost     float64
	requests int
	window   int                                // tokens of the last request and its answer
	prefixes map[model.EditFormat]*model.Prefix // of its requests; none before the first
	tools    []modelTool                        // those of all prefixes
	system   string                             // the instructions of all prefixes
	served   *toolbox                           // what MCP servers have; nil before they were asked
	api      model.API                          // of the model whose tools were looked at last
	meter    window.Meter
	cache    cache
	doubt    int           // tokens of the last answer, if the server may not have read all of the request; or 0
	changed  []changedFile // files that tools have changed, in the order of their first change
}

// A changedFile is one that a tool has changed: what it has made of it last, as a hash.
type changedFile struct{ path, hash string }

// maxChanged bounds the files of which it is known that they were changed.
const maxChanged = 1000

// change remembers that a file was changed, and what to.
func (c *conversation) change(path, hash string) {
	if path == "" {
		return
	}
	i := slices.IndexFunc(c.changed, func(f changedFile) bool { return f.path == path })
	switch {
	case i >= 0:
		c.changed = slices.Clone(c.changed) // others may read it
		c.changed[i].hash = hash
	case len(c.changed) < maxChanged:
		c.changed = append(c.changed, changedFile{path, hash})
	}
}

// count adds what an answer has used.
func (c *conversation) count(u model.Usage) {
	c.requests++
	c.usage = c.usage.Plus(u)
	c.window = u.Read() + u.Output
}

// A used record is what an answer has used, in the journal.
type used struct {
	Model      string  `json:"model"`
	Input      int     `json:"input"`
	CacheRead  int     `json:"cacheRead,omitempty"`
	CacheWrite int     `json:"cacheWrite,omitempty"`
	Output     int     `json:"output"`
	Reasoning  int     `json:"reasoning,omitempty"`
	CacheHour  int     `json:"cacheHour,omitempty"`
	Cost       float64 `json:"cost,omitempty"`
	// Lost says that the answer was broken off: some of the numbers may be estimates.
	Lost bool `json:"lost,omitempty"`
}

func usedBy(m model.Info, u model.Usage) *used {
	r := &used{Model: nameOf(m), Input: u.Input, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Output: u.Output, Reasoning: u.Reasoning, CacheHour: u.CacheHour}
	r.Cost, _ = m.Price.Of(u)
	return r
}

func (r *used) usage() model.Usage {
	return model.Usage{Input: r.Input, CacheRead: r.CacheRead, CacheWrite: r.CacheWrite, Output: r.Output, Reasoning: r.Reasoning, CacheHour: r.CacheHour, Known: true}
}

// A compacted record is the conversation that replaces the one before it.
type compacted struct {
	Messages []*model.Message `json:"messages"`
}

// A mended record is what stands for messages from an index on that a provider did not take.
type mended struct {
	From     int              `json:"from"`
	Messages []*model.Message `json:"messages"`
}

// in returns a conversation with what stands for its messages. A record that does not fit changes nothing.
func (m *mended) in(messages []*model.Message) []*model.Message {
	if end := m.From + len(m.Messages); end > len(messages) || end < m.From {
		return messages
	}
	all := slices.Clone(messages)
	copy(all[m.From:], m.Messages)
	return all
}

// An intent is what a tool is about to do, kept before it does it. The hashes are of the
// file's whole contents; "" is a file that does not exist.
type intent struct {
	ID      string        `json:"id"` // of the wish for the tool
	Path    string        `json:"path,omitempty"`
	Before  string        `json:"before,omitempty"`
	After   string        `json:"after,omitempty"`
	Command string        `json:"command,omitempty"`
	Made    []served.Made `json:"made,omitempty"` // the edits; none if all of the file is written
}

// An unsettled conversation is one as a journal has it. The program may have been killed
// at any time, so wishes for tools may lack their results.
type unsettled struct {
	messages []*model.Message
	intents  map[string][]*intent // of each wish, one a file
	results  map[string]*model.ToolResult
	said     strings.Builder // of an answer that is not there as a message
	asked    bool            // the model was asked, and has not answered
	done     []*intent       // changes that were made, and whose results are missing

	talk conversation // but for its messages
}

// see applies an entry of the journal.
func (t *unsettled) see(e entry) {
	switch {
	case e.message != nil:
		if e.message.Role == model.User {
			t.flush()
		}
		t.said.Reset()
		t.messages = append(t.messages, e.message)
		t.intents, t.results = nil, nil
		t.asked = e.message.Role == model.User
	case e.intent != nil:
		if t.intents == nil {
			t.intents = map[string][]*intent{}
		}
		t.intents[e.intent.ID] = append(t.intents[e.intent.ID], e.intent)
		t.talk.change(e.intent.Path, e.intent.After)
	case e.result != nil:
		if t.results == nil {
			t.results = map[string]*model.ToolResult{}
		}
		t.results[e.result.ID] = e.result
	case e.used != nil:
		u, was := e.used.usage(), t.talk.window
		t.talk.count(u)
		t.talk.cost += e.used.Cost
		if e.used.Lost {
			t.talk.window = was
			break
		}
		t.talk.meter.Resume(len(t.messages), u)
	case e.compacted != nil:
		t.messages = e.compacted.Messages
		t.intents, t.results = nil, nil
		t.asked = true
		t.talk.meter.Forget()
	case e.mended != nil:
		t.messages = e.mended.in(t.messages)
		t.talk.meter.Forget()
	case t.asked:
		switch u := e.update.(type) {
		case *acp.AgentMessageChunk:
			if text, ok := u.Content.(*acp.TextContent); ok {
				t.said.WriteString(text.Text)
			}
		case *acp.UserMessage, *acp.UserMessageChunk:
			t.flush() // the turn has ended without an answer
		}
	}
}

// flush makes a message of an answer that was cut off.
func (t *unsettled) flush() (m *model.Message) {
	if t.asked && t.said.Len() > 0 {
		m = &model.Message{Role: model.Assistant, Parts: []model.Part{&model.Text{Text: t.said.String()}}}
		t.messages = append(t.messages, m)
	}
	t.said.Reset()
	t.asked = false
	return m
}

// settle makes the conversation one that can be sent, and returns the messages that it
// added at its end. hash returns the hash of a file, as those of intents.
func (t *unsettled) settle(hash func(path string) (string, error)) []*model.Message {
	var added []*model.Message
	if m := t.flush(); m != nil {
		added = append(added, m)
	}
	n := len(t.messages)
	if n == 0 || t.messages[n-1].Role != model.Assistant {
		return added
	}
	results := &model.Message{Role: model.User}
	for _, p := range t.messages[n-1].Parts {
		u, ok := p.(*model.ToolUse)
		if !ok {
			continue
		}
		res := t.results[u.ID]
		if res == nil {
			res = &model.ToolResult{ID: u.ID, Failed: true, Parts: []model.Part{&model.Text{Text: t.evidence(u, hash)}}}
		}
		results.Parts = append(results.Parts, res)
	}
	if len(results.Parts) == 0 {
		return added
	}
	t.messages = append(t.messages, results)
	return append(added, results)
}

// catchUp takes into a record what was done just before the program was killed.
func (t *unsettled) catchUp(r *served.Record) {
	for _, in := range t.done {
		real, err := filepath.EvalSymlinks(in.Path)
		if err != nil {
			continue // it was deleted
		}
		if info, err := os.Stat(real); err != nil || info.Size() > served.MaxSize {
			continue
		}
		if data, err := os.ReadFile(real); err == nil && hashText(string(data)) == in.After {
			r.Done(real, in.Before, string(data), in.Made...)
		}
	}
}

// evidence says what came of a wish whose result is missing, as far as that can be seen: a sentence for each file
// that it was about to change.
func (t *unsettled) evidence(u *model.ToolUse, hash func(path string) (string, error)) string {
	said := []string{"The agent was interrupted."}
	all := t.intents[u.ID]
	for _, in := range all {
		said = append(said, t.saw(in, hash))
	}
	switch {
	case len(all) == 0:
		said = append(said, "This was not done.")
	case u.Name != tool.Edit.Name && u.Name != tool.Write.Name && len(patched().FindAll(u.Input, 2)) > 1:
		said = append(said, "Whether more of the patch was done is not known: look at its other files.")
	}
	return strings.Join(said, " ")
}

// patched is where the section of a file begins in a patch, also in JSON.
var patched = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\*\*\* (?:Add|Delete|Update) File: `) })

// saw says what came of an intent.
func (t *unsettled) saw(in *intent, hash func(path string) (string, error)) string {
	if in.Path == "" {
		return "The command may have done a part of its work: look before you repeat it."
	}
	now, err := hash(in.Path)
	switch {
	case err != nil:
		return "It is not known whether this was done: " + in.Path + " cannot be read."
	case now == in.After:
		t.done = append(t.done, in)
		return "This was done: " + in.Path + " is as it was to become."
	case now == in.Before:
		return "This was not done: " + in.Path + " is as it was before."
	}
	return "It is not known whether this was done: " + in.Path +
		" is neither as it was before nor as it was to become. Read it first."
}

// hashOf returns the hash of a file, "" if there is none.
func hashOf(path string) (string, error) {
	f, err := openRegular(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashText returns the hash of a file with such contents.
func hashText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
