package window

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func user(texts ...string) *model.Message {
	m := &model.Message{Role: model.User}
	for _, t := range texts {
		m.Parts = append(m.Parts, &model.Text{Text: t})
	}
	return m
}

func says(text string) *model.Message {
	return &model.Message{Role: model.Assistant, Parts: []model.Part{&model.Text{Text: text}}}
}

// step is the wish for a command and what came of it.
func step(id, command, output string, failed bool) []*model.Message {
	in, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	return []*model.Message{
		{Role: model.Assistant, Parts: []model.Part{&model.ToolUse{ID: id, Name: "run", Input: in}}},
		{Role: model.User, Parts: []model.Part{&model.ToolResult{ID: id, Failed: failed, Parts: []model.Part{&model.Text{Text: output}}}}},
	}
}

// textOf returns all texts of messages.
func textOf(messages ...*model.Message) string {
	var b strings.Builder
	for _, m := range messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case *model.Text:
				b.WriteString(p.Text + "\n")
			case *model.ToolResult:
				b.WriteString(resultText(p) + "\n")
			case *model.ToolUse:
				fmt.Fprintf(&b, "[%s %s]\n", p.Name, p.Input)
			}
		}
	}
	return b.String()
}

// tokenizer counts like a real one in that code, prose and numbers have different rates.
func tokenizer(m *model.Message) int {
	n := 4
	for _, p := range m.Parts {
		switch p := p.(type) {
		case *model.Text:
			n += count(p.Text)
		case *model.ToolUse:
			n += count(string(p.Input)) + 10
		case *model.ToolResult:
			n += count(resultText(p)) + 6
		}
	}
	return n
}

func count(text string) int {
	letters, others := 0, 0
	for _, r := range text {
		if r >= 'a' && r <= 'z' || r == ' ' {
			letters++
		} else {
			others++
		}
	}
	return int(float64(letters)/4.6 + float64(others)/1.8)
}

// TestEstimate: after three answers the estimate of the next request is at most 5 % off,
// as a rule and at worst, for steps that are small in comparison with the conversation.
func TestEstimate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	prefix := &model.Prefix{System: strings.Repeat("you are an agent that works. ", 150)}
	var m Meter
	messages := []*model.Message{user(strings.Repeat("please do what i say. ", 40))}
	worst := 0.0
	for n := range 60 {
		total := count(prefix.System)
		for _, msg := range messages {
			total += tokenizer(msg)
		}
		if off := math.Abs(float64(m.Estimate(prefix, messages)-total)) / float64(total); n >= 3 {
			worst = max(worst, off)
		}
		m.Saw(prefix, messages, model.Usage{Known: true, Input: total / 3, CacheRead: total - total/3, Output: 30})
		output := strings.Repeat("func main() { return 12 }\n", rng.IntN(12))
		if n%2 == 0 {
			output = strings.Repeat("this is prose of some kind\n", rng.IntN(12))
		}
		messages = append(messages, step(fmt.Sprint(n), "go test ./...", output, false)...)
	}
	if worst > 0.05 {
		t.Errorf("the estimate is %.1f %% off", 100*worst)
	}
	m.Forget()
	if got := m.Estimate(prefix, messages[:1]); got < 900 || got > 2500 {
		t.Errorf("%d tokens at the beginning", got)
	}
}

// TestImages: images count as what they cost by their size, not as their bytes; and where they are most of a request, it does
// not teach how many tokens a text has.
func TestImages(t *testing.T) {
	sized := func(w, h int) []byte {
		var b bytes.Buffer
		if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for name, tc := range map[string]struct {
		data []byte
		want int
	}{
		"unknown": {make([]byte, 1<<20), 1500}, "tiny": {sized(1, 1), 256}, "wide": {sized(2000, 100), 266},
		"medium": {sized(1000, 1000), 1333}, "large": {sized(2000, 2000), 4784},
	} {
		var m Meter
		messages := []*model.Message{{Role: model.User, Parts: []model.Part{&model.Image{Data: tc.data}}}}
		if got := m.Of(messages...); got < tc.want || got > tc.want+20 {
			t.Errorf("%s: %d tokens, want %d", name, got, tc.want)
		}
		m.Saw(&model.Prefix{}, messages, model.Usage{Known: true, Input: tc.want + 10})
		if m.ratio != 0 {
			t.Errorf("%s: it has learned %v", name, m.ratio)
		}
	}
}

// TestCompact: what must not be lost is there; the steps that stay have their results.
func TestCompact(t *testing.T) {
	messages := []*model.Message{user("surroundings", "first words")}
	messages = append(messages, step("1", "go test", "FAIL here", true)...)
	messages = append(messages, step("2", "go vet", strings.Repeat("x", 4000), false)...)
	messages = append(messages, user("second words"), says("thinking"))
	messages = append(messages, step("3", "ls", "a b", false)...)
	var m Meter
	got := Compact(messages, Notes{Summary: "the summary", Plan: "[pending] x", Changed: []string{"/a", "/b"}}, &m, 10_000)
	if len(got) != 4 || got[0].Role != model.User || got[1] != messages[6] || got[3] != messages[8] {
		t.Fatalf("%d messages", len(got))
	}
	text := textOf(got[0])
	last := -1
	for _, want := range []string{"surroundings", begun, "Summary:\nthe summary", "The plan:\n[pending] x", "Files changed so far:\n/a\n/b", "The last command that failed:\ngo test\nFAIL here", "first words", "second words", continued} {
		at := strings.Index(text, want)
		if at <= last {
			t.Errorf("%q is not at its place in\n%s", want, text)
		}
		last = at
	}

	// Once more: the words stay, and what stood for the first part goes.
	more := append(got[:len(got):len(got)], says("more"), user("third words"), says(strings.Repeat("y", 9000)), user("x"))
	again := textOf(Compact(more, Notes{Summary: "the next one"}, &m, 10_000)...)
	for _, want := range []string{"surroundings", "the next one", "first words", "second words", "third words"} {
		if strings.Count(again, want) != 1 {
			t.Errorf("%q is there %d times in\n%s", want, strings.Count(again, want), again)
		}
	}
	if strings.Contains(again, "the summary\n") || strings.Count(again, begun) != 1 || strings.Count(again, continued) != 1 {
		t.Errorf("the first summary is still there:\n%s", again)
	}
}

// TestCompactBounds: of very many words the newest stay, and of one that is too long the
// beginning.
func TestCompactBounds(t *testing.T) {
	var m Meter
	messages := []*model.Message{user("surroundings", strings.Repeat("old ", 50_000))}
	for n := range 50 {
		messages = append(messages, says("a"), user(fmt.Sprintf("word%d ", n)+strings.Repeat("w ", 500)))
	}
	got := Compact(messages, Notes{}, &m, 20_000)
	text := textOf(got...)
	if n := m.Of(got...); n > 7000 || !strings.Contains(text, "word49 ") || strings.Contains(text, "word2 ") || !strings.Contains(text, "surroundings") {
		t.Errorf("%d tokens: %.200s", n, text)
	}
	if !strings.Contains(text, "The rest of this message is left out") {
		t.Error("nothing says that words are left out")
	}
	if Compact(nil, Notes{}, &m, 0) != nil {
		t.Error("a conversation out of nothing")
	}
}

// TestNoSummary: without a summary, the last that the model has said stands for it.
func TestNoSummary(t *testing.T) {
	messages := []*model.Message{user("s", "go"), says("I look for the bug."), user("x"), says(strings.Repeat("z", 50_000))}
	var m Meter
	if text := textOf(Compact(messages, Notes{}, &m, 1000)...); !strings.Contains(text, "There is no summary") || !strings.Contains(text, "zzz") {
		t.Error(text)
	}
}

// TestTrim: results are cut, the oldest first, until the rest fits; every step is there.
func TestTrim(t *testing.T) {
	messages := []*model.Message{user("s", "go")}
	for n := range 10 {
		messages = append(messages, step(fmt.Sprint(n), "cat", strings.Repeat("o", 10_000), false)...)
	}
	var m Meter
	p := &model.Prefix{}
	got := Trim(p, messages, &m, m.Estimate(p, messages)/2)
	if len(got) != len(messages) || m.Estimate(p, got) > m.Estimate(p, messages)/2 {
		t.Errorf("%d messages, %d tokens", len(got), m.Estimate(p, got))
	}
	if !strings.Contains(textOf(got[2]), "left out") || got[20] != messages[20] {
		t.Error("not the oldest results were cut")
	}
	if r := messages[2].Parts[0].(*model.ToolResult); len(resultText(r)) != 10_000 {
		t.Error("the conversation itself was changed")
	}
}

// TestCut: a server that has read a fraction of what it was sent is found out.
func TestCut(t *testing.T) {
	p := &model.Prefix{System: strings.Repeat("word ", 2000)}
	for read, want := range map[int]bool{0: false, 500: true, 1500: false, 2500: false} {
		if Cut(p, []*model.Message{user("x")}, model.Usage{Known: true, Input: read}) != want {
			t.Errorf("%d tokens of 10 kB: %v", read, !want)
		}
	}
	var m Meter
	m.Resume(2, model.Usage{Known: true, Input: 4000})
	if !m.Shrunk(model.Usage{Known: true, Input: 2000}) || m.Shrunk(model.Usage{Known: true, Input: 3900}) || m.Shrunk(model.Usage{}) {
		t.Error("what has shrunk is not seen")
	}
}

// TestFilled: what proves that a server has left out a part of a request, and does not only count what was not in its cache.
func TestFilled(t *testing.T) {
	for _, tt := range []struct {
		read, before, size int
		want               bool
	}{
		{300, 0, 100_000, false}, {300, 0, 0, false}, {300, 310, 0, false}, {300, 300, 0, false},
		{2048, 0, 0, true}, {4096, 0, 0, true}, {1024, 0, 0, false}, {2000, 0, 0, false},
		{2000, 2010, 0, true}, {2000, 900, 0, false}, {3500, 0, 4096, true}, {3000, 0, 4096, false},
	} {
		if got := Filled(tt.read, tt.before, tt.size); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// TestDense: a text in Chinese has more tokens than one in English of as many bytes, before anything was learned.
func TestDense(t *testing.T) {
	var m Meter
	english, chinese := strings.Repeat("abc", 1000), strings.Repeat("中", 1000)
	if e, c := m.Of(user(english)), m.Of(user(chinese)); e > 900 || c < 1200 || c > 1700 {
		t.Errorf("%d and %d tokens", e, c)
	}
}
