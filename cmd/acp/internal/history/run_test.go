package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp/acpv2"
)

// updates makes updates of lines: those of conversation are whole, ">" before the kind is a piece. Pieces of
// one kind in a row are of one message, unless a "|" stands between them.
func updates(prefix string, lines []string) (list []acpv2.SessionUpdate) {
	n, last := 0, ""
	for _, l := range lines {
		kind, text, _ := strings.Cut(l, " ")
		if kind != last || !strings.HasPrefix(kind, ">") {
			n++
		}
		last = kind
		id := acpv2.MessageID(fmt.Sprint(prefix, n))
		block := &acpv2.TextContent{Text: text}
		switch kind {
		case "|":
		case ">u":
			list = append(list, &acpv2.UserMessageChunk{MessageID: id, Content: block})
		case ">a":
			list = append(list, &acpv2.AgentMessageChunk{MessageID: id, Content: block})
		case ">t":
			list = append(list, &acpv2.AgentThoughtChunk{MessageID: id, Content: block})
		default:
			one := conversation(string(id), l).Snapshot()
			for e := range one.Entries() {
				list = append(list, e.Update())
			}
		}
	}
	return list
}

// TestRun: each update of a turn is held, told or live as it comes, without a look at what follows.
func TestRun(t *testing.T) {
	const kept = "u one|t hm|c read|a re: one|u two|a re: two|u one|a other"
	for _, tt := range []struct {
		name             string
		kept, told, asks string // asks is the prompt
		turn, want       string // a letter for each update: H, T, L
	}{
		{"all of it, then the answer", kept, "", "new", "u one,c read,a re: one,u two,a re: two,u one,a other,a live,a more", "THHTHTHLL"},
		{"an answer as of before", kept, "", "new", "u one,a re: one", "TH"},
		{"an answer as of before, and more", kept, "", "new", "u one,a re: one,c run", "THL"},
		{"no history", kept, "", "new", "t hm,a re: one,u one", "LLT"},
		{"no history, and an answer as of before", kept, kept, "one", "a other,a re: one", "LL"},
		{"cut off by the prompt", kept, "u one|c read", "new", "a re: one,u two,a re: two,a live", "HTHL"},
		{"cut off in a message", kept, "u one|a re:", "new", "a one,u two", "HT"},
		{"in pieces", kept, "", "new", ">u o,>u ne,>a re,>a : o,>a ne,>u two", "HTHHHT"},
		{"a piece that goes on otherwise", kept, "", "new", ">u one,>a re: ,>a live,>a on,>u two", "THLLL"},
		{"a piece that goes beyond", kept, "", "new", ">u one,>a re: one,>a re: one", "THL"},
		{"the same piece again", kept, "", "new", ">u one,>a re: one,|,>a re: one", "THL"},
		{"pieces put together", "u go|a one|c read|a two|u x", "", "new", "u go,a one two,u x", "THT"},
		{"pieces taken apart", "u go|a one two|u x", "", "new", "u go,a one,c no", "THL"},
		{"pieces taken apart, all", "u go|a one two|u x", "", "new", "u go,a one,a two,u x", "THHT"},
		{"leaves out an answer", kept, "", "new", "u one,u two,a live", "TTL"},
		{"leaves out a turn", kept, "", "new", "u two,u one,a other", "TTH"},
		{"begins alike", kept, "", "new", "u one,a other,u two", "THT"},
		{"words of nobody", kept, "", "new", "u three,a re: one,u one", "LLT"},
		{"words of nobody in the middle", kept, "", "new", "u one,a re: one,u three,u two", "THLL"},
		{"live in the middle", kept, "", "new", "u one,a live,u two,a re: two", "TLLL"},
		{"an echo of the prompt", kept, "", "two", "u two,a live", "HL"},
		{"the prompt, said before", kept, "", "two", "u one,u two,a re: two,u one,a other", "THHTH"},
		{"an echo in pieces", kept, "", "one more", ">u one,>u more,a re: one", "HLL"},
		{"wrapped", kept, "", "new", "u <user-query>one</user-query>,a re: one,u <sys-x>y</sys-x>two", "THT"},
		{"twice", kept, kept, "new", "u one,a re: one,u two", "THT"},
		{"two of the user in one message", "u one|u two|a x", "", "new", ">u one,>u two,>a x", "TTH"},
		{"half a message of the user", "u one two|a x", "", "new", "u one,a x", "HL"},
		{"another plan", "u one|p step|a x|u two", "", "new", "u one,p step,a x,u two", "THHT"},
		{"an open call", kept, "", "new", "u one,o read,a live", "THL"},
		{"nothing was kept", "", "", "new", "u one,a re: one", "LL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lines := func(s, sep string) []string {
				return strings.FieldsFunc(s, func(r rune) bool { return string(r) == sep })
			}
			r := NewRun(conversation("k", lines(tt.kept, "|")...).Snapshot(), conversation("b", lines(tt.told, "|")...).Snapshot())
			var got strings.Builder
			for _, u := range updates("t", lines(tt.turn, ",")) {
				got.WriteByte("LHT"[r.Take(u, []string{tt.asks})])
			}
			if got.String() != tt.want {
				t.Errorf("%s, want %s", &got, tt.want)
			}
		})
	}
}

// TestRunReleased: what was held for too long is live, and the history goes on with the user's words.
func TestRunReleased(t *testing.T) {
	r := NewRun(conversation("k", "u one", "a re: one", "u two", "a re: two", "u three").Snapshot(), conversation("b").Snapshot())
	var got []Verdict
	for i, u := range updates("t", []string{"u one", "a re: one", "a re: one", "u two", "a re: two", "u three"}) {
		if i == 2 {
			r.Release()
		}
		got = append(got, r.Take(u, nil))
	}
	if want := []Verdict{Told, Held, Live, Told, Held, Told}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
