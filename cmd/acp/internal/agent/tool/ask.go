package tool

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
)

// Bounds of a question.
const (
	maxOptions  = 20
	maxQuestion = 4000 // characters
)

// Ask asks the user something. It is for clients that have forms.
var Ask = Tool{
	Name: "ask", Kind: acp.ToolKindOther,
	About: "Asks the user a question, and waits for the answer. Only for what you cannot find out and must not guess. Options, if any, are answers to choose from.",
	Schema: json.RawMessage(`{"type":"object","properties":{"question":{"type":"string"},` +
		`"options":{"type":"array","maxItems":20,"items":{"type":"string"}}},"required":["question"],"additionalProperties":false}`),
	Run: runAsk,
}

// AskInput is the input of [Ask].
type AskInput struct {
	Question string   `json:"question"`
	Options  []string `json:"options,omitempty"`
}

func runAsk(ctx context.Context, env Env, input json.RawMessage) (Result, error) {
	var in AskInput
	if err := decode(input, &in); err != nil {
		return Result{}, err
	}
	in.Question = strings.TrimSpace(in.Question)
	switch {
	case in.Question == "":
		return Result{}, Misusef("the question is missing")
	case len([]rune(in.Question)) > maxQuestion:
		return Result{}, Misusef("a question has %d characters at most", maxQuestion)
	case len(in.Options) > maxOptions:
		return Result{}, Misusef("there are %d options at most", maxOptions)
	}
	seen := map[string]bool{}
	for i, o := range in.Options {
		o = prose.OneLine(o, 200)
		if o == "" || seen[o] {
			return Result{}, Misusef("option %d is empty, or there twice", i+1)
		}
		in.Options[i], seen[o] = o, true
	}
	c, own, end := beginAlone(ctx, env, acp.ToolCall{
		Name: "ask", Title: prose.OneLine(in.Question, 200), Kind: acp.ToolKindOther, Status: acp.ToolCallStatusPending,
	})
	defer end()
	answer, err := c.ask(own, &in)
	switch {
	case own.Err() != nil:
		return c.cancelled("The question was cancelled."), nil
	case err != nil:
		return c.failed(err), nil
	}
	c.text(answer)
	c.found = "The user answers: " + answer
	return c.done("You answered."), nil
}

// ask shows a form.
func (c *call) ask(ctx context.Context, in *AskInput) (string, error) {
	const field = "answer"
	length := uint32(20_000)
	answer := &acpv2.StringPropertySchema{Title: "Answer", Enum: in.Options, MaxLength: &length}
	if len(in.Options) > 0 {
		answer.MaxLength = nil
	}
	got, err := c.env.Output().WithContext(ctx).Elicit(acp.FormRequest{
		Message: in.Question, ToolCallID: c.h.ID(),
		Schema: acp.ElicitationSchema{Properties: []acp.ElicitationProperty{{Name: field, Schema: answer}}, Required: []string{field}},
	})
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return "", errors.New("nobody can be asked here: decide yourself, and say in the end what you have assumed")
	case err != nil:
		return "", err
	case !got.Accepted:
		return "", &Refusal{Why: "The user does not want to answer. Decide yourself, and say in the end what you have assumed."}
	}
	var text string
	if json.Unmarshal(got.Content[field], &text) != nil || strings.TrimSpace(text) == "" {
		return "", &Refusal{Why: "The user has given no answer. Decide yourself, and say in the end what you have assumed."}
	}
	return text, nil
}
