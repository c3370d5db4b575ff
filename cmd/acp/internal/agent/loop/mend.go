package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/model"
)

// A Mended is what stands for content that a provider has refused.
type Mended struct {
	Why *model.Error // what the provider said
	// What is left out: "images", "results" or "tools".
	What   string
	Prefix *model.Prefix // nil if it is as it was
	// Messages are those of the conversation from the index From on that are others now.
	From     int
	Messages []*model.Message
}

// refusal returns why the provider does not take a request, if that may be for what is in it.
func refusal(err error) *model.Error {
	e, ok := errors.AsType[*model.Error](err)
	switch {
	case !ok:
		return nil
	case e.Kind == model.KindRequest && (e.Status == 0 || e.Status == 400 || e.Status == 422):
		return e
	case e.Kind == model.KindRefused && e.Status == 400:
		return e
	}
	return nil
}

// maxWords bounds what is quoted of the words of a provider, in characters.
const maxWords = 300

// mend asks again without what is new in the conversation, if the provider has refused it: without its images first, then
// without the results of tools. What was left out is replaced for good if that is answered, and stays if it is not.
func (r *run) mend(ctx context.Context, err error) (*model.Done, error) {
	all, prefix := r.all, r.Prefix
	why := refusal(err)
	if why == nil || all[len(all)-1].Role != model.User {
		return nil, err
	}
	var done *model.Done
	for _, m := range r.remedies(why) {
		if r.isSpent() {
			return nil, errCost
		}
		if r.end.Requests >= r.Limits.Requests {
			return nil, err
		}
		if m.Prefix != nil {
			r.Prefix = m.Prefix
		}
		r.all = slices.Concat(all[:m.From:m.From], m.Messages)
		r.remedy = m
		done, err = r.ask(ctx)
		if r.remedy == nil { // it was answered
			return done, err
		}
		r.remedy, r.all, r.Prefix = nil, all, prefix
		if refusal(err) == nil {
			break
		}
	}
	return nil, err
}

// accepted is called when the provider answers: what was left out of the request is not there any more.
func (r *run) accepted() {
	if r.remedy != nil {
		r.Host.Mend(r.remedy)
		r.remedy = nil
	}
}

// remedies returns what can be left out of the conversation, at most two things, the likely one first. New is what
// follows the last answer; if nothing of it can be left out, another model may have taken what this one does not.
func (r *run) remedies(why *model.Error) (all []*Mended) {
	from := 0
	for i, m := range r.all {
		if m.Role == model.Assistant {
			from = i + 1
		}
	}
	if p := r.Host.Fewer(why); p != nil {
		all = append(all, &Mended{Why: why, What: "tools", Prefix: p, From: len(r.all)})
	}
	words := strings.TrimRight(quoted(why.Message, maxWords), ".")
	add := func(what string, from int, left func(model.Part, string) model.Part) {
		changed := false
		messages := slices.Clone(r.all[from:])
		for i, m := range messages {
			parts := slices.Clone(m.Parts)
			for j, p := range parts {
				q := left(p, words)
				changed = changed || q != p
				parts[j] = withoutImages(q, words)
			}
			messages[i] = &model.Message{Role: m.Role, Parts: parts}
		}
		if changed && len(all) < 2 {
			all = append(all, &Mended{Why: why, What: what, From: from, Messages: messages})
		}
	}
	add("images", from, withoutImages)
	add("results", from, withoutResult)
	if len(all) == 0 {
		add("images", 0, withoutImages)
	}
	return all
}

// withoutImages returns a part whose images are replaced; the same one if it has none.
func withoutImages(p model.Part, words string) model.Part {
	switch p := p.(type) {
	case *model.Image:
		return &model.Text{Text: fmt.Sprintf("(An image was here. It was left out, since the provider refused the request with it: %s.)", words)}
	case *model.ToolResult:
		parts, changed := slices.Clone(p.Parts), false
		for i, q := range parts {
			if without := withoutImages(q, words); without != q {
				parts[i], changed = without, true
			}
		}
		if changed {
			return &model.ToolResult{ID: p.ID, Parts: parts, Failed: p.Failed}
		}
	}
	return p
}

// left is how the text begins that stands for a result.
const left = "(What this call returned was left out, since the provider refused the request with it: "

// withoutResult returns a part that is a result without what it says; the same one if it is none, or says nothing.
func withoutResult(p model.Part, words string) model.Part {
	r, ok := p.(*model.ToolResult)
	if !ok || len(r.Parts) == 0 {
		return p
	}
	if t, ok := r.Parts[0].(*model.Text); ok && len(r.Parts) == 1 && strings.HasPrefix(t.Text, left) {
		return p
	}
	return &model.ToolResult{ID: r.ID, Failed: r.Failed, Parts: []model.Part{&model.Text{Text: left + words + ".)"}}}
}
