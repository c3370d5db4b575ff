package view

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/transcript"
	"github.com/google/go-cmp/cmp"
)

func chunk(id, text string) acpv2.SessionUpdate {
	return &acpv2.AgentMessageChunk{MessageID: acpv2.MessageID(id), Content: &acpv2.TextContent{Text: text}}
}

// checkLines reports what must not be in any lines.
func checkLines(t *testing.T, ls []string, width int) {
	t.Helper()
	for _, l := range ls {
		if w := max(ansi.StringWidth(l), ansi.StringWidthWc(l)); w > width {
			t.Fatalf("%q has %d cells, not %d", l, w, width)
		}
		if !utf8.ValidString(l) {
			t.Fatalf("%q is not UTF-8", l)
		}
		rest := sequences.ReplaceAllString(l, "")
		for _, r := range rest {
			if r < ' ' || r >= 0x7f && r <= 0x9f {
				t.Fatalf("%q holds %U", l, r)
			}
		}
		if all := sequences.FindAllString(l, -1); len(all) > 0 {
			if last := all[len(all)-1]; last != "\x1b[m" && last != "\x1b]8;;\a" {
				t.Fatalf("%q ends with %q", l, last)
			}
		}
	}
}

// What arrives in pieces ends in the same lines as what arrives at once, at every width.
func TestStreamingIsWhole(t *testing.T) {
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 2))
		text := randomMarkdown(r, 120)
		c := transcript.New(transcript.Config{})
		tr := New(fullTheme())
		width := 20 + r.IntN(180)
		tr.SetWidth(width)
		for rest := text; rest != ""; {
			var changes []transcript.Change
			for range 1 + r.IntN(4) {
				n := min(1+r.IntN(1+r.IntN(max(len(text)/30, 2))), len(rest))
				for n < len(rest) && !utf8.RuneStart(rest[n]) {
					n++
				}
				changes = append(changes, c.Apply(chunk("m", rest[:n])))
				if rest = rest[n:]; rest == "" {
					break
				}
			}
			tr.Set(c.Snapshot(), changes)
			tr.Layout(0)
			ls := tr.Lines(tr.Height()-30, 30)
			checkLines(t, ls, width)
		}
		whole := New(fullTheme())
		whole.SetWidth(width)
		whole.Set(c.Snapshot(), nil)
		want, got := drawAll(whole), drawAll(tr)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d, width %d: lines (-whole +streamed):\n%s", seed, width, diff)
		}
		// and once more after the width was another
		tr.SetWidth(200 - width/2)
		tr.Lines(5, 10)
		tr.SetWidth(width)
		if diff := cmp.Diff(want, drawAll(tr)); diff != "" {
			t.Fatalf("seed %d, width %d: lines after a resize (-before +after):\n%s", seed, width, diff)
		}
	}
}

// randomUpdate is any update about a few entries.
func randomUpdate(r *rand.Rand) acpv2.SessionUpdate {
	id := func(n int) string { return fmt.Sprint("i", r.IntN(n)) }
	text := func() string { return randomMarkdown(r, r.IntN(12)) }
	content := func() []acpv2.ToolCallContent {
		var cs []acpv2.ToolCallContent
		for range r.IntN(3) {
			switch r.IntN(4) {
			case 0:
				cs = append(cs, &acpv2.Content{Content: &acpv2.TextContent{Text: text()}})
			case 1:
				cs = append(cs, &acpv2.Diff{Changes: []acpv2.DiffChange{{Operation: &acpv2.DiffModify{Path: "/w/main.go"}}},
					Patch: &acpv2.DiffPatch{Format: acpv2.DiffPatchFormatGitPatch, Text: examplePatch}})
			case 2:
				cs = append(cs, &acpv2.Terminal{TerminalID: acpv2.TerminalID(id(4))})
			case 3:
				cs = append(cs, &acpv2.Content{Content: &acpv2.ImageContent{Data: "AAAA", MIMEType: "image/png"}})
			}
		}
		return cs
	}
	statuses := []acpv2.ToolCallStatus{"pending", "in_progress", "completed", "failed", "cancelled", "odd"}
	kinds := []acpv2.ToolKind{"read", "edit", "execute", "search", "other", "new"}
	switch r.IntN(10) {
	case 0:
		return &acpv2.UserMessageChunk{MessageID: acpv2.MessageID(id(5)), Content: &acpv2.TextContent{Text: text()}}
	case 1:
		return &acpv2.AgentThoughtChunk{MessageID: acpv2.MessageID(id(5)), Content: &acpv2.TextContent{Text: text()}}
	case 2, 3:
		u := &acpv2.ToolCallUpdate{ToolCallID: acpv2.ToolCallID(id(8)), Status: acpv2.Set(statuses[r.IntN(len(statuses))])}
		if r.IntN(2) == 0 {
			u.Title = acpv2.Set(text())
		}
		if r.IntN(2) == 0 {
			u.Kind = acpv2.Set(kinds[r.IntN(len(kinds))])
		}
		if r.IntN(2) == 0 {
			u.Content = acpv2.Set(content())
		}
		return u
	case 4:
		return &acpv2.TerminalOutputChunk{TerminalID: acpv2.TerminalID(id(4)), Data: base64.StdEncoding.EncodeToString([]byte("\x1b[31mout\x1b[0m " + text()))}
	case 5:
		return &acpv2.TerminalUpdate{TerminalID: acpv2.TerminalID(id(4)), Command: acpv2.Set("run " + text())}
	case 6:
		return &acpv2.Notice{Severity: "warning", Title: text()}
	case 7:
		return &acpv2.PlanUpdate{Plan: &acpv2.PlanItems{PlanID: acpv2.PlanID(id(2)), Entries: []acpv2.PlanEntry{{Content: text(), Status: "in_progress"}, {Content: "x", Status: "completed"}}}}
	case 8:
		return &acpv2.SubagentUpdate{SessionID: acpv2.SessionID(id(3)), Title: acpv2.Set(text())}
	}
	return chunk(id(5), text())
}

// However updates come, what is shown in the end is what a new transcript shows; and what the
// screen shows meanwhile agrees with the heights.
func TestUpdatesAnyOrder(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 3))
		c := transcript.New(transcript.Config{Entries: 30, TotalBytes: 256 << 10})
		tr := New(fullTheme())
		width := 13 + r.IntN(150)
		tr.SetWidth(width)
		open := map[uint64]bool{}
		for range 80 {
			var changes []transcript.Change
			for range r.IntN(5) {
				changes = append(changes, c.Apply(randomUpdate(r)))
			}
			s := c.Snapshot()
			if len(changes) > 0 {
				tr.Set(s, changes)
			}
			switch r.IntN(6) {
			case 0:
				tr.Layout(0)
			case 1:
				tr.Layout(time.Millisecond)
			case 2:
				var seqs []uint64
				for e := range s.Entries() {
					seqs = append(seqs, e.Seq())
				}
				if len(seqs) > 0 {
					seq := seqs[r.IntN(len(seqs))]
					tr.Toggle(seq)
					open[seq] = tr.Expanded(seq)
				}
			}
			from, n := r.IntN(tr.Height()+2)-1, r.IntN(40)
			h := tr.Height()
			ls := tr.Lines(from, n)
			checkLines(t, ls, width)
			if len(ls) > n || h > 0 && from+n >= tr.Height() && len(ls) < min(n, tr.Height()-max(from, 0)) {
				t.Fatalf("seed %d: %d lines from %d on of %d (%d before), not %d", seed, len(ls), from, tr.Height(), h, n)
			}
		}
		s := c.Snapshot()
		tr.Set(s, []transcript.Change{{}})
		want := New(fullTheme())
		want.SetWidth(width)
		want.Set(s, nil)
		for seq, o := range open {
			if want.Expanded(seq) != o {
				want.Toggle(seq)
			}
		}
		if diff := cmp.Diff(drawAll(want), drawAll(tr)); diff != "" {
			t.Fatalf("seed %d: lines (-new +grown):\n%s", seed, diff)
		}
		total := 0
		for e := range s.Entries() {
			if top, ok := tr.Top(e.Seq()); ok {
				total++
				if seq, _, ok := tr.At(top); !ok || seq != e.Seq() {
					t.Fatalf("seed %d: at the top of %d is %d, %v", seed, e.Seq(), seq, ok)
				}
				if got := tr.Line(tr.Anchor(top)); got != top {
					t.Fatalf("seed %d: the anchor of %d leads to %d", seed, top, got)
				}
			}
		}
		if total == 0 {
			t.Fatalf("seed %d: nothing is shown", seed)
		}
	}
}

// TestMarkdownBounds: what would be many times as much as it is written as stays text.
func TestMarkdownBounds(t *testing.T) {
	src := strings.Repeat("|a", 300) + "\n" + strings.Repeat("|-", 300) + "\n" + strings.Repeat("b\n", 300)
	ls := plainTheme().markdown(src, 100)
	said := 0
	for _, l := range ls {
		said += strings.Count(l.plain(), "b")
	}
	if said != 300 || len(ls) > 400 || !strings.Contains(ls[0].plain(), "|a|a") {
		t.Errorf("%d lines, %d letters, first %q", len(ls), said, ls[0].plain())
	}
}
