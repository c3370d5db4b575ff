package loop

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/model"
)

// A picky model refuses requests in which a word is, and answers the others with "ok".
type picky struct {
	refuses  func(text string) bool
	status   int
	requests int
}

func (*picky) Info() model.Info { return model.Info{Provider: "p", ID: "m", Images: true} }

func (p *picky) Generate(_ context.Context, r *model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		p.requests++
		text := ""
		for _, t := range r.Prefix.Tools {
			text += t.Name + " "
		}
		for _, m := range r.Messages {
			text += flat(m.Parts)
		}
		if p.refuses(text) {
			yield(nil, &model.Error{Kind: model.KindRequest, Status: p.status, Message: "bad content."})
			return
		}
		yield(&model.Done{Reason: model.EndTurn, Message: &model.Message{Role: model.Assistant, Parts: said("ok")}}, nil)
	}
}

func flat(parts []model.Part) string {
	var b strings.Builder
	for _, p := range parts {
		switch p := p.(type) {
		case *model.Text:
			b.WriteString(p.Text + " ")
		case *model.Image:
			b.WriteString("IMAGE ")
		case *model.ToolResult:
			b.WriteString("<" + flat(p.Parts) + ">")
		case *model.ToolUse:
			b.WriteString("[" + p.Name + "] ")
		}
	}
	return b.String()
}

// TestMend: content that a provider refuses is replaced by a text that says so, once, the images first. If that does not
// help the turn ends with the provider's words, and nothing was replaced.
func TestMend(t *testing.T) {
	const stub = "(An image was here. It was left out, since the provider refused the request with it: bad content.) "
	const none = "(What this call returned was left out, since the provider refused the request with it: bad content.) "
	image := &model.Image{MIMEType: "image/png"}
	use := &model.Message{Role: model.Assistant, Parts: []model.Part{&model.ToolUse{ID: "1", Name: "read"}}}
	result := func(parts ...model.Part) *model.Message {
		return &model.Message{Role: model.User, Parts: []model.Part{&model.ToolResult{ID: "1", Parts: parts}}}
	}
	ask := &model.Message{Role: model.User, Parts: said("go")}
	has := func(words ...string) func(string) bool {
		return func(text string) bool {
			for _, w := range words {
				if strings.Contains(text, w) {
					return true
				}
			}
			return false
		}
	}
	for _, tt := range []struct {
		name     string
		messages []*model.Message
		refuses  func(string) bool
		status   int
		fewer    *model.Prefix
		requests int
		mended   string // what was left out; "" is nothing
		want     string // the conversation that the host has then, from the index on
		err      bool
	}{
		{"a good one", []*model.Message{ask}, has("BAD"), 400, nil, 1, "", "", false},
		{"an image of the user", []*model.Message{{Role: model.User, Parts: []model.Part{said("go")[0], image}}}, has("IMAGE"), 400, nil, 2, "images", "go " + stub, false},
		{"an image of a tool", []*model.Message{ask, use, result(said("seen")[0], image)}, has("IMAGE"), 422, nil, 2, "images", "<seen " + stub + ">", false},
		{"said in a stream", []*model.Message{ask, use, result(image)}, has("IMAGE"), 0, nil, 2, "images", "<" + stub + ">", false},
		{"a result", []*model.Message{ask, use, result(said("BAD")...)}, has("BAD"), 400, nil, 2, "results", "<" + none + ">", false},
		{"a result beside an image", []*model.Message{ask, use, result(said("BAD")[0], image)}, has("BAD"), 400, nil, 3, "results", "<" + none + ">", false},
		{"whatever is there", []*model.Message{ask, use, result(said("x")[0], image)}, has("go"), 400, nil, 3, "", "", true},
		{"what was there before", []*model.Message{ask, use, result(image), use, result(said("x")...)}, has("IMAGE"), 400, nil, 2, "", "", true},
		{
			"an image that another model took", []*model.Message{ask, use, result(image), {Role: model.Assistant, Parts: said("ok")}, ask}, has("IMAGE"), 400, nil, 2,
			"images", "go [read] <" + stub + ">ok go ", false,
		},
		{"after a turn that has failed", []*model.Message{ask, use, result(said("BAD")...), ask}, has("BAD"), 400, nil, 2, "results", "<" + none + ">go ", false},
		{"tools", []*model.Message{ask}, has("evil"), 400, &model.Prefix{}, 2, "tools", "", false},
		{"no request", []*model.Message{ask, use, result(image)}, has("IMAGE"), 404, nil, 1, "", "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &stage{fewer: tt.fewer}
			m := &picky{refuses: tt.refuses, status: tt.status}
			end, err := Run(t.Context(), &Turn{Model: m, Prefix: &model.Prefix{Tools: []model.Tool{{Name: "evil"}}}, Messages: tt.messages, Host: s})
			if (err != nil) != tt.err || tt.err && !strings.Contains(err.Error(), "bad content") {
				t.Fatalf("%v, %+v", err, end)
			}
			if m.requests != tt.requests || end.Requests != tt.requests {
				t.Errorf("%d requests, %d counted", m.requests, end.Requests)
			}
			what, now := "", ""
			if s.mended != nil {
				what = s.mended.What
				for _, msg := range s.mended.Messages {
					now += flat(msg.Parts)
				}
			}
			if diff := cmp.Diff(tt.mended+": "+tt.want, what+": "+now); diff != "" {
				t.Error(diff)
			}
			if got := fmt.Sprint(s.log); tt.mended != "" && strings.Index(got, "mend") > strings.Index(got, "keep") {
				t.Errorf("the answer was kept first: %s", got)
			}
		})
	}
}

// TestMendAgain: each new content can be replaced, as long as the provider answers in between.
func TestMendAgain(t *testing.T) {
	s := &stage{use: func(_ context.Context, u *model.ToolUse) *model.ToolResult {
		return &model.ToolResult{ID: u.ID, Parts: []model.Part{&model.Image{}}}
	}}
	n := 0
	m := &answers{func(r *model.Request) (*model.Done, error) {
		text := ""
		for _, msg := range r.Messages {
			text += flat(msg.Parts)
		}
		if strings.Contains(text, "IMAGE") {
			return nil, &model.Error{Kind: model.KindRequest, Status: 400, Message: "bad image"}
		}
		if n++; n == 6 {
			return &model.Done{Message: &model.Message{Role: model.Assistant, Parts: said("done")}, Reason: model.EndTurn}, nil
		}
		use := &model.ToolUse{ID: fmt.Sprint(n), Name: "write", Input: []byte(fmt.Sprint(n))}
		return &model.Done{Message: &model.Message{Role: model.Assistant, Parts: []model.Part{use}}, Reason: model.WantsTool}, nil
	}}
	end, err := Run(t.Context(), &Turn{Model: m, Prefix: &model.Prefix{}, Messages: []*model.Message{{Role: model.User, Parts: said("go")}}, Host: s})
	if err != nil || end.Stop != Done || end.Requests != 11 || strings.Count(fmt.Sprint(s.log), "mend images") != 5 {
		t.Errorf("%+v, %v, %v", end, err, s.log)
	}
}

// answers is a model whose answers are made by a function.
type answers struct {
	to func(*model.Request) (*model.Done, error)
}

func (*answers) Info() model.Info { return model.Info{Provider: "p", ID: "m"} }

func (a *answers) Generate(_ context.Context, r *model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		done, err := a.to(r)
		if err != nil {
			yield(nil, err)
			return
		}
		yield(done, nil)
	}
}

// An opening model refuses the first request. Then it streams a tool that only reads, and notes what was mended by then.
type opening struct {
	s      *stage
	asked  int
	mended *Mended
}

func (*opening) Info() model.Info { return model.Info{Provider: "p", ID: "m"} }

func (o *opening) Generate(context.Context, *model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		o.asked++
		use := &model.ToolUse{ID: "1", Name: "read", Input: []byte(`{}`)}
		switch o.asked {
		case 1:
			yield(nil, &model.Error{Kind: model.KindRequest, Status: 400, Message: "bad tools."})
		case 2:
			if yield(use, nil) {
				o.s.mu.Lock()
				o.mended = o.s.mended
				o.s.mu.Unlock()
				yield(&model.Done{Reason: model.WantsTool, Message: &model.Message{Role: model.Assistant, Parts: []model.Part{use}}}, nil)
			}
		default:
			yield(&model.Done{Reason: model.EndTurn, Message: &model.Message{Role: model.Assistant, Parts: said("ok")}}, nil)
		}
	}
}

// TestMendEarly: what was left out counts before a tool of the answer begins, which may be before the answer is complete.
func TestMendEarly(t *testing.T) {
	s := &stage{fewer: &model.Prefix{}, use: func(_ context.Context, u *model.ToolUse) *model.ToolResult {
		return &model.ToolResult{ID: u.ID, Parts: said("read")}
	}}
	o := &opening{s: s}
	ask := []*model.Message{{Role: model.User, Parts: said("go")}}
	if _, err := Run(t.Context(), &Turn{Model: o, Prefix: &model.Prefix{}, Messages: ask, Host: s}); err != nil {
		t.Fatal(err)
	}
	if o.mended == nil || o.mended.What != "tools" {
		t.Errorf("%+v when the tool began", o.mended)
	}
}
