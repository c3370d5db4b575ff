package tui

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/changes"
	"github.com/goacp/acp/cmd/acp/internal/ui/tui/view"
	"github.com/goacp/acp/transcript"
)

// baseMsg is what Git knew of the project when a session was opened.
type baseMsg struct {
	of   acp.SessionID
	base *changes.Base
}

// takeBase remembers the state of the project, unless the session was open before. Changes are
// found without it, too, so an error is no reason to disturb the user.
func (m *model) takeBase() tea.Cmd {
	if m.baseOf == m.session && m.session != "" {
		return nil
	}
	taken := make(chan struct{})
	m.base, m.baseOf, m.baseTaken = nil, m.session, taken
	ctx, dir, id := m.ctx, m.opt.cwd, m.session
	return func() tea.Msg {
		defer close(taken)
		b, err := changes.TakeBase(ctx, dir)
		if err != nil {
			b = nil
		}
		return baseMsg{id, b}
	}
}

// errUnsent ends a prompt that the user has cancelled before it was sent.
var errUnsent = errors.New("cancelled before it was sent")

// waitsForBase returns what a prompt waits with until Git was asked for the state of the project: what its turn changes would
// count as there before. Git has ten seconds. It reports true if the user has cancelled the prompt meanwhile. Prompts for a
// gateway do not wait, since the user may leave once they were entered.
func (m *model) waitsForBase() (wait func() (cancelled bool)) {
	taken := m.baseTaken
	if taken == nil || m.opt.Agent.Gateway {
		return func() bool { return false }
	}
	if m.stopWaiting == nil {
		m.stopWaiting = make(chan struct{})
	}
	stop := m.stopWaiting
	return func() bool {
		select {
		case <-stop:
		case <-taken:
		}
		select {
		case <-stop:
			return true
		default:
			return false
		}
	}
}

// changesMsg is what a session has changed.
type changesMsg struct {
	files []changes.File
	err   error
	of    *changesOverlay // the overlay to update; nil to open one
}

// openChanges shows what the session has changed.
func (m *model) openChanges() tea.Cmd {
	if m.talk == nil {
		return m.remark("the session is not open yet")
	}
	return m.findChanges(nil)
}

func (m *model) findChanges(of *changesOverlay) tea.Cmd {
	records := []*transcript.Snapshot{m.talk.Snapshot()}
	for e := range records[0].Entries() {
		if s, ok := e.(*transcript.Subagent); ok {
			if child := m.childSnapshot(s.ID); child != nil {
				records = append(records, child)
			}
		}
	}
	ctx, dir, base := m.ctx, m.opt.cwd, m.base
	return func() tea.Msg {
		files, err := changes.Find(ctx, dir, base, records...)
		return changesMsg{files, err, of}
	}
}

func (m *model) showChanges(msg changesMsg) tea.Cmd {
	if msg.err != nil {
		m.say("finding changes: "+msg.err.Error(), true)
	}
	o := msg.of
	switch {
	case o != nil && m.overlay != o:
		return nil // closed in the meantime
	case o == nil && len(msg.files) == 0:
		if m.hasEdited() {
			return m.remark("nothing of what this session has changed is left")
		}
		return m.remark("this session has not changed any file")
	case o == nil:
		m.flash = ""
		o = &changesOverlay{folded: map[string]bool{}, hunk: -1}
		for _, f := range msg.files {
			if added, removed := f.Count(); added+removed > foldedChanges {
				o.folded[f.Path] = true
			}
		}
		m.overlay = o
	}
	o.set(msg.files)
	return nil
}

// foldedChanges is the number of changed lines from which on a file is folded at first.
const foldedChanges = 400

// A changesOverlay shows what a session has changed as one diff, of which single hunks can be taken
// back.
type changesOverlay struct {
	files  []changes.File
	folded map[string]bool
	file   int // the selected file
	hunk   int // the selected hunk of it, or -1 for the file itself
	asked  bool
	undo   []func() error
	taken  int

	top, page int
	rows      []changeRow
	width     int
	theme     *view.Theme
}

// A changeRow is a line of the overlay.
type changeRow struct {
	file, hunk int
	text       string
}

// set replaces the files.
func (o *changesOverlay) set(files []changes.File) {
	o.files, o.rows = files, nil
	o.file = min(o.file, max(0, len(files)-1))
	o.hunk = min(o.hunk, o.open(o.file)-1)
}

// open returns how many hunks of a file are visible.
func (o *changesOverlay) open(file int) int {
	if file >= len(o.files) || o.folded[o.files[file].Path] {
		return 0
	}
	return len(o.files[file].Hunks)
}

func (o *changesOverlay) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	s := k.String()
	asked := o.asked
	o.asked, m.flash = false, ""
	switch s {
	case "esc", "q", "ctrl+c", "alt+c":
		return o.close(m)
	case "up", "k":
		o.step(-1)
	case "down", "j":
		o.step(1)
	case "tab", "J", "n":
		o.choose(min(o.file+1, len(o.files)-1), -1)
	case "shift+tab", "K", "p":
		o.choose(max(o.file-1, 0), -1)
	case "home", "g":
		o.choose(0, -1)
	case "end", "G":
		o.choose(max(0, len(o.files)-1), -1)
	case "pgup", "b":
		o.top -= max(1, o.page-1)
	case "pgdown", "space":
		o.top += max(1, o.page-1)
	case "u":
		return o.again(m)
	}
	if o.file >= len(o.files) {
		return nil
	}
	f := &o.files[o.file]
	switch s {
	case "enter":
		o.folded[f.Path] = !o.folded[f.Path]
		o.hunk, o.rows = -1, nil
		o.reveal()
	case "x":
		if !asked {
			o.asked = true
			return nil
		}
		return o.takeBack(m, f)
	case "o", "e":
		return m.openFile(f, o.hunk)
	case "y":
		return m.copyText("the changes of "+one(filepath.Base(f.Path)), f.Patch())
	}
	return nil
}

// step selects the next hunk or file in a direction.
func (o *changesOverlay) step(n int) {
	file, hunk := o.file, o.hunk+n
	switch {
	case hunk < -1:
		if file--; file < 0 {
			o.top = 0
			return
		}
		hunk = o.open(file) - 1
	case hunk >= o.open(file):
		if file++; file >= len(o.files) {
			o.top = len(o.rows)
			return
		}
		hunk = -1
	}
	o.choose(file, hunk)
}

func (o *changesOverlay) choose(file, hunk int) {
	o.file, o.hunk = file, hunk
	o.reveal()
}

// reveal scrolls until what is selected begins on the screen, and ends there if it fits.
func (o *changesOverlay) reveal() {
	first := slices.IndexFunc(o.rows, func(r changeRow) bool { return r.file == o.file && r.hunk == o.hunk })
	if first < 0 {
		return
	}
	end := first
	for end < len(o.rows) && o.rows[end].file == o.file && o.rows[end].hunk == o.hunk {
		end++
	}
	o.top = min(max(o.top, end-o.page), first)
}

// takeBack takes back what is selected.
func (o *changesOverlay) takeBack(m *model, f *changes.File) tea.Cmd {
	again, err := f.TakeBack(o.hunk)
	if errors.Is(err, changes.ErrMoved) {
		return tea.Batch(m.remark("the file has changed in the meantime; this is how it is now"), m.findChanges(o))
	}
	if err != nil {
		m.say("taking back: "+err.Error(), true)
		return nil
	}
	o.taken++
	o.undo = append(o.undo, again)
	return tea.Batch(m.remark("taken back in "+one(filepath.Base(f.Path))+" · u undoes"), m.findChanges(o))
}

// again undoes the last taking back.
func (o *changesOverlay) again(m *model) tea.Cmd {
	n := len(o.undo)
	if n == 0 {
		return m.remark("nothing was taken back")
	}
	again := o.undo[n-1]
	o.undo = o.undo[:n-1]
	o.taken--
	if err := again(); err != nil {
		m.say("bringing a change again: "+err.Error(), true)
	}
	return m.findChanges(o)
}

func (o *changesOverlay) close(m *model) tea.Cmd {
	m.shut(o)
	if o.taken == 0 {
		return nil
	}
	return m.remark(fmt.Sprintf("%d taken back; the agent does not know of it: tell it, if that matters", o.taken))
}

func (o *changesOverlay) wheel(_ *model, n int)        { o.top += n }
func (o *changesOverlay) paste(*model, string) tea.Cmd { return nil }
func (o *changesOverlay) dismiss()                     {}

// layout draws all files for a width.
func (o *changesOverlay) layout(m *model, width int) {
	o.width, o.theme, o.rows = width, m.theme, []changeRow{}
	mode := m.viewOptions().Diff
	for i := range o.files {
		f := &o.files[i]
		if i > 0 {
			o.rows = append(o.rows, changeRow{i, -2, ""})
		}
		head, hunks := view.FileDiff(f.Path, f.Patch(), m.opt.cwd, width-2, m.theme, mode)
		remark := ""
		switch {
		case f.Opaque != "":
			remark = f.Opaque
		case f.Filter != "":
			remark = "compared as stored: git's filter " + f.Filter + " was not run"
		case f.Source == changes.Compared:
			remark = "by a command, or by you"
		case f.Source == changes.Partly:
			remark = "the agent has changed more, which is gone"
		}
		for j, l := range head {
			if j == len(head)-1 && remark != "" {
				l += m.st.dim.Render("  " + cut(remark, max(0, width-4-ansi.StringWidth(l))))
			}
			o.rows = append(o.rows, changeRow{i, -1, l})
		}
		if o.folded[f.Path] {
			continue
		}
		for j, lines := range hunks {
			for _, l := range lines {
				o.rows = append(o.rows, changeRow{i, j, l})
			}
		}
	}
}

func (o *changesOverlay) draw(m *model, width, height int) ([]string, *tea.Position) {
	st := m.st
	fresh := o.rows == nil
	if fresh || o.width != width || o.theme != m.theme {
		o.layout(m, width)
	}
	added, removed := 0, 0
	for i := range o.files {
		a, r := o.files[i].Count()
		added, removed = added+a, removed+r
	}
	right := fmt.Sprintf("%s +%d −%d", counted(len(o.files), "file", "files"), added, removed)
	lines := []string{heading(st, "What this session has changed", right, width)}
	o.page = max(1, height-2)
	if fresh {
		o.reveal()
	}
	o.top = min(max(0, o.top), max(0, len(o.rows)-o.page))
	for _, r := range o.rows[o.top:min(len(o.rows), o.top+o.page)] {
		lead := "  "
		if r.file == o.file && r.hunk == o.hunk {
			lead = st.accent.Render("▌ ")
		}
		lines = append(lines, lead+r.text)
	}
	if len(o.rows) == 0 {
		lines = append(lines, st.dim.Render("  nothing is left"))
	}
	hint := "x takes back · Enter folds · o opens · ↑↓ select · Tab next file · y copies · u undoes · Esc closes"
	switch {
	case o.asked && o.hunk >= 0:
		hint = "x again takes these lines back · any other key does not"
	case o.asked:
		hint = "x again takes back all of this file · any other key does not"
	}
	style := st.dim
	switch {
	case o.asked:
		style = st.warn
	case m.flash != "":
		hint, style = m.flash, st.accent
	}
	lines = append(lines, style.Render(fitExit(hint, width)))
	return lines[:min(len(lines), height)], nil
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// openFile opens a file in the user's editor, at a hunk if the editor is one that takes a line.
func (m *model) openFile(f *changes.File, hunk int) tea.Cmd {
	if !f.Exists {
		return m.remark("the file is deleted")
	}
	line := 1
	if len(f.Hunks) > 0 {
		line = f.Hunks[max(hunk, 0)].Line
	}
	words, _, err := app.Editor(os.Environ())
	if err != nil {
		m.say(err.Error(), true)
		return nil
	}
	cmd := exec.Command(words[0], append(words[1:], atLine(words[0], f.Path, line)...)...)
	cmd.Dir = m.opt.cwd
	return m.lend(cmd, func(err error) tea.Msg {
		if err != nil {
			return failedMsg{fmt.Errorf("the editor failed: %w", err)}
		}
		return reopenedMsg{}
	})
}

// reopenedMsg reports that the user may have edited a file.
type reopenedMsg struct{}

// atLine returns the arguments with which an editor opens a file at a line.
func atLine(editor, path string, line int) []string {
	name := strings.TrimSuffix(strings.ToLower(filepath.Base(editor)), ".exe")
	switch name {
	case "vi", "vim", "nvim", "nano", "emacs", "emacsclient", "micro", "kak", "joe", "ne", "gvim":
		return []string{fmt.Sprintf("+%d", line), path}
	case "hx", "helix", "zed", "subl", "cursor", "code", "codium", "windsurf":
		at := fmt.Sprintf("%s:%d", path, line)
		if name == "code" || name == "codium" || name == "cursor" || name == "windsurf" {
			return []string{"-g", at}
		}
		return []string{at}
	}
	return []string{path}
}

// hasEdited reports whether the agent has changed a file in the session, as its tool calls say.
func (m *model) hasEdited() bool {
	if m.talk == nil {
		return false
	}
	for e := range m.talk.Snapshot().Backward() {
		if c, ok := e.(*transcript.ToolCall); ok && c.Status == acp.ToolCallStatusCompleted && (c.Kind == acp.ToolKindEdit || c.Kind == acp.ToolKindDelete || c.Kind == acp.ToolKindMove) {
			return true
		}
	}
	return false
}
