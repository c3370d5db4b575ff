package agent

import (
	"context"
	"fmt"
	"iter"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/loop"
	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/catalog"
	"github.com/goacp/acp/cmd/acp/internal/model/modeltest"
	scripts "github.com/goacp/acp/cmd/acp/internal/model/script"
)

// An order is one answer of a till.
type order struct {
	read, cached int
	text         string
	tool         bool   // asks for a tool instead of ending
	ends         string // "": whole; "breaks", "fails"; "refused" is not billed
}

// A house is how an interface says things, and what its model costs by a million tokens.
type house struct {
	ref, env              string
	read, cached, written float64
	stream                func(o order, written int) string
}

func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

// houses are the interfaces. Each says what it has used as the provider does.
func houses() []house {
	messages := func(o order, written int) string {
		head := fmt.Sprintf(`{"type":"message_start","message":{"id":"m","model":"x","usage":{"input_tokens":%d,"cache_read_input_tokens":%d,"cache_creation_input_tokens":0,"output_tokens":1}}}`, o.read-o.cached, o.cached)
		events := []string{head, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, o.text)}
		reason := "end_turn"
		if o.tool {
			events = append(events, `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"read","input":{}}}`,
				`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"path\":\"main.go\"}"}}`, `{"type":"content_block_stop","index":1}`)
			reason = "tool_use"
		}
		switch o.ends {
		case "breaks":
			return sse(events...)
		case "fails":
			return sse(append(events, `{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`)...)
		}
		return sse(append(events, fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":%d}}`, reason, written), `{"type":"message_stop"}`)...)
	}
	responses := func(o order, written int) string {
		events := []string{`{"type":"response.created","response":{"id":"r","model":"x","usage":null}}`,
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"i"}}`,
			fmt.Sprintf(`{"type":"response.output_text.delta","output_index":0,"delta":%q}`, o.text)}
		usage := fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,"total_tokens":%d}`, o.read, o.cached, written, o.read+written)
		if o.tool {
			events = append(events, `{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"t","name":"read"}}`,
				`{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"t","name":"read","arguments":"{\"path\":\"main.go\"}"}}`)
		}
		switch o.ends {
		case "breaks":
			return sse(events...)
		case "fails":
			return sse(append(events, `{"type":"response.failed","response":{"usage":`+usage+`,"error":{"code":"invalid_prompt","message":"no"}}}`)...)
		}
		return sse(append(events, `{"type":"response.completed","response":{"status":"completed","usage":`+usage+`}}`)...)
	}
	chat := func(thoughts int) func(order, int) string {
		return func(o order, written int) string {
			events := []string{fmt.Sprintf(`{"id":"c","model":"x","choices":[{"index":0,"delta":{"content":%q}}]}`, o.text)}
			finish := "stop"
			if o.tool {
				events = append(events, `{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t","function":{"name":"read","arguments":"{\"path\":\"main.go\"}"}}]}}]}`)
				finish = "tool_calls"
			}
			// Gemini has thoughts in the total only.
			usage := fmt.Sprintf(`"usage":{"prompt_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d},"completion_tokens":%d,"total_tokens":%d}`, o.read, o.cached, written-thoughts, o.read+written)
			switch o.ends {
			case "breaks":
				return sse(events...)
			case "fails":
				return sse(append(events, `{"error":{"code":"invalid_prompt","message":"no"},`+usage+`}`)...)
			}
			return sse(append(events, fmt.Sprintf(`{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":%q}],`+usage+`}`, finish), "[DONE]")...)
		}
	}
	return []house{
		{"anthropic/claude-sonnet-5", "ANTHROPIC_API_KEY", 2, 0.2, 10, messages},
		{"openai/gpt-5.5", "OPENAI_API_KEY", 5, 0.5, 30, responses},
		{"deepseek/deepseek-v4-pro", "DEEPSEEK_API_KEY", 0.435, 0.003625, 0.87, chat(0)},
		{"gemini/gemini-3.7-flash", "GEMINI_API_KEY", 0.75, 0.075, 3.75, chat(90)},
	}
}

// serve makes the answers of a house, and what each costs.
func (h house) serve(orders []order) (s *modeltest.Server, costs []float64) {
	s = new(modeltest.Server)
	for _, o := range orders {
		if o.ends == "refused" {
			s.Answers = append(s.Answers, modeltest.Answer{Status: 429, Header: http.Header{"Content-Type": {"application/json"}}, Body: `{"error":{"type":"rate_limit_error","message":"later"}}`})
			costs = append(costs, 0)
			continue
		}
		written := 100 + len(o.text)/4
		s.Answers = append(s.Answers, modeltest.Answer{Body: h.stream(o, written)})
		if o.ends == "breaks" || o.ends == "fails" {
			written = len(o.text) / 4
		}
		if o.ends == "fails" && strings.HasPrefix(h.ref, "openai") { // which says what it bills
			written = 100 + len(o.text)/4
		}
		if o.ends == "fails" && (strings.HasPrefix(h.ref, "deepseek") || strings.HasPrefix(h.ref, "gemini")) {
			written = 100 + len(o.text)/4
		}
		costs = append(costs, (float64(o.read-o.cached)*h.read+float64(o.cached)*h.cached+float64(written)*h.written)/1e6)
	}
	return s, costs
}

// shelf opens a model of a house.
func (h house) shelf(t *testing.T, transport http.RoundTripper) *catalog.Models {
	t.Helper()
	m, err := catalog.New(catalog.Settings{Use: h.ref, HTTP: &http.Client{Transport: transport}, Env: func(name string) string {
		if name == h.env {
			return "key"
		}
		return ""
	}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// near reports whether two costs differ by 1 % at most.
func near(a, b float64) bool { return math.Abs(a-b) <= 0.01*math.Max(a, b) }

// TestBill: what a session has cost, as it is shown and kept, is what the provider bills, within 1 %: with what was cached,
// with answers that were broken off and sent again, and with those that have failed.
func TestBill(t *testing.T) {
	text := strings.Repeat("four", 25)
	for _, h := range houses() {
		for name, orders := range map[string][]order{
			"whole":   {{read: 100_000, cached: 95_000, text: text}},
			"tools":   {{read: 50_000, text: text, tool: true}, {read: 51_000, cached: 50_000, text: text}},
			"breaks":  {{read: 100_000, text: text, ends: "breaks"}, {read: 100_000, text: text, ends: "breaks"}, {read: 100_000, text: text}},
			"refused": {{ends: "refused"}, {read: 100_000, text: text}},
			"fails":   {{read: 100_000, text: text, ends: "fails"}},
			"later":   {{read: 100_000, text: text, tool: true}, {read: 101_000, cached: 100_000, text: text, ends: "breaks"}, {read: 101_000, cached: 100_000, text: text}},
		} {
			t.Run(h.ref+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, costs := h.serve(orders)
					want := 0.0
					for _, c := range costs {
						want += c
					}
					k := start(t, 2, func(k *talk) { k.shelf = h.shelf(t, s) })
					var shown float64
					k.cost = func(c *acp.Cost) { shown = c.Amount }
					_, err := k.session.Prompt(t.Context(), acp.Text("hi")).Wait()
					if (err == nil) == (name == "fails") {
						t.Error(err)
					}
					if n := len(s.Bodies()); n != len(orders) {
						t.Errorf("%d requests", n)
					}
					synctest.Wait()
					if !near(shown, want) {
						t.Errorf("it shows %v, and the bill is %v", shown, want)
					}
					k.reopen()
					if got := k.tell("/usage"); !strings.Contains(got, fmt.Sprintf("Cost: %.4f", shown)) {
						t.Errorf("it keeps another cost than %.4f: %s", shown, got)
					}
				})
			})
		}
	}
}

// TestBillLimit: no request is sent once the cost has reached a limit: neither for a tool, nor after an answer that was broken
// off, nor in the next turn.
func TestBillLimit(t *testing.T) {
	text := strings.Repeat("four", 25)
	for _, h := range houses() {
		for name, orders := range map[string][]order{
			"tools":  {{read: 100_000, text: text, tool: true}},
			"breaks": {{read: 100_000, text: text, ends: "breaks"}},
		} {
			for _, session := range []bool{false, true} {
				t.Run(fmt.Sprint(h.ref, " ", name, " ", session), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s, costs := h.serve(orders) // the last one is repeated
						estimated := costs[0]
						if name == "breaks" && !strings.HasPrefix(h.ref, "anthropic") {
							estimated = 0.001 * h.read // of a conversation of more than 1,000 tokens, since nothing else is known
						}
						k := start(t, 2, func(k *talk) {
							k.shelf = h.shelf(t, s)
							if session {
								k.most = 1.5 * estimated
							} else {
								k.limits = loop.Limits{Cost: 1.5 * estimated}
							}
						})
						if _, err := k.session.Prompt(t.Context(), acp.Text("hi")).Wait(); err != nil {
							t.Fatal(err)
						}
						if n := len(s.Bodies()); n > 2 || name == "tools" && n != 2 {
							t.Errorf("%d requests", n)
						}
						before := len(s.Bodies())
						if _, err := k.session.Prompt(t.Context(), acp.Text("more")).Wait(); err != nil {
							t.Fatal(err)
						}
						if n := len(s.Bodies()); session && n != before {
							t.Errorf("%d requests more", n-before)
						}
					})
				})
			}
		}
	}
}

// TestUnknownPrice: a limit that cannot be kept, since the price of the model is not known, is not ignored: neither for the first
// model nor for one that is chosen later.
func TestUnknownPrice(t *testing.T) {
	t.Run("chosen later", func(t *testing.T) {
		priced, free := &priceless{}, &priceless{}
		priced.Model, _ = scripts.Parse("say hi\n---\nsay hi")
		free.Model, _ = scripts.Parse("say hi")
		priced.price.Currency = "USD"
		k := start(t, 2, func(k *talk) { k.shelf, k.limits = pair{first: priced, second: free}, loop.Limits{Cost: 1} })
		k.tell("hi")
		err := k.session.SetOption(t.Context(), optionModel, &acp.SessionConfigOptionValueID{Value: "p/free"})
		if err == nil || !strings.Contains(err.Error(), "price") {
			t.Errorf("the model is changed: %v", err)
		}
		contains(t, k.tell("more"), "hi")
		if free.asked || !priced.asked {
			t.Error("the wrong model was asked")
		}
	})
	_, with := scripted(t, "say hi")
	k := start(t, 2, with, func(k *talk) { k.limits = loop.Limits{Cost: 1} })
	_, err := k.session.Prompt(t.Context(), acp.Text("hi")).Wait()
	if err == nil || !strings.Contains(err.Error(), "the price of script/script is not known, so the limit model.max_cost could not be kept") {
		t.Error(err)
	}
}

// priceless is a model with a price that is not known, unless price is.
type priceless struct {
	model.Model
	price model.Price
	asked bool
}

func (p *priceless) Info() model.Info {
	i := p.Model.Info()
	i.Price = p.price
	return i
}

func (p *priceless) Generate(ctx context.Context, r *model.Request) iter.Seq2[model.Event, error] {
	p.asked = true
	return p.Model.Generate(ctx, r)
}

// pair has two models.
type pair struct {
	model.Source
	first, second model.Model
}

func (p pair) List(context.Context, bool) []model.Choice {
	return []model.Choice{{Ref: "p/priced", Name: "priced"}, {Ref: "p/free", Name: "free"}}
}

func (p pair) Open(ref string) (model.Model, error) {
	if ref == "p/free" {
		return p.second, nil
	}
	return p.first, nil
}

func (p pair) Effort() string { return "" }
