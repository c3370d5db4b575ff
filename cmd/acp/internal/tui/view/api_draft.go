// Package view draws conversations as lines of text for a terminal.
package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/transcript"
)

// A Theme is how things look.
type Theme struct{}

// NewTheme returns the theme for a terminal.
func NewTheme(dark bool, profile colorprofile.Profile) *Theme { return &Theme{} }

// A DiffMode says how changes to files are drawn.
type DiffMode int

// The ways to draw changes.
const (
	DiffAuto DiffMode = iota
	DiffUnified
	DiffSplit
)

// Options are how a conversation is drawn.
type Options struct {
	ThoughtsOpen bool
	Diff         DiffMode
	Cwd          string // paths below it are shown relative to it
	// Child returns the conversation of a subagent, nil if there is none.
	Child func(id acpv2.SessionID) *transcript.Snapshot
}

// A Match is a place where a search found something.
type Match struct {
	Seq  uint64
	Line int // within the transcript, as it is now
}

// An Anchor is a place in the conversation that stays while lines above it change.
type Anchor struct {
	Seq   uint64
	block int
	row   int
}

// A Transcript draws one conversation. It is used by one goroutine.
type Transcript struct {
	width int
	snap  *transcript.Snapshot
	lines []string
	seqs  []uint64
	open  map[uint64]bool
}

// New returns an empty Transcript.
func New(th *Theme) *Transcript {
	return &Transcript{width: 80, snap: &transcript.Snapshot{}, open: map[uint64]bool{}}
}

// Set shows a snapshot.
func (t *Transcript) Set(s *transcript.Snapshot, changes []transcript.Change) {
	t.snap = s
	t.lines, t.seqs = nil, nil
	for e := range s.Entries() {
		text := string(e.EntryKind())
		switch e := e.(type) {
		case *transcript.Message:
			text = string(e.Role) + ": " + e.Text()
		case *transcript.ToolCall:
			text = fmt.Sprintf("%s %s", e.Status, e.Title)
		}
		for line := range strings.SplitSeq(ansi.Wrap(safetext.Text(text), t.width, ""), "\n") {
			t.lines, t.seqs = append(t.lines, line), append(t.seqs, e.Seq())
		}
	}
}

// SetWidth sets the width in cells.
func (t *Transcript) SetWidth(w int) { t.width = max(w, 1); t.Set(t.snap, nil) }

// SetTheme changes the look.
func (t *Transcript) SetTheme(th *Theme) {}

// SetOptions sets how it is drawn.
func (t *Transcript) SetOptions(o Options) {}

// Invalidate has an entry drawn anew, such as a subagent whose conversation went on.
func (t *Transcript) Invalidate(seq uint64) {}

// Layout works out heights.
func (t *Transcript) Layout(budget time.Duration) (done bool) { return true }

// Height is the number of lines.
func (t *Transcript) Height() int { return len(t.lines) }

// Lines returns what to draw.
func (t *Transcript) Lines(from, n int) []string {
	from = min(max(from, 0), len(t.lines))
	return t.lines[from:min(from+max(n, 0), len(t.lines))]
}

// Toggle folds or unfolds an entry.
func (t *Transcript) Toggle(seq uint64) { t.open[seq] = !t.open[seq] }

// Expanded reports whether an entry is unfolded.
func (t *Transcript) Expanded(seq uint64) bool { return t.open[seq] }

// ToggleAll unfolds all entries of a kind, or folds them if all are unfolded. Thoughts are
// messages: [transcript.KindMessage] is them.
func (t *Transcript) ToggleAll(kind transcript.EntryKind) {}

// At returns the entry at a line.
func (t *Transcript) At(line int) (seq uint64, kind transcript.EntryKind, ok bool) {
	if line < 0 || line >= len(t.seqs) {
		return 0, "", false
	}
	e := t.snap.Entry(t.seqs[line])
	return e.Seq(), e.EntryKind(), true
}

// Top returns the first line of an entry.
func (t *Transcript) Top(seq uint64) (line int, ok bool) {
	for i, s := range t.seqs {
		if s == seq {
			return i, true
		}
	}
	return 0, false
}

// Anchor returns the place of a line.
func (t *Transcript) Anchor(line int) Anchor {
	if line < 0 || line >= len(t.seqs) {
		return Anchor{}
	}
	top, _ := t.Top(t.seqs[line])
	return Anchor{Seq: t.seqs[line], row: line - top}
}

// Line returns where an anchor is now.
func (t *Transcript) Line(a Anchor) int { top, _ := t.Top(a.Seq); return top + a.row }

// Search finds text.
func (t *Transcript) Search(query string) []Match { return nil }

// Highlight marks what a search found; current is the index of the match to stand out.
func (t *Transcript) Highlight(query string, current int) {}

// PlainText returns the text of an entry, for copying.
func (t *Transcript) PlainText(seq uint64) string { return "" }

// CodeBlocks returns the code in a message.
func (t *Transcript) CodeBlocks(seq uint64) []string { return nil }

// Permission draws what a permission is asked for.
func Permission(req *acp.PermissionRequest, snap *transcript.Snapshot, width int, th *Theme) []string {
	return []string{safetext.Line(req.Title, width)}
}

// PatchDiff draws a patch, Diff the difference of two texts of a file.
func PatchDiff(patch string, width int, th *Theme, mode DiffMode) []string {
	return strings.Split(safetext.Text(patch), "\n")
}

// Diff draws the difference between two texts of a file.
func Diff(path, old, new string, width int, th *Theme, mode DiffMode) []string { return nil }

// Plan draws the progress of the latest plan of the conversation in one line, for a status area; nil if
// there is none.
func Plan(snap *transcript.Snapshot, width int, th *Theme) []string { return nil }
