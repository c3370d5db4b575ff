package trace

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/record/summary"
	"github.com/goacp/acp/trace"
)

// TestOddFrames: show, the page and stats make the same of frames, however odd these are.
func TestOddFrames(t *testing.T) {
	type seen struct{ Type, Method, ID, Session, Update string }
	long := strings.Repeat("x", 5000)
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	update := func(params string) string { return `{"method":"session/update","params":` + params + `}` }
	for _, c := range []struct {
		name, frame string
		want        seen
	}{
		{"request", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"sessionId":"s"}}`, seen{"request", "m", "1", "s", ""}},
		{"white space", " \t\r\n{ \"id\" : 1 , \"method\" : \"m\" , \"params\" : { \"sessionId\" : \"s\" } } \n", seen{"request", "m", "1", "s", ""}},
		{"another order", `{"params":{"x":{},"sessionId":"s"},"method":"m","id":1}`, seen{"request", "m", "1", "s", ""}},
		{"notification", `{"method":"m"}`, seen{"notification", "m", "", "", ""}},
		{"result", `{"id":1,"result":null}`, seen{"answer", "", "1", "", ""}},
		{"error", `{"id":1,"error":{"code":1}}`, seen{"error", "", "1", "", ""}},
		{"both", `{"id":1,"result":{},"error":{}}`, seen{"error", "", "1", "", ""}},
		{"a request with a result", `{"id":1,"method":"m","result":{}}`, seen{"request", "m", "1", "", ""}},
		{"an answer to nothing", `{"result":{}}`, seen{Type: "odd"}},
		{"an id alone", `{"id":1}`, seen{Type: "odd"}},

		{"null id", `{"id":null,"method":"m"}`, seen{"request", "m", "null", "", ""}},
		{"string id", `{"id":"\u0031\"","method":"m"}`, seen{"request", "m", `"\u0031\""`, "", ""}},
		{"no integer", `{"id":-1.50e3,"method":"m"}`, seen{"request", "m", "-1.50e3", "", ""}},
		{"object id", `{"id": {"a" : [1]},"method":"m"}`, seen{"request", "m", `{"a" : [1]}`, "", ""}},
		{"boolean id", `{"id":true,"result":1}`, seen{"answer", "", "true", "", ""}},
		{"long id", `{"id":"` + long + `","method":"m"}`, seen{"request", "m", `"` + long[:1023] + "…", "", ""}},

		{"no method", `{"id":1,"method":""}`, seen{Type: "odd"}},
		{"an answer with an empty method", `{"id":1,"method":"","result":{}}`, seen{"answer", "", "1", "", ""}},
		{"a method that is no text", `{"id":1,"method":{"a":1},"result":{}}`, seen{"answer", "", "1", "", ""}},
		{"escapes", `{"id":1,"method":"a\/\u0062\ud83d\ude00"}`, seen{"request", "a/b😀", "1", "", ""}},
		{"half an escape", `{"id":1,"method":"a\ud83d"}`, seen{"request", "a\ufffd", "1", "", ""}},
		{"no UTF-8", "{\"id\":1,\"method\":\"a\xff\"}", seen{"request", "a\ufffd", "1", "", ""}},
		{"escaped names", `{"\u0069d":1,"meth\u006fd":"m","par\u0061ms":{"s\u0065ssionId":"s"}}`, seen{"request", "m", "1", "s", ""}},
		{"another case", `{"ID":1,"Method":"m"}`, seen{Type: "odd"}},

		{"twice", `{"id":1,"id":2,"method":"a","method":"b","params":{"sessionId":"s"},"params":{"sessionId":"t"}}`, seen{"request", "b", "2", "t", ""}},
		{"once no text", `{"id":1,"method":"a","method":3}`, seen{"request", "a", "1", "", ""}},
		{"parameters that are replaced", `{"method":"a","params":{"sessionId":"s"},"params":[]}`, seen{"notification", "a", "", "", ""}},

		{"parameters in a list", `{"id":1,"method":"m","params":["sessionId","s"]}`, seen{"request", "m", "1", "", ""}},
		{"parameters null", `{"id":1,"method":"m","params":null}`, seen{"request", "m", "1", "", ""}},
		{"a session that is no text", `{"id":1,"method":"m","params":{"sessionId":7}}`, seen{"request", "m", "1", "", ""}},
		{"a session that is deeper", `{"id":1,"method":"m","params":{"x":{"sessionId":"s"}}}`, seen{"request", "m", "1", "", ""}},
		{"escapes in a session", `{"id":1,"method":"m","params":{"sessionId":"\u0073\n"}}`, seen{"request", "m", "1", "s\n", ""}},

		{"update", update(`{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[]}}`), seen{"notification", "session/update", "", "s", "plan"}},
		{"its kind behind", update(`{"update":{"x":{"sessionUpdate":"y"},"sessionUpdate":"plan"},"sessionId":"s"}`), seen{"notification", "session/update", "", "s", "plan"}},
		{"escapes in an update", update(`{"sessionId":"s","upd\u0061te":{"session\u0055pdate":"pl\u0061n"}}`), seen{"notification", "session/update", "", "s", "plan"}},
		{"kind twice", update(`{"sessionId":"s","update":{"sessionUpdate":"a","sessionUpdate":"b"}}`), seen{"notification", "session/update", "", "s", "a"}},
		{"no kind", update(`{"sessionId":"s","update":{}}`), seen{"notification", "session/update", "", "s", ""}},
		{"a kind that is no text", update(`{"sessionId":"s","update":{"sessionUpdate":1}}`), seen{"notification", "session/update", "", "s", ""}},
		{"an update in a list", update(`{"sessionId":"s","update":[{"sessionUpdate":"a"}]}`), seen{"notification", "session/update", "", "s", ""}},
		{"an update of something else", `{"method":"m","params":{"sessionId":"s","update":{"sessionUpdate":"a"}}}`, seen{"notification", "m", "", "s", ""}},

		{"batch", `[{"id":1,"method":"m"},{"id":2,"method":"m"}]`, seen{Type: "odd"}},
		{"empty batch", `[]`, seen{Type: "odd"}},
		{"empty", `{}`, seen{Type: "odd"}},
		{"text", `"method"`, seen{Type: "odd"}},
		{"nothing", ``, seen{Type: "odd"}},
		{"cut off", `{"id":1,"method":"m","params":{"sessionId":"s"}`, seen{Type: "odd"}},
		{"more behind it", `{"id":1,"method":"m"}{}`, seen{Type: "odd"}},
		{"wrong within", `{"id":1,"method":"m","params":{"sessionId":"s","x":01}}`, seen{Type: "odd"}},
		{"a comma", `{"id":1,"method":"m",}`, seen{Type: "odd"}},
		{"a NUL", "{\"id\":1,\x00\"method\":\"m\"}", seen{Type: "odd"}},
		{"too deep", `{"id":1,"method":"m","params":` + deep(100_000) + `}`, seen{Type: "odd"}},
		{"deep", `{"id":1,"method":"m","params":{"x":` + deep(100) + `,"sessionId":"s"}}`, seen{"request", "m", "1", "s", ""}},
		{"huge", `{"id":1,"params":{"x":"` + strings.Repeat(`\n é`, 4<<20) + `","sessionId":"s"},"method":"m"}`, seen{"request", "m", "1", "s", ""}},
	} {
		rec := &trace.Record{Dir: trace.ToClient, Data: []byte(c.frame)}
		item := new(summary.Follower).Next(rec)
		got := seen{string(item.Type), item.Method, item.ID, item.Session, item.Update}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: shown (-want +got):\n%s", c.name, diff)
		}
		var m meter
		m.addRecord(rec, 1)
		sum := m.report()
		kind := strings.Replace(c.want.Type, "error", "answer", 1)
		if b := sum.Biggest[0]; b.Type != kind || b.Method != c.want.Method {
			t.Errorf("%s: counted as %s %q", c.name, b.Type, b.Method)
		}
		session, updates := "", int64(0)
		if len(sum.Sessions) > 0 {
			session, updates = sum.Sessions[0].ID, sum.Sessions[0].Updates
		}
		if session != c.want.Session || (updates > 0) != (session != "" && c.want.Method == "session/update") {
			t.Errorf("%s: counted for the session %q, %d updates", c.name, session, updates)
		}
	}
}
