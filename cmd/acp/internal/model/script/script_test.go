package script

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/modeltest"
	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const example = `
# Looks at a file, then changes it.
think I look first.
say Let me look.\nOne moment.
use read {"path":"a.go"}
use search {"pattern":"x"}
---
when package a
say <<END
Now I change it:
	tab \n stays

END
use edit <<JSON
{"path":"a.go",
 "edits":[]}
JSON
usage input=5 read=10 write=1 output=3 reasoning=2
---
use broken {"path": a}
---
say cut
stop max_tokens
---
fail overloaded too busy
---
say at last
---
always
when again
say and again
`

// play has a conversation with a model: what the user says, one message after the other.
// Transcripts of the answers are returned.
func play(t *testing.T, m *Model, says ...string) string {
	t.Helper()
	var messages []*model.Message
	var b strings.Builder
	for _, say := range says {
		messages = append(messages, &model.Message{Role: model.User, Parts: []model.Part{&model.Text{Text: say}}})
		r := &model.Request{Prefix: &model.Prefix{System: "S"}, Messages: messages, CacheKey: "k"}
		b.WriteString("> " + say + "\n")
		b.WriteString(modeltest.Transcript(func(yield func(model.Event, error) bool) {
			for e, err := range m.Generate(t.Context(), r) {
				if d, ok := e.(*model.Done); ok {
					messages = append(messages, d.Message)
				}
				if !yield(e, err) {
					return
				}
			}
		}))
	}
	return b.String()
}

func parse(t *testing.T, text string) *Model {
	t.Helper()
	m, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestScript(t *testing.T) {
	got := play(t, parse(t, example), "hi", "package a", "done", "more", "more?", "more?", "again", "again", "no")
	want := `> hi
began line-1 script
thought "I look first."
text "Let me look.\nOne moment."
tool call_1_1 read ...
input call_1_1 "{\"path\":\"a.go\"}"
tool call_1_1 read {"path":"a.go"}
tool call_1_2 search ...
input call_1_2 "{\"pattern\":\"x\"}"
tool call_1_2 search {"pattern":"x"}
done tool_use "" input=0 read=0 write=2 output=21 reasoning=4
  thought "I look first."
  text "Let me look.\nOne moment."
  tool call_1_1 read {"path":"a.go"}
  tool call_1_2 search {"pattern":"x"}
> package a
began line-8 script
text "Now I change it:\n\ttab \\n stays\n"
tool call_3_1 edit ...
input call_3_1 "{\"path\":\"a.go\",\n \"edits\":[]}"
tool call_3_1 edit {"path":"a.go",
 "edits":[]}
done tool_use "" input=5 read=10 write=1 output=3 reasoning=2
  text "Now I change it:\n\ttab \\n stays\n"
  tool call_3_1 edit {"path":"a.go",
 "edits":[]}
> done
began line-20 script
tool call_5_1 broken ...
input call_5_1 "{\"path\": a}"
tool call_5_1 broken "{\"path\": a}" malformed
done tool_use "" input=0 read=26 write=17 output=6 reasoning=0
  tool call_5_1 broken "{\"path\": a}" malformed
> more
began line-22 script
text "cut"
done max_tokens "" input=0 read=43 write=7 output=1 reasoning=0
  text "cut"
> more?
began line-25 script
error script: too busy (overloaded)
> more?
began line-27 script
text "at last"
done end_turn "" input=0 read=50 write=5 output=2 reasoning=0
  text "at last"
> again
began line-29 script
text "and again"
done end_turn "" input=0 read=55 write=4 output=3 reasoning=0
  text "and again"
> again
began line-29 script
text "and again"
done end_turn "" input=0 read=59 write=5 output=3 reasoning=0
  text "and again"
> no
error script: the script has no answer to this: "no" (request)
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestResumed: a model that has not seen the beginning of a conversation answers like the
// one that has.
func TestResumed(t *testing.T) {
	messages := []*model.Message{
		{Role: model.User, Parts: []model.Part{&model.Text{Text: "hi"}}},
		{Role: model.Assistant},
		{Role: model.User, Parts: []model.Part{&model.ToolResult{ID: "x", Parts: []model.Part{&model.Text{Text: "package a"}}}}},
		{Role: model.Assistant},
		{Role: model.User},
	}
	r := &model.Request{Prefix: &model.Prefix{}, Messages: messages}
	if got := modeltest.Transcript(parse(t, example).Generate(t.Context(), r)); !strings.Contains(got, "began line-20 ") {
		t.Errorf("another answer than the third:\n%s", got)
	}
}

// TestRetried: an answer that failed is followed by the next one when the same request
// comes again.
func TestRetried(t *testing.T) {
	m := parse(t, "fail rate slow down\n---\nfail network gone\n---\nsay ok")
	r := &model.Request{Prefix: &model.Prefix{}, Messages: []*model.Message{{Role: model.User}}}
	got := ""
	for range 4 {
		got += modeltest.Transcript(m.Generate(t.Context(), r))
	}
	want := "began line-1 script\nerror script: slow down (rate)\nbegan line-3 script\nerror script: gone (network)\n" +
		strings.Repeat("began line-5 script\ntext \"ok\"\ndone end_turn \"\" input=0 read=0 write=0 output=1 reasoning=0\n  text \"ok\"\n", 2)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := parse(t, "wait 1s\npace 100ms\nsay one two  three")
		r := &model.Request{Prefix: &model.Prefix{}, Messages: []*model.Message{{Role: model.User}}}
		start := time.Now()
		var words []string
		for e, err := range m.Generate(t.Context(), r) {
			if err != nil {
				t.Fatal(err)
			}
			if d, ok := e.(*model.TextDelta); ok {
				words = append(words, d.Text)
			}
		}
		if diff := cmp.Diff([]string{"one", " two", " ", " three"}, words); diff != "" {
			t.Error(diff)
		}
		if got, want := time.Since(start), 1400*time.Millisecond; got != want {
			t.Errorf("took %v, want %v", got, want)
		}
	})
}

func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := parse(t, "say one\nwait 1h\nsay two")
		r := &model.Request{Prefix: &model.Prefix{}, Messages: []*model.Message{{Role: model.User}}}
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		var end error
		for _, err := range m.Generate(ctx, r) {
			end = err
		}
		if !errors.Is(end, why) {
			t.Errorf("ended with %v, want %v", end, why)
		}
		for range m.Generate(t.Context(), r) {
			break // leaving ends it
		}
	})
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "0: there is no answer in the script",
		"# nothing\n---\n":       "2: there is no answer in the script",
		"say a\nshout b":         `2: "shout" is not a word of scripts`,
		"use":                    "1: use wants the name of a tool",
		"say <<END\na":           `1: the line "END" that ends the text is missing`,
		"wait long":              `1: wait wants a time such as 200ms, not "long"`,
		"wait -1s":               `1: wait wants a time such as 200ms, not "-1s"`,
		"fail odd x":             "1: fail wants one of [auth quota rate overloaded overflow request refused network stalled answer]",
		"stop now":               `1: stop wants max_tokens, refused, paused or end_turn, not "now"`,
		"usage input":            `1: usage wants numbers such as input=100, not "input"`,
		"usage cost=1":           `1: usage knows input, read, write, output and reasoning, not "cost"`,
		"price USD cost=1":       `1: price wants numbers such as input=3, read=0.3, write=3.75 and output=15, not "cost=1"`,
		"price USD input=x":      `1: price wants numbers such as input=3, read=0.3, write=3.75 and output=15, not "input=x"`,
		"when":                   "1: when wants a text",
		"say a\n---\n\nuse  \nx": "4: use wants the name of a tool",
	} {
		if _, err := Parse(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestPrice(t *testing.T) {
	m := parse(t, "price EUR input=3 read=0.3 write=3.75 output=15\nsay hi")
	if got, want := m.Info().Price, (model.Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75, Currency: "EUR"}); got != want {
		t.Errorf("%+v", got)
	}
}

func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.script")
	if err := os.WriteFile(file, []byte("say ok\nshout"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(file); err == nil || err.Error() != file+`:2: "shout" is not a word of scripts` {
		t.Error(err)
	}
	if _, err := Read(file + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := os.Truncate(file, MaxBytes+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(file); err == nil || !strings.Contains(err.Error(), "at most 16 MiB") {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(example)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(strings.ReplaceAll(strings.ReplaceAll(text, "wait", "x"), "pace", "x"))
		if err != nil {
			return
		}
		modeltest.Once(t, m.Generate(t.Context(), &model.Request{Prefix: &model.Prefix{}, Messages: []*model.Message{{Role: model.User}}}))
	})
}
