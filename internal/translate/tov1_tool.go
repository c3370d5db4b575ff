package translate

import (
	"slices"
	"strings"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/patch"
)

// A call is what is known of a tool call that the client knows about.
type call struct {
	title string // "" if it is long
	parts []part
	size  int
}

// A part is one piece of content of a tool call as the client has it: what one
// piece became, or a terminal, which is rendered anew each time.
type part struct {
	content  []acpv1.ToolCallContent
	terminal acpv2.TerminalID
	size     int
}

// Texts tells the whole texts of the files that an edit changes, for when it is
// sent. Without them they are taken from its patch, which may hold only their
// surroundings. The files are found by their paths.
func (t *ToV1) Texts(d *acpv2.Diff, files []patch.File) {
	if t.texts.get(d) != nil {
		return
	}
	size := fileBytes(files)
	if size > maxTextBytes {
		return
	}
	v, old := t.texts.add(d, maxTexts)
	*v = files
	t.textBytes += size
	if old != nil {
		t.textBytes -= fileBytes(*old)
	}
	t.texts.oldest(func(old *[]patch.File) bool {
		if t.textBytes <= maxTextBytes {
			return false
		}
		t.textBytes -= fileBytes(*old)
		*old = nil
		return true
	})
}

func fileBytes(files []patch.File) (n int) {
	for _, f := range files {
		n += len(f.Old) + len(f.New)
	}
	return n
}

func (t *ToV1) toolCall(dst []acpv1.SessionUpdate, u *acpv2.ToolCallUpdate) []acpv1.SessionUpdate {
	c := t.calls.get(u.ToolCallID)
	first := c == nil
	if first {
		c = t.addCall(u.ToolCallID)
	}
	if title, ok := u.Title.Get(); ok {
		if c.title = title; len(title) > maxTitle {
			c.title = ""
		}
	}
	var content []acpv1.ToolCallContent
	var reports acpv2.TerminalID
	if first {
		reports = t.adopt(u)
	}
	if !u.Content.IsZero() {
		content = t.setParts(u.ToolCallID, c, t.parts(u.Content.Or(nil)))
	}
	if first {
		return t.announced(dst, t.announce(u, content), reports)
	}
	v := t.toolUpdate(u)
	switch {
	case u.Content.IsClear():
		v.Content = acpv1.Clear[[]acpv1.ToolCallContent]()
	case !u.Content.IsZero():
		v.Content = acpv1.Set(content)
	}
	if v.Title.IsZero() && v.Kind.IsZero() && v.Status.IsZero() && v.Content.IsZero() && v.Locations.IsZero() && v.Name == "" &&
		v.RawInput == nil && v.RawOutput == nil && !hasMembers(v.Meta, v.Unknown) {
		return dst
	}
	return append(dst, &v)
}

func (t *ToV1) addCall(id acpv2.ToolCallID) *call {
	c, old := t.calls.add(id, maxCalls)
	if old != nil {
		t.partBytes -= old.size
	}
	return c
}

// announce makes the announcement of a tool call. A title is required.
func (t *ToV1) announce(u *acpv2.ToolCallUpdate, content []acpv1.ToolCallContent) *acpv1.ToolCall {
	v := &acpv1.ToolCall{
		ToolCallID: acpv1.ToolCallID(u.ToolCallID),
		Title:      u.Title.Or(""),
		Name:       u.Name.Or(""),
		Kind:       acpv1.ToolKind(u.Kind.Or("")),
		Locations:  LocationsToV1(u.Locations.Or(nil)),
		RawInput:   u.RawInput,
		RawOutput:  u.RawOutput,
		Meta:       object(u.Meta),
		Unknown:    u.Unknown,
	}
	if v.Title == "" {
		v.Title = v.Name
	}
	if v.Title == "" {
		v.Title = string(u.ToolCallID)
	}
	if s, ok := u.Status.Get(); ok {
		v.Status = ToolStatusToV1(s)
	}
	if len(content) > 0 {
		v.Content = content
	}
	return v
}

// toolUpdate converts an update but for its content. A name can only be set in
// version 1.
func (t *ToV1) toolUpdate(u *acpv2.ToolCallUpdate) acpv1.ToolCallUpdate {
	return acpv1.ToolCallUpdate{
		ToolCallID: acpv1.ToolCallID(u.ToolCallID),
		Kind:       patchToV1(u.Kind, text[acpv1.ToolKind, acpv2.ToolKind]),
		Status:     patchToV1(u.Status, ToolStatusToV1),
		Title:      patchToV1(u.Title, same[string]),
		Name:       u.Name.Or(""),
		Locations:  patchToV1(u.Locations, LocationsToV1),
		RawInput:   u.RawInput,
		RawOutput:  u.RawOutput,
		Meta:       object(u.Meta),
		Unknown:    u.Unknown,
	}
}

// contentChunk adds to the content of a tool call; version 1 can only replace
// it, so all of it is sent again.
func (t *ToV1) contentChunk(dst []acpv1.SessionUpdate, u *acpv2.ToolCallContentChunk) []acpv1.SessionUpdate {
	c := t.calls.get(u.ToolCallID)
	first := c == nil
	if first {
		c = t.addCall(u.ToolCallID)
	}
	parts := append(c.parts, t.parts([]acpv2.ToolCallContent{u.Content})...)
	size := partBytes(parts)
	for len(parts) > 1 && (len(parts) > maxParts || size > maxPartBytes) {
		size -= parts[0].size
		parts = parts[1:]
	}
	content := t.setParts(u.ToolCallID, c, parts)
	if first {
		v := t.announce(&acpv2.ToolCallUpdate{ToolCallID: u.ToolCallID}, content)
		v.Meta, v.Unknown = u.Meta, without(u.Unknown, toolCallMembers...)
		return append(dst, v)
	}
	return append(dst, &acpv1.ToolCallUpdate{ToolCallID: acpv1.ToolCallID(u.ToolCallID), Content: acpv1.Set(content),
		Meta: u.Meta, Unknown: without(u.Unknown, toolCallMembers...)})
}

// toolCallMembers are what the updates of a tool call hold and a piece of its
// content does not.
var toolCallMembers = []string{"title", "name", "kind", "status", "locations", "rawInput", "rawOutput"}

// setParts replaces what a tool call holds, unless that is too much to be kept,
// forgets what others hold beyond the limit, and returns what the client is sent.
func (t *ToV1) setParts(id acpv2.ToolCallID, c *call, parts []part) []acpv1.ToolCallContent {
	content := t.render(parts)
	if len(parts) > maxParts || partBytes(parts) > maxPartBytes {
		parts = nil
	}
	t.partBytes -= c.size
	c.parts, c.size = parts, partBytes(parts)
	t.partBytes += c.size
	t.calls.oldest(func(old *call) bool {
		if t.partBytes <= maxAllParts {
			return false
		}
		t.partBytes -= old.size
		old.parts, old.size = nil, 0
		return true
	})
	for _, p := range parts {
		if p.terminal != "" {
			t.terminal(p.terminal).shownBy(id)
		}
	}
	return content
}

func partBytes(parts []part) (n int) {
	for _, p := range parts {
		n += p.size
	}
	return n
}

// parts converts content to what a tool call holds.
func (t *ToV1) parts(list []acpv2.ToolCallContent) []part {
	out := make([]part, 0, len(list))
	for _, c := range list {
		if p := t.part(c); p.terminal != "" || len(p.content) > 0 {
			for _, v := range p.content {
				p.size += contentBytes(v)
			}
			out = append(out, p)
		}
	}
	return out
}

func (t *ToV1) part(c acpv2.ToolCallContent) (p part) {
	switch c := c.(type) {
	case *acpv2.Content:
		p.content = []acpv1.ToolCallContent{&acpv1.Content{Content: ContentToV1(closed(c.Content)), Meta: c.Meta, Unknown: c.Unknown}}
	case *acpv2.Diff:
		p.content = t.diff(c)
	case *acpv2.Terminal:
		if id, ok := t.ofClient(c.TerminalID); ok {
			p.content = []acpv1.ToolCallContent{&acpv1.Terminal{TerminalID: acpv1.TerminalID(id), Meta: c.Meta, Unknown: c.Unknown}}
		} else {
			p.terminal = c.TerminalID
		}
	case *acpv2.UnknownToolCallContent:
		if !isOwn(c.Type) {
			return p
		}
		p.content = []acpv1.ToolCallContent{&acpv1.UnknownToolCallContent{Type: c.Type, Raw: c.Raw}}
	}
	return p
}

// contentBytes is about how much memory a piece of content takes.
func contentBytes(c acpv1.ToolCallContent) int {
	const overhead = 64
	switch c := c.(type) {
	case *acpv1.Content:
		switch b := c.Content.(type) {
		case *acpv1.TextContent:
			return overhead + len(b.Text) + len(b.Meta) + len(b.Unknown)
		case nil:
			return overhead
		default:
			raw, _ := b.AppendJSON(nil)
			return overhead + len(raw)
		}
	case *acpv1.Diff:
		n := overhead + len(c.NewText)
		if c.OldText != nil {
			n += len(*c.OldText)
		}
		return n
	case *acpv1.UnknownToolCallContent:
		return overhead + len(c.Raw)
	}
	return overhead
}

// render lists what the client is sent for the parts of a tool call. The result
// is not nil.
func (t *ToV1) render(parts []part) []acpv1.ToolCallContent {
	out := make([]acpv1.ToolCallContent, 0, len(parts))
	for _, p := range parts {
		if p.terminal != "" {
			v := t.terminal(p.terminal)
			if v.in != "" {
				out = append(out, &acpv1.Terminal{TerminalID: acpv1.TerminalID(p.terminal)})
			} else {
				out = append(out, &acpv1.Content{Content: acpv1.Text(v.text())})
			}
			continue
		}
		out = append(out, p.content...)
	}
	return out
}

// diff makes one edit of each change, with the texts told by Texts, else those
// in the patch, else none.
func (t *ToV1) diff(d *acpv2.Diff) []acpv1.ToolCallContent {
	var files []patch.File
	if known := t.texts.get(d); known != nil {
		files = *known
	}
	if files == nil && d.Patch != nil && d.Patch.Format == acpv2.DiffPatchFormatGitPatch {
		files, _ = patch.Texts(d.Patch.Text) // a patch that cannot be read tells nothing
	}
	var out []acpv1.ToolCallContent
	add := func(path string, old, new string, created bool) {
		v := &acpv1.Diff{Path: path, NewText: new}
		if !created {
			v.OldText = &old
		}
		if len(out) == 0 {
			v.Meta, v.Unknown = d.Meta, without(d.Unknown, "path", "oldText", "newText")
		}
		out = append(out, v)
	}
	for _, c := range d.Changes {
		switch o := c.Operation.(type) {
		case *acpv2.DiffAdd:
			add(o.Path, "", textsOf(files, "", o.Path).New, true)
		case *acpv2.DiffModify:
			f := textsOf(files, o.Path, o.Path)
			add(o.Path, f.Old, f.New, false)
		case *acpv2.DiffDelete:
			add(o.Path, textsOf(files, o.Path, "").Old, "", false)
		case *acpv2.DiffMove:
			f := textsOf(files, o.OldPath, o.Path)
			add(o.Path, f.Old, f.New, false)
		case *acpv2.DiffCopy:
			add(o.Path, "", textsOf(files, o.OldPath, o.Path).New, true)
		}
	}
	return out
}

// textsOf finds a file by its paths; patches have them without a slash in front.
func textsOf(files []patch.File, oldPath, newPath string) patch.File {
	same := func(a, b string) bool { return strings.TrimLeft(a, "/") == strings.TrimLeft(b, "/") }
	i := slices.IndexFunc(files, func(f patch.File) bool { return same(f.OldPath, oldPath) && same(f.NewPath, newPath) })
	if i < 0 {
		return patch.File{}
	}
	return files[i]
}

// contents converts content for one use.
func (t *ToV1) contents(list []acpv2.ToolCallContent) []acpv1.ToolCallContent {
	return t.render(t.parts(list))
}
