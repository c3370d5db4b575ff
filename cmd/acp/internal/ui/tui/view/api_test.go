package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/transcript"
	"github.com/google/go-cmp/cmp"
)

func TestHyperlink(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"https://example.com/a?b=c#d", "https://example.com/a?b=c#d"},
		{"http://localhost:80/", "http://localhost:80/"},
		{"file:///w/a.go", ""},
		{"file://localhost/w/a.go", ""},
		{"file://host/w", ""},
		{"file:relative", ""},
		{"javascript:alert(1)", ""},
		{"https://user:secret@example.com", ""},
		{"https://", ""},
		{"mailto:a@b.c", "mailto:a@b.c"},
		{"mailto:a@b.c?attach=/etc/passwd", ""},
		{"mailto:", ""},
		{"/w/a.go", ""},
		{"https://example.com/ü", "https://example.com/%C3%BC"},
		{"https://example.com/\x1b[2J", ""},
		{"https://example.com/" + strings.Repeat("a", maxURL), ""},
	} {
		if got := hyperlink(c.in); got != c.want {
			t.Errorf("hyperlink(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		want  []string
	}{
		{"", 5, []string{""}},
		{"one two three", 20, []string{"one two three"}},
		{"one two three", 7, []string{"one two", "three"}},
		{"one two three", 5, []string{"one", "two", "three"}},
		{"  one two", 7, []string{"  one", "two"}},
		{"abcdefghijkl", 5, []string{"abcde", "fghij", "kl"}},
		{"a abcdefghijkl", 5, []string{"a abc", "defgh", "ijkl"}},
		{"世界世界", 5, []string{"世界", "世界"}},
		{"a世界", 3, []string{"a世", "界"}},
		{"世", 1, []string{"世"}},
		{"e\u0301e\u0301e\u0301", 2, []string{"e\u0301e\u0301", "e\u0301"}},
		{"one   two", 4, []string{"one", "two"}},
		{strings.Repeat(" ", 30) + "x", 10, []string{"     x"}},
	} {
		var got []string
		for _, l := range wrap(line{}.put(c.in, look{}), c.width) {
			got = append(got, l.plain())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("wrap(%q, %d) (-want +got):\n%s", c.in, c.width, diff)
		}
	}
}

func TestSearch(t *testing.T) {
	c := conversation(t, `
{"sessionUpdate":"agent_message","messageId":"a","content":[{"type":"text","text":"Needle in a **hay** stack"}]}
{"sessionUpdate":"agent_thought","messageId":"t","content":[{"type":"text","text":"first line\nsecond\nthird\na needle here"}]}
{"sessionUpdate":"tool_call_update","toolCallId":"1","title":"Read x","kind":"read","status":"completed","content":[{"type":"content","content":{"type":"text","text":"a\nb\nc\nneedle"}}]}
{"sessionUpdate":"agent_message","messageId":"b","content":[{"type":"text","text":"nothing"}]}`)
	tr := New(fullTheme())
	tr.SetWidth(60)
	tr.Set(c.Snapshot(), nil)
	drawAll(tr)
	seqs := func(ms []Match) (out []uint64) {
		for _, m := range ms {
			out = append(out, m.Seq)
		}
		return out
	}
	for _, q := range []struct {
		query string
		want  []uint64
	}{
		{"needle", []uint64{0, 1, 2}},
		{"Needle", []uint64{0}},
		{"hay stack", []uint64{0}},
		{"second third", []uint64{1}},
		{"absent", nil},
		{"", nil},
	} {
		if diff := cmp.Diff(q.want, seqs(tr.Search(q.query))); diff != "" {
			t.Errorf("Search(%q) (-want +got):\n%s", q.query, diff)
		}
	}
	ms := tr.Search("needle")
	if tr.Expanded(2) {
		t.Error("a search alone has unfolded something")
	}
	for i, m := range ms {
		at := tr.Highlight("needle", i)
		ls := tr.Lines(at, 1)
		if !strings.Contains(strings.ToLower(stripped(ls[0])), "needle") {
			t.Errorf("the match in %d is said to be on %q", m.Seq, ls[0])
		}
		if !strings.Contains(ls[0], "\x1b[7m") && !strings.Contains(ls[0], "\x1b[7;") {
			t.Errorf("the match does not stand out: %q", ls[0])
		}
	}
	if !tr.Expanded(2) || !tr.Expanded(1) {
		t.Error("what was gone to is not unfolded")
	}
	tr.Highlight("", -1)
	if ls := strings.Join(drawAll(tr), "\n"); strings.Contains(ls, "\x1b[7") {
		t.Error("still marked")
	}
}

func TestSearchBounds(t *testing.T) {
	c := transcript.New(transcript.Config{})
	c.Apply(chunk("m", strings.Repeat("needle\n", 5000)))
	tr := New(plainTheme())
	tr.Set(c.Snapshot(), nil)
	drawAll(tr)
	ms := tr.Search("needle")
	if len(ms) != maxMatches || ms[len(ms)-1].Line != 4999 {
		t.Errorf("%d matches, the last at %d", len(ms), ms[len(ms)-1].Line)
	}
	tr.Search(strings.Repeat("x", 1<<20))
}

func TestToggleAll(t *testing.T) {
	c := conversation(t, screens()["messages"]+screens()["tools"])
	tr := New(plainTheme())
	tr.Set(c.Snapshot(), nil)
	tr.ToggleAll(transcript.KindMessage)
	if !tr.Expanded(1) || tr.Expanded(0) || tr.Expanded(5) {
		t.Error("not the thought alone is unfolded")
	}
	tr.ToggleAll(transcript.KindMessage)
	if tr.Expanded(1) {
		t.Error("the thought is not folded again")
	}
	tr.SetOptions(Options{ThoughtsOpen: true})
	if tr.Expanded(1) {
		t.Error("what was folded by hand is not")
	}
	tr.Toggle(1 << 40)
}

func TestCopy(t *testing.T) {
	c := conversation(t, `{"sessionUpdate":"agent_message","messageId":"a","content":[{"type":"text","text":`+
		quote("Run:\n\n```sh\nmake\n\nmake test\n```\n\n1. or\n   ```\n   nested\n   ```\n\n\x1b[2J~~~go\nopen")+`}]}`)
	tr := New(plainTheme())
	tr.Set(c.Snapshot(), nil)
	if diff := cmp.Diff([]string{"make\n\nmake test", "nested", "open"}, tr.CodeBlocks(0)); diff != "" {
		t.Errorf("code (-want +got):\n%s", diff)
	}
	if got := tr.PlainText(0); !strings.HasPrefix(got, "Run:\n\n```sh\n") || strings.Contains(got, "\x1b") {
		t.Errorf("text %q", got)
	}
	if tr.PlainText(99) != "" || tr.CodeBlocks(99) != nil {
		t.Error("there is text where there is no entry")
	}
}

func TestLinesAreBounded(t *testing.T) {
	if !long.All() {
		t.Skip("it is long under the race detector, and has one goroutine")
	}
	c := transcript.New(transcript.Config{EntryBytes: 32 << 20, TotalBytes: 256 << 20})
	for range 200 {
		c.Apply(chunk("m", answer(64<<10)))
	}
	tr := New(plainTheme())
	tr.SetWidth(100)
	tr.Set(c.Snapshot(), nil)
	h := 0
	for !tr.Layout(5 * time.Millisecond) {
		if tr.cached > maxCached {
			t.Fatalf("%d bytes of lines are kept", tr.cached)
		}
	}
	h = tr.Height()
	if tr.cached > maxCached {
		t.Fatalf("%d bytes of lines are kept", tr.cached)
	}
	first := tr.Lines(0, 20)
	if tr.Height() != h || len(first) != 20 || !strings.Contains(stripped(first[0]), "Some words about code") {
		t.Errorf("the first lines are %q, height %d and before %d", first, tr.Height(), h)
	}
}

func TestEmpty(t *testing.T) {
	tr := New(plainTheme())
	if tr.Height() != 0 || tr.Lines(0, 10) == nil && len(tr.Lines(-5, 10)) != 0 || !tr.Layout(0) {
		t.Error("an empty conversation has lines")
	}
	tr.Set(nil, nil)
	tr.SetWidth(0)
	if _, _, ok := tr.At(0); ok {
		t.Error("there is an entry")
	}
	if _, ok := tr.Top(0); ok {
		t.Error("there is an entry")
	}
	if tr.Line(tr.Anchor(3)) != 0 || tr.Search("x") != nil {
		t.Error("there is a place")
	}
}

// The changes that words make to lines are marked, and only those.
func TestChangedWords(t *testing.T) {
	at := func(s string, rs []byteRange) (out []string) {
		for _, r := range rs {
			out = append(out, s[r.start:r.end])
		}
		return out
	}
	for _, c := range []struct {
		a, b     string
		inA, inB []string
	}{
		{"run(ctx, os.Args)", "run(ctx, os.Args[1:])", nil, []string{"[1:]"}},
		{"x := 1", "x := 2", []string{"1"}, []string{"2"}},
		{"same", "same", nil, nil},
		{"nothing in common", "xyz", nil, nil},
		{"", "a", nil, nil},
	} {
		a, b := changedWords(c.a, c.b)
		if diff := cmp.Diff([][]string{c.inA, c.inB}, [][]string{at(c.a, a), at(c.b, b)}); diff != "" {
			t.Errorf("%q, %q (-want +got):\n%s", c.a, c.b, diff)
		}
	}
}

// Code that a lexer has trouble with does not hold up the conversation for long, and is all there.
func TestHostileCode(t *testing.T) {
	th := fullTheme()
	for _, lang := range []string{"bash", "yaml"} {
		for _, s := range []string{"$(", "\"\\\"", "<a ", "((((", "/*", "{{", "`", "'", "a.", "\\", "=~/"} {
			code := strings.Repeat(s, codePiece/len(s))
			ls := th.codeLines(code, lexerFor(lang, false))
			if len(ls) != 1 || ls[0].plain() != code {
				t.Errorf("%s: %.10q is different", lang, s)
			}
		}
	}
}

// What is not looked at is measured, not drawn, and turns out to be as high when it is.
func TestMeasured(t *testing.T) {
	if testing.Short() {
		t.Skip("it is long under the race detector, and has one goroutine")
	}
	var b strings.Builder
	for i, lang := range []string{"go", "python", "bash", "yaml", "html", "json", "diff", "no-such-language", ""} {
		b.WriteString("Text before.\n\n```" + lang + "\n")
		for n := range 180 {
			b.WriteString("\tif x[" + strings.Repeat("é世\u0301", n%40) + `] == "a\"b" { /* ` + "`c` */ # $(d)\t<e f='g'>👩‍👩‍👧\n")
			if n%50 == i {
				b.WriteString("\n")
			}
		}
		b.WriteString("```\n\n")
	}
	c := transcript.New(transcript.Config{})
	c.Apply(chunk("m", b.String()))
	for _, width := range []int{9, 60} {
		tr := New(fullTheme())
		tr.SetWidth(width)
		tr.Set(c.Snapshot(), nil)
		for !tr.Layout(time.Hour) {
		}
		drawn := tr.cached
		h := tr.Height()
		for i, it := range tr.items {
			for j := range it.parts {
				before := it.parts[j].height
				tr.drawPart(i, j)
				if it.parts[j].height != before {
					t.Errorf("width %d, part %d has %d lines and was measured as %d", width, j, it.parts[j].height, before)
				}
			}
		}
		if drawn > tr.cached/3 { // code in no language is not worth measuring
			t.Errorf("of %d bytes of lines %d were drawn before", tr.cached, drawn)
		}
		if tr.Height() != h {
			t.Errorf("width %d: %d lines, and before %d", width, tr.Height(), h)
		}
	}
}

// Without time only what is looked at is drawn, and each call after that does a little of the rest.
func TestLayoutInSteps(t *testing.T) {
	c := transcript.New(transcript.Config{})
	const all = 300
	for i := range all {
		c.Apply(chunk(fmt.Sprint(i), "word\n"))
	}
	tr := New(fullTheme())
	tr.rows = 10
	tr.Set(c.Snapshot(), nil)
	left := func() (n int) {
		for _, it := range tr.items {
			n += it.inexact
			if it.stale { // making its parts is work, too
				n++
			}
		}
		return n
	}
	tr.Layout(0)
	if n := left(); n < 2*all-30 || n >= 2*all {
		t.Errorf("%d of %d are left", n, all)
	}
	for n := left(); n > 0; n = left() {
		if tr.Layout(0) && left() > 0 {
			t.Fatal("it says that it is done")
		}
		if left() >= n {
			t.Fatalf("a call did nothing, %d are left", n)
		}
	}
	if !tr.Layout(0) {
		t.Error("it does not say that it is done")
	}
}

// differences says how what is shown of a text in part differs from the whole; "" if it does not.
func differences(th *Theme, src string, n int, tail bool) string {
	var whole []line
	for i, pc := range splitMarkdown(src, nil) {
		if pc.gap && i > 0 {
			whole = append(whole, nil)
		}
		whole = append(whole, th.pieceLines(src, pc, 40)...)
	}
	some := th.someLines(src, 40, n, tail)
	if len(some) != len(whole) {
		return fmt.Sprintf("%d lines, and in the whole %d", len(some), len(whole))
	}
	for i := range whole {
		if got, want := some[i].plain(), whole[i].plain(); got != want {
			return fmt.Sprintf("line %d is %q, and in the whole %q", i, got, want)
		}
		looked := i < n
		if tail {
			looked = i >= len(whole)-n
		}
		if got, want := th.render(some[i]), th.render(whole[i]); looked && got != want {
			return fmt.Sprintf("line %d is %q, and in the whole %q", i, got, want)
		}
	}
	return ""
}

// What is shown of a text in part looks as in the whole, and there is as much of it.
func TestSomeLines(t *testing.T) {
	if testing.Short() {
		t.Skip("it is long under the race detector, and has one goroutine")
	}
	th := fullTheme()
	code := strings.Repeat("func f() { return \"x\" } // y\n\n", 400)
	for _, src := range []string{
		"", "word", "```go\n", "```go\n```", "```go\n\n```\n", "```go\n" + code, "```go\n" + code + "```\nafter", "before\n\n```go\nfunc f() {}\n```\n\n```go\n" + code + "```",
		"```go\nfunc f() {}\n\n\n```", "  ```go\n  func f() {}\n  ```\n" + strings.Repeat("many words ", 100), "```\n" + code + "```",
	} {
		for _, n := range []int{0, 1, 7, 1000, 10_000} {
			for _, tail := range []bool{false, true} {
				wrong := differences(th, src, n, tail)
				// A lexer gives a word up for which it has no time, as on a machine that is busy.
				for range 3 {
					if wrong == "" {
						break
					}
					wrong = differences(th, src, n, tail)
				}
				if wrong != "" {
					t.Errorf("%.30q, %d, tail %v: %s", src, n, tail, wrong)
				}
			}
		}
	}
}
