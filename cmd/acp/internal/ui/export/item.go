package export

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/shown"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/transcript"
)

// An itemKind determines how an item looks.
type itemKind string

const (
	itemUser    itemKind = "user"
	itemAgent   itemKind = "agent"
	itemThought itemKind = "thought"
	itemTool    itemKind = "tool"
	itemPlan    itemKind = "plan"
	itemAside   itemKind = "aside" // everything else
)

// An item is an entry of the conversation in the form that all text formats share. All its texts
// are safe to print.
type item struct {
	Kind   itemKind
	Title  string // of one line
	Mark   string // a symbol for the status
	Status string
	Notes  []string // of one line each
	Blocks []block
	Loss   int64 // bytes that were not stored
}

// A blockKind is the kind of a block's content.
type blockKind string

const (
	blockMarkdown blockKind = "markdown"
	blockCode     blockKind = "code"
	blockDiff     blockKind = "diff"
	blockTerminal blockKind = "terminal"
	blockImage    blockKind = "image"
	blockLink     blockKind = "link"
	blockSteps    blockKind = "steps"
)

// A block is a part of an item.
type block struct {
	Kind  blockKind
	Text  string // for an image or link, its name
	Lang  string
	URL   string
	MIME  string // of an image
	Data  string // of an image, in base64
	Steps []step
}

// A step is a step of a plan.
type step struct{ Mark, Status, Text string }

// maxTitle bounds titles and notes, in cells.
const maxTitle = 500

func line(s string) string { return safetext.Line(s, maxTitle) }

// mark returns a symbol for a status, so that it can be recognized without colour.
func mark(status string) string {
	switch status {
	case "completed":
		return "✓"
	case "failed":
		return "✗"
	case "cancelled":
		return "–"
	case "in_progress", "":
		return "…"
	case "pending":
		return "·"
	}
	return "?"
}

// heading returns the title of the document, and the facts about the session as names and values.
func heading(s store.Session, t *transcript.Snapshot) (title string, facts [][2]string) {
	title = line(s.Title)
	if title == "" {
		title = line(t.Session().Title)
	}
	if title == "" {
		title = "Conversation"
	}
	add := func(name, value string) {
		if value = line(value); value != "" {
			facts = append(facts, [2]string{name, value})
		}
	}
	v := SessionOf(s)
	add("Agent", v.Agent)
	add("Session", v.ID)
	add("Directory", v.Cwd)
	add("Started", v.Created)
	add("Last change", v.Updated)
	if v.Turns > 0 {
		add("Turns", fmt.Sprint(v.Turns))
	}
	if u := t.Session().Usage; u != nil {
		if u.Size > 0 {
			add("Context", fmt.Sprintf("%d of %d tokens", u.Used, u.Size))
		}
		if u.Cost != nil {
			add("Cost", fmt.Sprintf("%.4g %s", u.Cost.Amount, u.Cost.Currency))
		}
		if l := shown.LimitOf(u.Meta); l != nil {
			add("Limit", l.String())
		}
	}
	var models []string
	for _, m := range shown.LastModels(t.Session()) {
		models = append(models, fmt.Sprintf("%s %d tokens", m.Model, m.Tokens))
	}
	add("Last turn", strings.Join(models, ", "))
	add("In the background", strings.Join(shown.Tasks(t.Session()), ", "))
	if l := t.Loss(); l.Entries > 0 || l.Bytes > 0 {
		add("Left out here", fmt.Sprintf("%d entries, %d bytes", l.Entries, l.Bytes))
	}
	return title, facts
}

// items returns the items of the conversation. A terminal appears in the tool call that shows it,
// and by itself only if no call does. Normal ends of turns and blank messages are left out.
func items(t *transcript.Snapshot) []item {
	shown := map[acpv2.TerminalID]bool{}
	for e := range t.Entries() {
		if call, ok := e.(*transcript.ToolCall); ok {
			for _, c := range call.Content {
				if term, ok := c.(*acpv2.Terminal); ok {
					shown[term.TerminalID] = true
				}
			}
		}
	}
	var all []item
	for e := range t.Entries() {
		if term, ok := e.(*transcript.Terminal); ok && shown[term.ID] {
			continue
		}
		if end, ok := e.(*transcript.TurnEnd); ok && end.IsClean() {
			continue
		}
		// As some agents send them between tool calls.
		if m, ok := e.(*transcript.Message); ok && m.Role != transcript.RoleUser && m.Dropped() == 0 && history.IsBlank(m.Content()) {
			continue
		}
		it := itemOf(t, e)
		it.Loss = e.Dropped()
		if history.IsNews(e) {
			it.Title += ", from the agent's history"
		}
		all = append(all, it)
	}
	if history.InTurn(t) {
		all = append(all, item{Kind: itemAside, Mark: mark("cancelled"), Title: history.NotEnded})
	}
	return all
}

// endItem returns the item for a turn that did not end normally.
func endItem(t *transcript.TurnEnd) item {
	title, reason, said := history.Ending(t)
	it := item{Kind: itemAside, Mark: mark("cancelled"), Title: title}
	if title == history.Failed || t.By == transcript.EndedByCrash {
		it.Mark = mark("failed")
	}
	if said {
		reason = "the agent said: " + reason
	}
	it.Notes = notes(reason)
	return it
}

// itemOf returns an entry in the form that all formats are written from.
func itemOf(t *transcript.Snapshot, e transcript.Entry) item {
	switch e := e.(type) {
	case *transcript.Message:
		kind, title := itemAgent, "Agent"
		switch e.Role {
		case transcript.RoleUser:
			kind, title = itemUser, cmp.Or(history.Author(e), "User")
		case transcript.RoleThought:
			kind, title = itemThought, "Thought"
		}
		return item{Kind: kind, Title: title, Blocks: contents(e.Content())}
	case *transcript.ToolCall:
		return toolItem(t, e)
	case *transcript.Plan:
		return planItem(e)
	case *transcript.Terminal:
		return item{Kind: itemTool, Title: "Terminal", Blocks: []block{terminalBlock(e)}, Notes: terminalNotes(e)}
	case *transcript.Notice:
		if history.IsHeading(e) || history.IsUntaken(e) || history.IsUnseen(e) {
			return item{Kind: itemAside, Title: line(e.Title), Notes: notes(e.Description)}
		}
		return item{Kind: itemAside, Title: line("Notice (" + string(e.Severity) + "): " + e.Title), Notes: notes(e.Description)}
	case *transcript.Compaction:
		return item{Kind: itemAside, Title: "Context condensed", Mark: mark(string(e.Status)), Status: line(string(e.Status)), Notes: notes(e.Error), Blocks: contents(e.Summary())}
	case *transcript.Subagent:
		return item{Kind: itemAside, Title: line("Subagent: " + first(e.Title, string(e.ID))), Notes: notes(e.Description, string(e.ID))}
	case *transcript.SessionMessage:
		return item{Kind: itemAside, Title: line(fmt.Sprintf("Message from %s to %s", first(string(e.Sender), "this session"), first(string(e.Recipient), "this session"))), Blocks: contents(e.Content())}
	case *transcript.Permission:
		return permissionItem(t, e)
	case *transcript.TurnEnd:
		return endItem(e)
	case *transcript.Unknown:
		return item{Kind: itemAside, Title: line("Update of an unknown kind: " + e.Type), Blocks: []block{{Kind: blockCode, Lang: "json", Text: safetext.Text(string(e.Raw))}}}
	}
	return item{Kind: itemAside, Title: line("Entry of an unknown kind: " + string(e.EntryKind()))}
}

// toolTitle returns the title of a tool call, with its command unless the title contains it.
func toolTitle(c *transcript.ToolCall) string {
	command, _ := shown.Command(c)
	return shown.With(first(c.Title, c.Name, string(c.ID)), command)
}

// toolItem returns a tool call with its content and its permission.
func toolItem(t *transcript.Snapshot, c *transcript.ToolCall) item {
	it := item{
		Kind: itemTool, Title: line(toolTitle(c)),
		Mark: mark(string(c.Status)), Status: line(string(c.Kind) + ", " + strings.ReplaceAll(string(c.Status), "_", " ")),
	}
	if !c.Ended() { // whatever its last status was, it is not running any more
		it.Mark, it.Status = mark("cancelled"), line(string(c.Kind)+", not finished")
	}
	if p := shown.Parent(t, c); p != nil {
		it.Notes = append(it.Notes, line("in: "+toolTitle(p)))
	}
	for _, l := range c.Locations {
		at := l.Path
		if l.Line != nil {
			at += fmt.Sprintf(":%d", *l.Line)
		}
		it.Notes = append(it.Notes, line(at))
	}
	for _, content := range c.Content {
		switch content := content.(type) {
		case *acpv2.Content:
			it.Blocks = append(it.Blocks, contents([]acpv2.ContentBlock{content.Content})...)
		case *acpv2.Diff:
			it.Notes = append(it.Notes, changes(content)...)
			if content.Patch != nil {
				it.Blocks = append(it.Blocks, block{Kind: blockDiff, Lang: "diff", Text: safetext.Text(content.Patch.Text)})
			}
		case *acpv2.Terminal:
			if term := t.Terminal(content.TerminalID); term != nil {
				it.Blocks = append(it.Blocks, terminalBlock(term))
				it.Notes = append(it.Notes, terminalNotes(term)...)
			}
		case *acpv2.SessionReference:
			title := string(content.SessionID)
			if sub := t.Subagent(content.SessionID); sub != nil && sub.Title != "" {
				title = sub.Title
			}
			it.Notes = append(it.Notes, "done by the subagent "+line(title))
		default:
			it.Notes = append(it.Notes, "content of an unknown kind")
		}
	}
	// The raw input and output are of interest only if the call has no content.
	if len(it.Blocks) == 0 && len(it.Notes) == 0 {
		if raw := string(c.RawInput); raw != "" && raw != "null" {
			it.Blocks = append(it.Blocks, block{Kind: blockCode, Lang: "json", Text: safetext.Text(raw)})
		}
		if raw := string(c.RawOutput); raw != "" && raw != "null" {
			b := block{Kind: blockCode, Lang: "json", Text: safetext.Text(OutputText(c.RawOutput))}
			if b.Text != safetext.Text(raw) {
				b.Lang = ""
			}
			it.Blocks = append(it.Blocks, b)
		}
	}
	if d := history.DecisionOf(c.Meta); d != nil {
		it.Notes = append(it.Notes, "Permission: "+d.String())
	}
	return it
}

// changes lists what a diff does to files that its patch does not show.
func changes(d *acpv2.Diff) []string {
	var all []string
	shown := func(path string) bool {
		path = strings.TrimPrefix(path, "/")
		return d.Patch != nil && path != "" && strings.Contains(d.Patch.Text, path)
	}
	for _, c := range d.Changes {
		switch op := c.Operation.(type) {
		case *acpv2.DiffAdd:
			if shown(op.Path) {
				continue
			}
			all = append(all, line("new file "+op.Path))
		case *acpv2.DiffDelete:
			if shown(op.Path) {
				continue
			}
			all = append(all, line("deleted "+op.Path))
		case *acpv2.DiffModify:
			if shown(op.Path) {
				continue
			}
			all = append(all, line("changed "+op.Path))
		case *acpv2.DiffMove:
			all = append(all, line("moved "+op.OldPath+" to "+op.Path))
		case *acpv2.DiffCopy:
			all = append(all, line("copied "+op.OldPath+" to "+op.Path))
		}
	}
	return all
}

func terminalBlock(t *transcript.Terminal) block {
	text := safetext.Text(t.Plain())
	if t.Skipped > 0 && t.Gap() == 0 {
		text = safetext.Text(t.PlainHead()) + text
	} else if t.Skipped > 0 {
		head := safetext.Text(t.PlainHead())
		if head != "" && !strings.HasSuffix(head, "\n") {
			head += "\n"
		}
		text = head + fmt.Sprintf("[… %d bytes of the output were not stored …]\n", t.Gap()) + text
	}
	if t.Command != "" {
		text = "$ " + line(t.Command) + "\n" + text
	}
	return block{Kind: blockTerminal, Text: text}
}

func terminalNotes(t *transcript.Terminal) []string {
	var all []string
	if t.Gap() > 0 {
		all = append(all, fmt.Sprintf("%d bytes of the output were not stored", t.Gap()))
	}
	if x := t.ExitStatus; x != nil {
		switch {
		case x.Signal != "":
			all = append(all, line("terminated by "+x.Signal))
		case x.ExitCode != nil && *x.ExitCode != 0:
			all = append(all, fmt.Sprintf("exit status %d", *x.ExitCode))
		}
	}
	return all
}

// planItem returns a plan as a list with marks.
func planItem(p *transcript.Plan) item {
	it := item{Kind: itemPlan, Title: "Plan"}
	if p.Removed {
		it.Status = "removed"
	}
	switch c := p.Content.(type) {
	case *acpv2.PlanItems:
		b := block{Kind: blockSteps}
		for _, e := range c.Entries {
			b.Steps = append(b.Steps, step{Mark: mark(string(e.Status)), Status: line(string(e.Status)), Text: line(e.Content)})
		}
		it.Blocks = []block{b}
	case *acpv2.PlanMarkdown:
		it.Blocks = []block{{Kind: blockMarkdown, Text: safetext.Text(c.Content)}}
	case *acpv2.PlanFile:
		it.Blocks = []block{{Kind: blockLink, Text: line(c.URI), URL: line(c.URI)}}
	default:
		it.Notes = []string{"a plan of an unknown kind"}
	}
	return it
}

// permissionItem returns a question with its answer.
func permissionItem(t *transcript.Snapshot, p *transcript.Permission) item {
	it := item{Kind: itemAside, Title: line("Permission: " + p.Title), Notes: notes(p.Description)}
	switch command, certain := shown.Asked(t, p); {
	case command != "":
		it.Blocks = []block{{Kind: blockTerminal, Text: "$ " + safetext.Text(command)}}
	case !certain:
		it.Notes = append(it.Notes, "it is not known what would run")
	}
	switch s := p.Subject.(type) {
	case *acpv2.ToolCallPermissionSubject:
		if c := t.ToolCall(s.ToolCall.ToolCallID); c != nil && c.Title != p.Title {
			it.Notes = append(it.Notes, line("for "+c.Title))
		}
	}
	option, ok := p.Selected()
	switch {
	case ok:
		it.Status = line("answered: " + option.Name)
	case p.Outcome == nil:
		it.Status = "not answered"
	default:
		it.Status = "cancelled"
	}
	return it
}

// contents returns content blocks. Consecutive texts are merged, because they are pieces of one.
func contents(blocks []acpv2.ContentBlock) []block {
	var all []block
	for _, b := range blocks {
		switch b := b.(type) {
		case *acpv2.TextContent:
			if n := len(all); n > 0 && all[n-1].Kind == blockMarkdown {
				all[n-1].Text += safetext.Text(b.Text)
				continue
			}
			all = append(all, block{Kind: blockMarkdown, Text: safetext.Text(b.Text)})
		case *acpv2.ImageContent:
			all = append(all, block{Kind: blockImage, Text: line(first(b.URI, b.MIMEType, "image")), MIME: b.MIMEType, Data: b.Data})
		case *acpv2.AudioContent:
			all = append(all, block{Kind: blockLink, Text: line("audio " + b.MIMEType)})
		case *acpv2.ResourceLink:
			all = append(all, block{Kind: blockLink, Text: line(first(b.Title, b.Name, b.URI)), URL: line(b.URI)})
		case *acpv2.EmbeddedResource:
			switch r := b.Resource.(type) {
			case *acpv2.TextResourceContents:
				all = append(all, block{Kind: blockLink, Text: line(r.URI), URL: line(r.URI)}, block{Kind: blockCode, Text: safetext.Text(r.Text)})
			case *acpv2.BlobResourceContents:
				all = append(all, block{Kind: blockLink, Text: line(r.URI), URL: line(r.URI)})
			}
		default:
			all = append(all, block{Kind: blockLink, Text: "content of an unknown kind"})
		}
	}
	return all
}

// notes returns the texts that are not blank, each on one line.
func notes(texts ...string) []string {
	var all []string
	for _, s := range texts {
		if s = line(s); s != "" {
			all = append(all, s)
		}
	}
	return all
}

// first returns the first text that is not blank.
func first(texts ...string) string {
	for _, s := range texts {
		if strings.TrimSpace(s) != "" {
			return s
		}
	}
	return ""
}
