package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/record/file"
)

// compared returns whether pairs of frames are alike, one pair after the other.
func compared(t *testing.T, pairs [][2]string, spells bool) (all []bool) {
	t.Helper()
	var plain [2]normaliser
	for _, p := range pairs {
		var got [2]*plainFrame
		for i := range p {
			e := plain[i].read.Read([]byte(p[i]))
			got[i] = &plainFrame{data: []byte(p[i]), known: spells && (e.Method != "" || e.Answer()), kind: "request"}
			if e.Answer() {
				got[i].kind = "answer"
			}
		}
		same, err := alike(&plain, &got, [2]*file.File{{}, {}})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, same)
	}
	return all
}

// TestSpell: whether frames are the same does not depend on how they are written, nor on whether they had to be decoded to find
// out; what they have in common is numbered in the same way in both.
func TestSpell(t *testing.T) {
	const update = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%s","update":{"sessionUpdate":"agent_message_chunk","messageId":"%s","at":1,"createdAt":"%s","content":{"type":"text","text":"%s"}}}}`
	for _, x := range []struct {
		name  string
		pairs [][2]string
		want  string
	}{
		{"ids and times", [][2]string{
			{fmt.Sprintf(update, "a", "m", "2026-01-01T00", "x"), fmt.Sprintf(update, "b", "n", "2027-01-01T00", "x")},
			{fmt.Sprintf(update, "a", "m", "2026-01-01T00", "y"), fmt.Sprintf(update, "b", "n", "2027-01-01T00", "y")},
			{fmt.Sprintf(update, "a", "m", "2026-01-01T00", "y"), fmt.Sprintf(update, "b", "o", "2027-01-01T00", "y")},
		}, "true true false"},
		{"another order", [][2]string{
			{`{"method":"m","params":{"sessionId":"a","messageId":"b"}}`, `{"params":{"messageId":"y","sessionId":"x"},"method":"m"}`},
			{`{"method":"m","params":{"sessionId":"a"}}`, `{"method":"m","params":{"sessionId":"x"}}`},
			{`{"method":"m","params":{"sessionId":"c","messageId":"b"}}`, `{"method":"m","params":{"messageId":"y","sessionId":"z"}}`},
			{`{"method":"m","params":{"sessionId":"a","messageId":"b"}}`, `{"method":"m","params":{"messageId":"b","sessionId":"x"}}`},
		}, "true true true false"},
		{"escapes and white space", [][2]string{
			{`{"method":"m","params":{"text":"A\u0041","toolCallId":"c\u0031"}}`, ` { "method" : "m" , "params" : { "text" : "AA" , "toolCallId" : "x" } } `},
			{`{"method":"m","params":{"toolCallId":"c1"}}`, `{"method":"m","params":{"toolCallId":"x"}}`},
			{`{"method":"m","params":{"\u0074ext":"A"}}`, `{"method":"m","params":{"text":"A"}}`},
			{`{"method":"m","params":{"text":"\\"}}`, `{"method":"m","params":{"text":"\\"}}`},
			{`{"method":"m","params":{"text":"\""}}`, `{"method":"m","params":{"text":"\"}"}}`},
		}, "true true true true false"},
		{"requests and answers", [][2]string{
			{`{"id":1,"method":"m"}`, `{"id":"q","method":"m"}`},
			{`{"id":1,"result":{}}`, `{"id":"q","result":{}}`},
			{`{"id":null,"method":"m"}`, `{"id":2,"method":"m"}`},
			{`{"id":1,"method":"m","params":{"id":1}}`, `{"id":"q","method":"m","params":{"id":2}}`},
		}, "true true false false"},
		{"lists", [][2]string{
			{`{"method":"m","params":{"messageId":["a","b",{"id":1}],"n":[]}}`, `{"method":"m","params":{"messageId":["c","d",{"id":1}],"n":[]}}`},
			{`{"method":"m","params":{"messageId":["a","a"]}}`, `{"method":"m","params":{"messageId":["c","d"]}}`},
			{`{"method":"m","params":[{},[[1.0,true,null]]]}`, `{"method":"m","params":[{},[[1.0,true,null]]]}`},
			{`{"method":"m","params":[1]}`, `{"method":"m","params":[1.0]}`},
		}, "true false true false"},
	} {
		for _, spells := range []bool{true, false} {
			if got := strings.Trim(fmt.Sprint(compared(t, x.pairs, spells)), "[]"); got != x.want {
				t.Errorf("%s, spelled %t: %s, want %s", x.name, spells, got, x.want)
			}
		}
	}
}

// TestSpellRandom: frames are alike or not, whether they are spelled or decoded.
func TestSpellRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	keys := append([]string{"text", "createdAt", "at", "id", "n"}, idKeys[:4]...)
	var value func(deep int, ids string) any
	value = func(deep int, ids string) any {
		switch n := r.IntN(6); {
		case n == 0 && deep > 0:
			m := map[string]any{}
			for range r.IntN(5) {
				m[keys[r.IntN(len(keys))]] = value(deep-1, ids)
			}
			return m
		case n == 1 && deep > 0:
			return []any{value(deep-1, ids), value(deep-1, ids)}
		case n == 2:
			return r.IntN(3)
		case n == 3:
			return "2026-11-30T04:00:0" + fmt.Sprint(r.IntN(9))
		}
		return ids + fmt.Sprint(r.IntN(4))
	}
	for range 300 {
		var pairs [][2]string
		for range 6 {
			v, _ := json.Marshal(map[string]any{"method": "m", "id": r.IntN(3), "params": value(3, "a")})
			other := string(bytes.ReplaceAll(v, []byte(`"a`), []byte(`"b`))) // as another run has it
			if r.IntN(4) == 0 {
				other = strings.Replace(other, "1", "2", 1)
			}
			pairs = append(pairs, [2]string{string(v), other})
		}
		if a, b := fmt.Sprint(compared(t, pairs, true)), fmt.Sprint(compared(t, pairs, false)); a != b {
			t.Fatalf("spelled %s, decoded %s: %q", a, b, pairs)
		}
	}
}

// TestSpellCost: to compare frames that programs have written in the same way makes no copies of them.
func TestSpellCost(t *testing.T) {
	frame := []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"` + strings.Repeat("x", 200) + `"}}}}`)
	var plain [2]normaliser
	a, b := &plainFrame{data: frame, known: true}, &plainFrame{data: bytes.Clone(frame), known: true}
	if n := testing.AllocsPerRun(100, func() {
		if same, err := alike(&plain, &[2]*plainFrame{a, b}, [2]*file.File{}); !same || err != nil {
			t.Error(same, err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
