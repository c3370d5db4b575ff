package history

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/transcript"
)

// conversation makes a conversation of lines: "u text" is the user's, "a text" the agent's, "t text" a
// thought, "c title" a tool call that has ended, "o title" one that has not, "p step" a plan and "w" a
// command. Messages and calls have ids that are numbered with a prefix.
func conversation(prefix string, lines ...string) *transcript.Conversation {
	c := transcript.New(transcript.Config{})
	for i, l := range lines {
		kind, text, _ := strings.Cut(l, " ")
		id := fmt.Sprintf("%s%d", prefix, i)
		block := acpv2.Set([]acpv2.ContentBlock{&acpv2.TextContent{Text: text}})
		switch kind {
		case "u":
			c.Apply(&acpv2.UserMessage{MessageID: acpv2.MessageID(id), Content: block})
		case "a":
			c.Apply(&acpv2.AgentMessage{MessageID: acpv2.MessageID(id), Content: block})
		case "t":
			c.Apply(&acpv2.AgentThought{MessageID: acpv2.MessageID(id), Content: block})
		case "c", "o":
			status := acpv2.ToolCallStatusCompleted
			if kind == "o" {
				status = acpv2.ToolCallStatusInProgress
			}
			c.Apply(&acpv2.ToolCallUpdate{ToolCallID: acpv2.ToolCallID(id), Title: acpv2.Set(text), Status: acpv2.Set(status)})
		case "p":
			c.Apply(&acpv2.PlanUpdate{Plan: &acpv2.PlanItems{PlanID: acpv2.PlanID(id), Entries: []acpv2.PlanEntry{{Content: text}}}})
		case "w":
			c.Apply(&acpv2.TerminalUpdate{TerminalID: acpv2.TerminalID(id), Command: acpv2.Set(text)})
		}
	}
	return c
}

// said is the other way.
func said(news []Piece) (lines []string) {
	for _, p := range news {
		one := transcript.New(transcript.Config{})
		one.Apply(p.Update(true))
		for e := range one.Snapshot().Entries() {
			switch e := e.(type) {
			case *transcript.Message:
				lines = append(lines, string(e.Role[:1])+" "+e.Text())
			case *transcript.ToolCall:
				lines = append(lines, "c "+e.Title)
			case *transcript.Plan:
				lines = append(lines, "p "+e.Content.(*acpv2.PlanItems).Entries[0].Content)
			case *transcript.Terminal:
				lines = append(lines, "w "+e.Command)
			}
		}
	}
	return lines
}

func TestNews(t *testing.T) {
	const long = "a question that is long enough to be told from others"
	for _, tt := range []struct {
		name       string
		kept, told string // lines, separated by |
		want       string
	}{
		{"equal", "u one|a re: one|c read|a done", "u one|a re: one|c read|a done", ""},
		{"nothing", "u one|a re: one", "", ""},
		{"empty", "", "u one|a re: one", "u one|a re: one"},
		{"white space", "u one  two|a re:\n one", "u one two|a re: one\n", ""},
		{"part", "u one|a re: one|u two|a re: two", "u two|a re: two", ""},
		{"the beginning", "u one|a re: one|u two|a re: two", "u one|a re: one", ""},
		{"elsewhere", "u one|a re: one", "u one|a re: one|u two|a re: two", "u two|a re: two"},
		{"said again", "u yes|a ok", "u yes|a ok|u yes|a ok", "u yes|a ok"},
		{"interrupted", "u go|a slow 1 slow 2|u next|a ok", "u go|u next|a ok", ""},
		{"not interrupted", "u go|a slow 1 slow 2|u next|a ok", "u go|a slow 1 slow 2 slow 3|u next|a ok", "a slow 3"},
		{"told in part", "u go|a slow 1 slow 2|u next|a ok", "u go|a slow 1|u next|a ok", ""},
		{"told in parts", "u go|a one two three", "u go|a one|t hm|a two|a three", "t hm"},
		{"put together", "u go|a one|c read|a two", "u go|c read|a one two", ""},
		{"wrapped", "u remember: my word", "u remember: my word<system-reminder> Today's date is 1. </system-reminder>", ""},
		{"wrapped in two", "u my word", "u <user_query>my word</user_query>\n<env-info a=\"b\">x</env-info>", ""},
		{"all wrapped", "u my word", "u <user_query>my word</user_query>", ""},
		{"with context", "u " + long, "u Here is a file.\n" + long + "\nThat is all.", ""},
		{"too short for that", "u hi", "u something with hi in it", "u something with hi in it"},
		{"the end of an answer", "u go|a Info: wrote c6.txtTool finished.|u next|a ok", "u go|a Tool finished.|u next|a ok", ""},
		{"not of that turn", "u go|a Info: Tool finished.|u next|a ok", "u go|u next|a Tool finished.|a ok", "a Tool finished."},
		{"too short for an end", "u go|a it is ok", "u go|a ok", "a ok"},
		{"other words", "u one|a re: one", "u You said one.|a I said it.", "u You said one.|a I said it."},
		{"no thoughts", "u one|t hm|a re: one", "u one|a re: one", ""},
		{"a call that went on", "u one|o read", "u one|c read", "c read"},
		{"a call that was not told to end", "u one|c read", "u one|o read", ""},
		{"a plan", "u one|p step", "u one|p step|p other", "p other"},
		{"a command", "u one|w ls", "u one|w ls|w cat", "w cat"},
		{"blank", "u one", "u one|a  |t ", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lines := func(s string) []string { return strings.FieldsFunc(s, func(r rune) bool { return r == '|' }) }
			kept, told := conversation("k", lines(tt.kept)...), conversation("t", lines(tt.told)...)
			got := News(kept.Snapshot(), told.Snapshot())
			if diff := cmp.Diff(lines(tt.want), said(got), cmp.Transformer("join", func(l []string) string { return strings.Join(l, "|") })); diff != "" {
				t.Errorf("news (-want +got):\n%s", diff)
			}
			addAll(kept, got)
			if again := said(News(kept.Snapshot(), told.Snapshot())); len(again) > 0 {
				t.Errorf("news again: %q", again)
			}
		})
	}
}

// addAll adds news as the host does: under ids of their own.
func addAll(c *transcript.Conversation, news []Piece) {
	for _, p := range news {
		u := p.Update(true)
		id := fmt.Sprintf("new%d", c.Snapshot().Len())
		switch u := u.(type) {
		case *acpv2.UserMessage:
			u.MessageID = acpv2.MessageID(id)
		case *acpv2.AgentMessage:
			u.MessageID = acpv2.MessageID(id)
		case *acpv2.AgentThought:
			u.MessageID = acpv2.MessageID(id)
		case *acpv2.ToolCallUpdate:
			u.ToolCallID = acpv2.ToolCallID(id)
		case *acpv2.TerminalUpdate:
			u.TerminalID = acpv2.TerminalID(id)
		case *acpv2.PlanUpdate:
			u.Plan.(*acpv2.PlanItems).PlanID = acpv2.PlanID(id)
		}
		c.Apply(u)
	}
}

// TestIDs: ids that are unique say that it is the same, whatever it says; others do not.
func TestIDs(t *testing.T) {
	call := func(id, title string) acpv2.SessionUpdate {
		return &acpv2.ToolCallUpdate{ToolCallID: acpv2.ToolCallID(id), Title: acpv2.Set(title), Kind: acpv2.Set(acpv2.ToolKindRead)}
	}
	say := func(id, text string) acpv2.SessionUpdate {
		return &acpv2.AgentMessage{MessageID: acpv2.MessageID(id), Content: acpv2.Set([]acpv2.ContentBlock{&acpv2.TextContent{Text: text}})}
	}
	const unique = "0a1b2c3d-0000-4000-8000-000000000000"
	for name, tt := range map[string]struct {
		kept, told acpv2.SessionUpdate
		news       int
	}{
		"a call, numbered":    {call("1", "Read a"), call("1", "List b"), 1},
		"a call, unique":      {call(unique, "Read a"), call(unique, "List b"), 0},
		"a call, its title":   {call("1", "Read"), call("1", "Read a"), 0},
		"a message, numbered": {say("1", "one"), say("1", "two"), 1},
		"a message, unique":   {say(unique, "one"), say(unique, "two"), 0},
		"made up":             {say("v1-1", "one"), say("v1-1", "two"), 1},
	} {
		kept, told := transcript.New(transcript.Config{}), transcript.New(transcript.Config{})
		kept.Apply(tt.kept)
		told.Apply(tt.told)
		if got := News(kept.Snapshot(), told.Snapshot()); len(got) != tt.news {
			t.Errorf("%s: %d news, want %d", name, len(got), tt.news)
		}
	}
}

// TestNewsIsOnce tells random histories of random conversations, again and again.
func TestNewsIsOnce(t *testing.T) {
	words := []string{"one", "two", "one two", "three four five six seven eight nine", "three four five six seven eight nine ten", "<x-y>a</x-y> one"}
	kinds := []string{"u", "a", "t", "c", "o", "p", "w"}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		some := func() (lines []string) {
			for range r.IntN(12) {
				lines = append(lines, kinds[r.IntN(len(kinds))]+" "+words[r.IntN(len(words))])
			}
			return lines
		}
		kept := conversation("k", some()...)
		for range 4 {
			told := conversation("t", some()...).Snapshot()
			addAll(kept, News(kept.Snapshot(), told))
			if again := said(News(kept.Snapshot(), told)); len(again) > 0 {
				t.Fatalf("seed %d: news again: %q", seed, again)
			}
		}
	}
}

func TestUnwrap(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                                  "plain",
		"a <b>bold</b> word":                     "a <b>bold</b> word",
		"x<system-reminder>y":                    "x<system-reminder>y",
		"x<system-reminder>y</system-reminder>z": "xz",
		"<user_query>y</user_query>":             "y",
		"<a-b>1</a-b><c-d>2</c-d>":               "1",
	} {
		if got := unwrap(in); got != want {
			t.Errorf("unwrap(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestAfter(t *testing.T) {
	for _, tt := range []struct {
		text, prefix, rest string
		ok                 bool
	}{
		{"one two", "one", " two", true},
		{"one two", "o ne\tt", "wo", true},
		{"one", "one two", "", false},
		{"äöü", "ä", "öü", true},
		{"äöü", "ö", "", false},
		{"\xff\xfe", "\xff", "\xfe", true},
		{"\xff", "\xfe", "", false},
		{"", "", "", true},
	} {
		if rest, ok := after(tt.text, tt.prefix); rest != tt.rest || ok != tt.ok {
			t.Errorf("after(%q, %q) = %q, %v", tt.text, tt.prefix, rest, ok)
		}
	}
}

// BenchmarkNews compares long conversations of which much is different.
func BenchmarkNews(b *testing.B) {
	var kept, told []string
	for i := range 20_000 {
		kept = append(kept, fmt.Sprintf("a %d is what was said here", i))
		if i%2 == 0 {
			told = append(told, fmt.Sprintf("a %d is what was said there", i))
		} else {
			told = append(told, kept[i])
		}
	}
	k, t := conversation("k", kept...).Snapshot(), conversation("t", told...).Snapshot()
	for b.Loop() {
		News(k, t)
	}
}
