package registry_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/internal/wire"
)

// reading is what decoding a message as part of a frame gives.
type reading struct {
	Value    any
	Syntax   string
	Field    string
	Replaced int
	End      int
}

// read decodes one message the way package jsonrpc does.
func read(text []byte, forms *wire.Forms, decode func(*wire.Decoder) any) reading {
	var d wire.Decoder
	d.Forms = forms
	d.Reset(text, false)
	r := reading{Value: decode(&d)}
	if err := d.SyntaxErr(); err != nil {
		r.Syntax, r.Value = err.Error(), nil
	} else if fe := d.FieldErr(); fe != nil {
		r.Field = fe.Error()
	}
	r.Replaced, r.End = d.Replaced(), d.Pos()
	return r
}

// checkRecall reads messages one after the other with the memory a connection
// has, and each by itself without: nobody may be able to tell the difference.
func checkRecall(t *testing.T, decode func(*wire.Decoder) any, messages ...[]byte) {
	t.Helper()
	var forms wire.Forms
	var kept []any
	var want []reading
	for i, m := range messages {
		got := read(slices.Clone(m), &forms, decode)
		want = append(want, read(m, nil, decode))
		if !reflect.DeepEqual(want[i], got) {
			t.Fatalf("message %d of %q is read differently: %+v, want %+v", i, messages, got, want[i])
		}
		kept = append(kept, got.Value)
	}
	for i, v := range kept { // what was handed out does not change any more
		if !reflect.DeepEqual(want[i].Value, v) {
			t.Fatalf("message %d of %q has changed: %+v, want %+v", i, messages, v, want[i].Value)
		}
	}
}

func checkRecallBoth(t *testing.T, messages ...[]byte) {
	t.Helper()
	checkRecall(t, wire.MakerOf[acpv1.SessionNotification](), messages...)
	checkRecall(t, wire.MakerOf[acpv2.UpdateSessionNotification](), messages...)
}

var streamed = []string{
	`{"sessionId":"s-1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hello"}}}`,
	`{"sessionId":"s-1","update":{"sessionUpdate":"agent_message_chunk","messageId":"m-1","content":{"type":"text","text":"he said \"no\"\n"}}}`,
	`{"sessionId":"s-2","update":{"sessionUpdate":"agent_thought_chunk","messageId":"m-1","content":{"type":"text","text":"é 😀 \ud83d\ude00"}}}`,
	`{"update":{"content":{"text":"last","type":"text"},"sessionUpdate":"user_message_chunk","messageId":"m"},"sessionId":"s"}`,
	` { "sessionId" : "s\u0031" , "update" : { "messageId" : "m", "sessionUpdate" : "agent_message_chunk" , "content" : { "type" : "text" , "text" : "x" , "_meta":null} } } `,
	`{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"x","annotations":{"text":1}}}}`,
	`{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"x","annotations":{"lastModified":"t"}}}}`,
	`{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","messageId":5,"content":{"type":"text","text":"x"}}}`,
	`{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"x"}},"_meta":{"text":"y"}}`,
	`{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","messageId":"m","text":"x","content":{"type":"text","text":"x"}}}`,
	`{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"x","text":"y"}}}`,
	`{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"x"}},"update":{}}`,
	`{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"image","data":"x","mimeType":"y"}}}`,
	`{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"x","title":"text"}}`,
	`{"sessionId":"s","update":{"sessionUpdate":"later","messageId":"m","content":{"type":"text","text":"x"}}}`,
	"{\"sessionId\":\"s\xff\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"messageId\":\"m\",\"content\":{\"type\":\"text\",\"text\":\"x\"}}}",
	"{\"sessionId\":\"s\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"messageId\":\"m\",\"content\":{\"type\":\"text\",\"text\":\"x\xff\\ud800\"}}}",
	`{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"x"}}}}`,
	`{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk"}}`,
	`null`, `[]`, `{}`, ``,
}

// TestRecall reads streams with pieces of one message in another.
func TestRecall(t *testing.T) {
	var all [][]byte
	for _, s := range streamed {
		all = append(all, []byte(s))
	}
	for _, a := range all {
		for _, b := range all {
			checkRecallBoth(t, a, b, a, b, b)
		}
		for i := range a { // cut off, a byte less, a byte more, another byte
			if !long.All() && i%5 != 0 {
				continue
			}
			checkRecallBoth(t, a, a[:i])
			checkRecallBoth(t, a, slices.Concat(a[:i], a[i+1:]), a)
			for _, c := range []byte("\"\\{},:x1 \x00\xff") {
				checkRecallBoth(t, a, slices.Concat(a[:i], []byte{c}, a[i:]), a)
				checkRecallBoth(t, a, slices.Concat(a[:i], []byte{c}, a[i+1:]))
			}
		}
	}
	r := rand.New(rand.NewPCG(5, 6))
	rounds := 3000
	if !long.All() {
		rounds /= 5
	}
	for range rounds {
		var m [][]byte
		for range 8 {
			a, b := all[r.IntN(len(all))], all[r.IntN(len(all))]
			i, j := r.IntN(len(a)+1), r.IntN(len(b)+1)
			m = append(m, a, slices.Concat(a[:i], b[j:]))
		}
		checkRecallBoth(t, m...)
	}
}

// TestRecallHappens: a stream whose pieces differ in their text is recognised,
// whatever the text, and so are several at once; values share nothing.
func TestRecallHappens(t *testing.T) {
	var forms wire.Forms
	last := map[string]*acpv1.SessionNotification{}
	hits := 0
	for i := range 40 {
		session := fmt.Sprint("session-", i%3)
		text := []string{"plain", `esc\n\u00e9`, "é", "bad \xff", ""}[i%5]
		var d wire.Decoder // without an interner, so that only a form shares ids
		d.Forms = &forms
		d.Reset([]byte(`{"sessionId":"`+session+`","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"`+text+`"}}}`), false)
		n := wire.MakerOf[acpv1.SessionNotification]()(&d).(*acpv1.SessionNotification)
		if err := d.Finish(); err != nil {
			t.Fatal(err)
		}
		if l := last[session]; l != nil {
			if unsafe.StringData(string(l.SessionID)) == unsafe.StringData(string(n.SessionID)) {
				hits++
			}
			if l == n || l.Update == n.Update || l.Update.(*acpv1.AgentMessageChunk).Content == n.Update.(*acpv1.AgentMessageChunk).Content {
				t.Fatal("two messages share a value")
			}
		}
		last[session] = n
	}
	if want := 40 - 3; hits != want { // all but the first of each session
		t.Errorf("%d of 40 were recognised, want %d", hits, want)
	}
}

// FuzzRecall is TestRecall with a piece of the second message put into the
// first.
func FuzzRecall(f *testing.F) {
	for i, s := range streamed {
		f.Add([]byte(s), 20, 3, []byte(streamed[(i+1)%len(streamed)]))
		f.Add([]byte(s), len(s)-10, 0, []byte(`x`))
	}
	f.Fuzz(func(t *testing.T, a []byte, at, drop int, piece []byte) {
		at = max(0, min(at, len(a)))
		end := at + max(0, min(drop, len(a)-at))
		b := slices.Concat(a[:at], piece, a[end:])
		checkRecallBoth(t, a, b, a, b, piece, a)
	})
}
