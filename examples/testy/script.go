package main

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// A script is one prompt being carried out.
type script struct {
	*acp.Turn
	agent *testy
	conn  *jsonrpc.Conn // for what is not part of the protocol
	args  []string      // the words after the first one
	rest  string        // the same as one text
	stop  acp.StopReason
	said  strings.Builder
	at    *acpv2.CursorUpdate // a cursor behind the answer, if there is one
}

// accept refuses, or holds, the prompts that ask for it. In version 2 they then
// never become part of the conversation.
func (a *testy) accept(ctx context.Context, t *acp.Turn) error {
	switch word, _ := firstWord(t.Blocks()); word {
	case "!reject":
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "prompt rejected").WithData(map[string]string{"reason": "rejected"})
	case "!fail":
		return errors.New("boom: secret-token-123")
	case "!rpcerror":
		return jsonrpc.Errorf(-32042, "custom failure").WithData(map[string]int{"a": 1})
	case "!auth":
		return jsonrpc.ErrAuthRequired.WithData(map[string]string{"why": "test"})
	case "!hold":
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return nil
}

func (a *testy) prompt(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
	word, rest := firstWord(t.Blocks())
	s := &script{Turn: t, agent: a, conn: t.Session().Conn().Conn(), args: strings.Split(rest, " "), rest: rest, stop: acp.StopEndTurn}
	defer func() { a.remember(t, s.said.String(), s.at) }()
	do := words[word]
	if do == nil {
		do = (*script).echo
	}
	err := do(s, ctx)
	return s.stop, err
}

// firstWord returns the first word of a prompt's first block, and the rest.
func firstWord(blocks []acp.ContentBlock) (word, rest string) {
	word, rest, _ = strings.Cut(firstText(blocks), " ")
	return word, rest
}

func firstText(blocks []acp.ContentBlock) string {
	if len(blocks) == 0 {
		return "<empty>"
	}
	if t, ok := blocks[0].(*acp.TextContent); ok {
		return t.Text
	}
	return "<" + typeOf(blocks[0]) + ">"
}

// typeOf returns the type of a block as it is on the wire.
func typeOf(b acp.ContentBlock) string {
	var tag struct{ Type string }
	data, err := b.AppendJSON(nil)
	if err != nil || json.Unmarshal(data, &tag) != nil {
		return ""
	}
	return tag.Type
}

// say answers. Failures to send are found in the turn's end.
func (s *script) say(text string) error {
	s.said.WriteString(text)
	return s.Say(text)
}

// version is what is spoken, dialect which version's script is followed.
func (s *script) version() int { return s.Session().Conn().Version() }
func (s *script) dialect() int { return s.agent.dialect(s.Session().Conn()) }

// arg returns a word of the prompt, or something else if it is missing.
func (s *script) arg(i int, otherwise string) string {
	if i < len(s.args) && s.args[i] != "" {
		return s.args[i]
	}
	return otherwise
}

// number returns a word of the prompt as a number up to limit.
func (s *script) number(i, otherwise, limit int) int {
	n, err := strconv.Atoi(s.arg(i, ""))
	if err != nil || n < 0 {
		return otherwise
	}
	return min(n, limit)
}

func (s *script) echo(context.Context) error { return s.say("echo:" + firstText(s.Blocks())) }

// sayJSON answers with a value as JSON, without HTML in mind.
func (s *script) sayJSON(v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	return s.say(strings.TrimSuffix(b.String(), "\n"))
}

// code returns the code of an error that the client answered with, and what it
// would be for one that was cancelled.
func code(err error) int {
	if we, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return we.Code
	}
	if errors.Is(err, context.Canceled) {
		return jsonrpc.CodeRequestCancelled
	}
	return 0
}
