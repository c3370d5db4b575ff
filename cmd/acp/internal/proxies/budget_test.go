package proxies

import (
	"fmt"
	"strings"
	"testing"
)

// usage is an update of a session's figures.
func usage(used int, cost string) string {
	if cost != "" {
		cost = `,"cost":` + cost
	}
	return fmt.Sprintf(`{"sessionUpdate":"usage_update","used":%d,"size":100000%s}`, used, cost)
}

// TestBudget tries to spend more than there is.
func TestBudget(t *testing.T) {
	type report struct{ session, update string }
	usd := func(v string) string { return `{"amount":` + v + `,"currency":"USD"}` }
	for _, tt := range []struct {
		name    string
		flags   string
		reports []report
		notice  int // the report after which there is a notice, from 1; 0 for none
		over    int // and the one after which the budget is used up
	}{
		{"one session", "--tokens 1000", []report{{"s", usage(799, "")}, {"s", usage(800, "")}, {"s", usage(999, "")}, {"s", usage(1000, "")}}, 2, 4},
		{"several sessions", "--tokens 1000", []report{{"s", usage(500, "")}, {"t", usage(400, "")}, {"t", usage(500, "")}}, 2, 3},
		{"a session that nobody has opened", "--tokens 1000", []report{{"s", usage(500, "")}, {"child", usage(500, "")}}, 0, 2},
		{"usage that goes down", "--tokens 1000", []report{{"s", usage(700, "")}, {"s", usage(100, "")}, {"s", usage(250, "")}, {"s", usage(400, "")}}, 3, 4},
		{"cost", "--cost 5", []report{{"s", usage(1, usd("3.9"))}, {"s", usage(1, usd("4"))}, {"s", usage(1, usd("5.01"))}}, 2, 3},
		{"cost that goes down", "--cost 5", []report{{"s", usage(1, usd("3"))}, {"s", usage(1, usd("0"))}, {"s", usage(1, usd("2"))}}, 0, 3},
		{"cost that is removed", "--cost 5", []report{{"s", usage(1, usd("3"))}, {"s", usage(1, "null")}, {"s", usage(1, usd("5"))}}, 0, 3},
		{"negative cost", "--cost 5", []report{{"s", usage(1, usd("-100"))}, {"s", usage(1, usd("4.5"))}}, 0, 2},
		{"the same currency in other letters", "--cost 5", []report{{"s", usage(1, usd("4.5"))}, {"s", usage(1, `{"amount":5.5,"currency":"usd"}`)}}, 1, 2},
		{"currencies by themselves", "--cost 5", []report{{"s", usage(1, usd("3"))}, {"t", usage(1, `{"amount":3,"currency":"EUR"}`)}}, 0, 0},
		{"both", "--cost 5 --tokens 10", []report{{"s", usage(10, usd("0.1"))}}, 0, 1},
	} {
		for _, version := range []int{1, 2} {
			p := newPair(t, version, "/", Env{}, append([]string{"budget", "--finish"}, strings.Fields(tt.flags)...)...)
			for i, r := range tt.reports {
				p.update(r.session, r.update)
				m := p.client.hears()
				if i+1 == tt.notice && !strings.Contains(m.text, " are used") || i+1 == tt.over && !strings.Contains(m.text, "is used up") {
					t.Fatalf("%s: version %d: after %d: %s", tt.name, version, i+1, m.text)
				}
				if i+1 == tt.notice || i+1 == tt.over {
					m = p.client.hears()
				}
				if !strings.Contains(m.text, "usage_update") {
					t.Fatalf("%s: version %d: after %d: %s", tt.name, version, i+1, m.text)
				}
			}
			p.send(p.client, "_session/steering", `{"sessionId":"s","prompt":[`+text("x")+`]}`)
			if tt.over == 0 {
				p.agent.answers(p.agent.hears(), `{"outcome":"injected"}`)
				p.client.hears()
				continue
			}
			if m := p.client.hears(); !strings.Contains(m.text, `"reason":"budget"`) {
				t.Errorf("%s: %s", tt.name, m.text)
			}
			p.send(p.client, "session/prompt", `{"sessionId":"s","prompt":[`+text("x")+`]}`)
			if m := p.client.hears(); version == 1 && !strings.Contains(m.text, "was not sent") {
				t.Errorf("%s: %s", tt.name, m.text)
			}
		}
	}
}

// TestBudgetIdle holds that a session which is idle is not cancelled, however many prompts it has got before.
func TestBudgetIdle(t *testing.T) {
	p := newPair(t, 2, "/", Env{}, "budget", "--tokens", "1000")
	for range 2 {
		p.agent.answers(p.prompt("s", "["+text("a")+"]"), `{"messageId":"m"}`)
		p.client.hears()
	}
	p.update("s", `{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}`)
	p.client.hears()
	p.update("s", usage(1000, ""))
	p.client.hears()
	p.send(p.client, "session/close", `{"sessionId":"s"}`)
	m := p.agent.hears()
	if m.Method != "session/close" {
		t.Error(m.text)
	}
	p.agent.answers(m, `{}`)
	p.client.hears()
}

// TestBudgetParallel holds that everything that runs is cancelled, and that nothing begins any more.
func TestBudgetParallel(t *testing.T) {
	p := newPair(t, 1, "/", Env{}, "budget", "--tokens", "1000")
	p.open("t", "/")
	first := p.prompt("s", "["+text("a")+"]")
	second := p.prompt("t", "["+text("b")+"]")
	p.update("s", usage(1000, ""))
	cancelled := map[string]bool{}
	for range 2 {
		m := p.agent.hears()
		if m.Method != "session/cancel" {
			t.Fatal(m.text)
		}
		cancelled[string(m.Params)] = true
	}
	if len(cancelled) != 2 {
		t.Errorf("%v", cancelled)
	}
	for _, m := range []message{first, second} {
		p.agent.answers(m, `{"stopReason":"cancelled"}`)
	}
	stops := 0
	for stops < 2 {
		if m := p.client.hears(); strings.Contains(string(m.Result), "cancelled") {
			stops++
		}
	}
	p.send(p.client, "session/prompt", `{"sessionId":"t","prompt":[`+text("x")+`]}`)
	if m := p.client.hears(); !strings.Contains(m.text, "was not sent") {
		t.Error(m.text)
	}
	if m := p.client.hears(); !strings.Contains(m.text, `"stopReason":"refusal"`) {
		t.Error(m.text)
	}
	for _, args := range [][]string{nil, {"--tokens", "0"}, {"--tokens", "-1"}, {"--cost", "-1"}, {"--cost", "NaN"}, {"--cost", "x"}} {
		if _, err := Parse(append([]string{"budget"}, args...), Env{}); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}

// TestBudgetQuota tries to spend tokens that are reported at the end of turns only.
func TestBudgetQuota(t *testing.T) {
	quota := func(s string) string { return `"_meta":{"quota":` + s + `}` }
	for _, tt := range []struct {
		name  string
		turns []string // the figures of each
		used  int      // of the context, which is reported in the first
		over  int      // the turn after which the budget is used up, from 1
	}{
		{"a total", []string{`{"token_count":{"totalTokens":600}}`, `{"token_count":{"totalTokens":400}}`}, 0, 2},
		{"a number", []string{`{"token_count":1000}`}, 0, 1},
		{"models, and no total", []string{`{"token_count":null,"model_usage":[{"model":"a","token_count":{"totalTokens":600}},{"model":"b","token_count":{"totalTokens":400}}]}`}, 0, 1},
		{"a total below its models", []string{`{"token_count":{"totalTokens":1},"model_usage":[{"model":"a","token_count":{"totalTokens":1000}}]}`}, 0, 1},
		{"no total of a model", []string{`{"model_usage":[{"model":"a","token_count":{"inputTokens":999,"outputTokens":1}}]}`}, 0, 1},
		{"negative figures", []string{`{"token_count":{"totalTokens":-9000}}`, `{"token_count":{"inputTokens":-9000,"outputTokens":1000}}`}, 0, 2},
		{"nonsense first", []string{`{"token_count":"x","model_usage":7}`, `null`, `{"token_count":1000}`}, 0, 3},
		{"not counted twice", []string{`{"token_count":{"totalTokens":600}}`, `{"token_count":{"totalTokens":300}}`, `{"token_count":{"totalTokens":100}}`}, 900, 3},
	} {
		for version := 1; version <= 2; version++ {
			p := newPair(t, version, "/", Env{}, "budget", "--tokens", "1000")
			for i, figures := range tt.turns {
				m := p.prompt("s", "["+text("a")+"]")
				if m.Method != "session/prompt" {
					t.Fatalf("%s: turn %d: %s", tt.name, i+1, m.text)
				}
				if i == 0 && tt.used > 0 {
					p.update("s", usage(tt.used, ""))
				}
				if version == 1 {
					p.agent.answers(m, `{"stopReason":"end_turn",`+quota(figures)+`}`)
				} else {
					p.agent.answers(m, `{"messageId":"m"}`)
					p.update("s", `{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn",`+quota(figures)+`}`)
				}
				over := false
				for {
					m := p.client.hears()
					over = over || strings.Contains(m.text, "is used up")
					if version == 1 && m.Method == "" || strings.Contains(m.text, `"idle"`) {
						break
					}
				}
				if over != (i+1 == tt.over) {
					t.Fatalf("%s: version %d: turn %d: used up: %v", tt.name, version, i+1, over)
				}
			}
			p.send(p.client, "session/prompt", `{"sessionId":"s","prompt":[`+text("x")+`]}`)
			if m := p.client.hears(); version == 1 && !strings.Contains(m.text, "was not sent") {
				t.Errorf("%s: %s", tt.name, m.text)
			}
		}
	}
}
