package proxies

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// inPieces cuts a text.
func inPieces(s string, n int) (list []string) {
	for len(s) > n {
		list = append(list, s[:n])
		s = s[n:]
	}
	return append(list, s)
}

// streamed is a text as the client puts it together, by what it is a text of.
func streamed(t *testing.T, updates []message) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, m := range updates {
		var v struct {
			Update struct {
				SessionUpdate string
				MessageID     string
				Data          []byte
				Content       struct {
					Text    string
					Content struct{ Text string }
				}
				Meta struct {
					Delta struct{ Data string } `json:"terminal_output_delta"`
				} `json:"_meta"`
			}
		}
		if err := json.Unmarshal(m.Params, &v); err != nil {
			t.Fatal(err)
		}
		u := v.Update
		all[u.SessionUpdate+u.MessageID] += u.Content.Text + u.Content.Content.Text + string(u.Data) + u.Meta.Delta.Data
	}
	return all
}

// TestRedactStreams: a secret that comes in pieces is replaced, however it is cut, and nothing is lost or comes too late.
func TestRedactStreams(t *testing.T) {
	t.Setenv("DEPLOY_PASS", "correct horse battery")
	t.Setenv("PLAIN_PASS", "hunter2hunter2")
	kinds := map[string]func(piece string) string{
		"agent_message_chunk": func(s string) string {
			return `{"sessionUpdate":"agent_message_chunk","messageId":"1","content":` + text(s) + `}`
		},
		"agent_thought_chunk": func(s string) string {
			return `{"sessionUpdate":"agent_thought_chunk","messageId":"1","content":` + text(s) + `}`
		},
		"tool_call_content_chunk": func(s string) string {
			return `{"sessionUpdate":"tool_call_content_chunk","toolCallId":"c","content":{"type":"content","content":` + text(s) + `}}`
		},
		"terminal_output_chunk": func(s string) string {
			return `{"sessionUpdate":"terminal_output_chunk","terminalId":"t","data":"` + base64.StdEncoding.EncodeToString([]byte(s)) + `"}`
		},
		"tool_call_update": func(s string) string {
			b, _ := json.Marshal(s)
			return `{"sessionUpdate":"tool_call_update","toolCallId":"c","_meta":{"terminal_output_delta":{"terminal_id":"t","data":` + string(b) + `}}}`
		},
	}
	key := "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\nVJTUt9Us8cKj\n-----END PRIVATE KEY-----"
	whole := "It is correct horse battery, hunter2hunter2 and " + tokenOf + ".\nAPI_KEY=0f9e8d7c6b5a49382716 Bearer abc0def1ghi2jkl3mno4 x\n" + key + "\nhorse"
	for kind, update := range kinds {
		for _, n := range []int{1, 2, 3, 7, 20, 1000} {
			p := newPair(t, 2, "/", Env{}, "redact", "--env", "DEPLOY_PASS", "--env", "PLAIN_PASS")
			p.send(p.client, "session/prompt", `{"sessionId":"s","prompt":[`+text("go")+`]}`)
			prompt := p.agent.hears()
			for i, piece := range inPieces(whole, n) {
				p.update("s", update(piece))
				if i == 30/n { // it says that the turn has begun
					p.agent.answers(prompt, `{"messageId":"m"}`)
				}
			}
			p.update("s", `{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}`)
			var got []message
			for {
				m := p.client.hears()
				if strings.Contains(string(m.Params), `"state_update"`) {
					break
				}
				if m.Method != "" {
					got = append(got, m)
				}
			}
			var all string
			for _, text := range streamed(t, got) {
				all += text
			}
			for _, secret := range []string{"correct", "battery", "hunter2", tokenOf[5:], "0f9e8d7c", "abc0def1", "MIIEvQ", "VJTUt9"} {
				if strings.Contains(all, secret) {
					t.Errorf("%s in pieces of %d: the client reads %q", kind, n, all)
				}
			}
			if !strings.HasPrefix(all, "It is «secret ") || !strings.HasSuffix(all, "\nhorse") || strings.Count(all, "«secret ") < 5 {
				t.Errorf("%s in pieces of %d: the client reads %q", kind, n, all)
			}
		}
	}
}

// TestRedactStreamsLate: the end of a text that nothing follows comes after five seconds, once. A piece that follows in time is put
// together with it.
func TestRedactStreamsLate(t *testing.T) {
	t.Setenv("DEPLOY_PASS", "correct-horse-battery")
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, "/", Env{}, "redact", "--env", "DEPLOY_PASS")
		say := func(s string) {
			p.update("s", `{"sessionUpdate":"agent_message_chunk","messageId":"1","content":`+text(s)+`}`)
		}
		said := func(want string, after time.Duration) {
			t.Helper()
			begin := time.Now()
			if m := p.client.hears(); !strings.Contains(m.text, want) {
				t.Fatalf("the client reads %s instead of %s", m.text, want)
			}
			if took := time.Since(begin); took != after {
				t.Errorf("%s came after %v, not %v", want, took, after)
			}
		}
		say("one correct-")
		said(`"one "`, 0)
		said(`"correct-"`, heldFor)
		say("two correct-")
		said(`"two "`, 0)
		time.Sleep(heldFor - 1)
		say("horse-battery. Then")
		said("«secret ", 0) // and the last word is held anew
		time.Sleep(heldFor - 1)
		synctest.Wait()
		if n := len(p.client.in); n != 0 {
			t.Errorf("%d messages came too early", n)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(p.client.in); n > 1 {
			t.Errorf("%d messages came for the end", n)
		}
	})
}

// TestRedactStreamsOrder: what was held comes before everything that follows it, and a text that another one interrupts is not
// put together with that.
func TestRedactStreamsOrder(t *testing.T) {
	t.Setenv("DEPLOY_PASS", "correct-horse-battery")
	p := newPair(t, 1, "/", Env{}, "redact", "--env", "DEPLOY_PASS")
	say := func(id, s string) {
		p.update("s", `{"sessionUpdate":"agent_message_chunk","messageId":"`+id+`","content":`+text(s)+`}`)
	}
	said := func(want string) {
		t.Helper()
		if m := p.client.hears(); !strings.Contains(m.text, want) {
			t.Fatalf("the client reads %s instead of %s", m.text, want)
		}
	}
	say("1", "one correct-")
	said(`"one "`)
	say("2", "two")
	said(`"correct-"`)
	p.update("s", `{"sessionUpdate":"plan","entries":[]}`)
	said(`"two"`)
	said(`"plan"`)
	say("1", "three")
	p.send(p.agent, "session/request_permission", `{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[]}`)
	said(`"three"`)
	q := p.client.hears()
	if q.Method != "session/request_permission" {
		t.Fatal(q.text)
	}
	p.client.answers(q, `{"outcome":{"outcome":"cancelled"}}`)
	p.agent.hears()
	say("1", "four")
	p.agent.says(`{"method":"_note","params":{"sessionId":"s"}}`)
	said(`"four"`)
	said(`_note`)
	// A word that does not end is not kept for ever.
	long := strings.Repeat("x", maxHeld)
	say("3", long)
	say("3", long+long)
	n := 0
	for n < maxHeld {
		var v struct {
			Update struct{ Content struct{ Text string } }
		}
		if err := json.Unmarshal(p.client.hears().Params, &v); err != nil {
			t.Fatal(err)
		}
		n += len(v.Update.Content.Text)
	}
	// Nothing was held: it passes as it is.
	p.update("t", `{"sessionUpdate" : "agent_message_chunk","content":{"type":"text","text":"whole. "}}`)
	for {
		if m := p.client.hears(); strings.Contains(m.text, `"sessionUpdate" : `) {
			break
		}
	}
}

// TestRedactWrapped: base64 is found across the ends of its lines.
func TestRedactWrapped(t *testing.T) {
	t.Setenv("DEPLOY_PASS", password)
	p := newPair(t, 1, "/", Env{}, "redact", "--env", "DEPLOY_PASS")
	for shift := range 3 {
		for _, width := range []int{4, 16, 64, 76} {
			for _, end := range []string{"\n", "\r\n", "\n  ", `\n`, `\r\n`} {
				encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("a", 40+shift) + password + strings.Repeat("b", 60)))
				lines := strings.Join(inPieces(encoded, width), end)
				blob, _ := json.Marshal(lines)
				for _, block := range []string{text("Here:\n" + lines + "\n"), fmt.Sprintf(`{"type":"resource","resource":{"uri":"file:///x","blob":%s}}`, blob)} {
					m := p.prompt("s", "["+block+"]")
					if !strings.Contains(m.text, "«secret ") {
						t.Errorf("shift %d, lines of %d that end in %q: the agent gets %s", shift, width, end, m.text)
					}
					p.agent.answers(m, `{"stopReason":"end_turn"}`)
					p.client.hears()
				}
			}
		}
	}
}
