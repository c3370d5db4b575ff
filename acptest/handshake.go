package acptest

import (
	"context"
	"io"
	"strconv"

	"github.com/goacp/acp/internal/pattern"
)

// scripted is the implementation that scripts report.
const scripted = `{"name":"scripted","version":"0"}`

// agentInitialize answers initialize with the version of the script. A client
// that asked for a higher one may do what clients do then: ask again, here or
// on a new stream, or continue.
func (p *player) agentInitialize(ctx context.Context, s *step) error {
	for {
		v, err := p.request(ctx, s, "initialize")
		if err != nil {
			return err
		}
		asked := v.Get("params").Get("protocolVersion")
		if asked == nil || asked.Kind != pattern.Scalar {
			return p.unexpected(s, v.Text, "initialize without a protocolVersion")
		}
		if err := p.answer(ctx, s, v, p.initializeResult(s)); err != nil {
			return err
		}
		if n, err := strconv.Atoi(asked.Text); err != nil || n <= s.number {
			return nil
		}
		frame, err := p.read(ctx, p.timeout)
		switch {
		case err == io.EOF:
			if err := p.open(ctx); err != nil {
				return p.failed(s, err, " where the client has to ask for the version it was offered")
			}
			continue
		case err != nil:
			return p.failed(s, err, " after the client was offered another version")
		}
		p.back = frame
		if v, err := pattern.Parse(frame); err != nil || v.StringAt("method") != "initialize" {
			return nil
		}
	}
}

func (p *player) initializeResult(s *step) string {
	version := strconv.Itoa(s.number)
	if s.number < 2 {
		return s.val.With(p.known, "protocolVersion", version, "agentInfo", scripted, "agentCapabilities", "{}")
	}
	return s.val.With(p.known, "protocolVersion", version, "info", scripted, "capabilities", "{}")
}

func (p *player) agentSession(ctx context.Context, s *step) error {
	v, err := p.request(ctx, s, "session/new")
	if err != nil {
		return err
	}
	id := pattern.Quote(s.arg)
	p.known[s.arg] = &pattern.Value{Kind: pattern.String, Text: id, Str: s.arg}
	return p.answer(ctx, s, v, s.val.With(p.known, "sessionId", id))
}

// request waits for a request of a method.
func (p *player) request(ctx context.Context, s *step, method string) (*pattern.Value, error) {
	frame, err := p.read(ctx, p.timeout)
	if err != nil {
		return nil, p.failed(s, err, " where a request "+method+" is expected")
	}
	v, err := pattern.Parse(frame)
	if err != nil || v.StringAt("method") != method || v.Get("id") == nil {
		return nil, p.unexpected(s, frame, "something else than a request "+method)
	}
	return v, nil
}

func (p *player) answer(ctx context.Context, s *step, request *pattern.Value, result string) error {
	return p.send(ctx, s, `{"jsonrpc":"2.0","id":`+request.Get("id").Text+`,"result":`+result+`}`)
}

func (p *player) clientInitialize(ctx context.Context, s *step) error {
	version := strconv.Itoa(s.number)
	params := s.val.With(p.known, "protocolVersion", version, "info", scripted, "capabilities", "{}")
	if s.number < 2 {
		params = s.val.With(p.known, "protocolVersion", version, "clientInfo", scripted, "clientCapabilities", "{}")
	}
	v, err := p.call(ctx, s, "initialize", params)
	if err != nil {
		return err
	}
	if got := v.Get("result").Get("protocolVersion"); got == nil || got.Text != version {
		return p.unexpected(s, v.Text, "the agent does not speak version "+version)
	}
	return nil
}

func (p *player) clientSession(ctx context.Context, s *step) error {
	v, err := p.call(ctx, s, "session/new", s.val.With(p.known, "cwd", `"/"`, "mcpServers", "[]"))
	if err != nil {
		return err
	}
	id := v.Get("result").Get("sessionId")
	if id == nil {
		return p.unexpected(s, v.Text, "an answer without a sessionId")
	}
	p.known[s.arg] = id
	return nil
}

// call makes a request and waits for its answer. Notifications that come before
// it are skipped.
func (p *player) call(ctx context.Context, s *step, method, params string) (*pattern.Value, error) {
	id := pattern.Quote("line " + strconv.Itoa(s.line))
	if err := p.send(ctx, s, `{"jsonrpc":"2.0","id":`+id+`,"method":`+pattern.Quote(method)+`,"params":`+params+`}`); err != nil {
		return nil, err
	}
	for {
		frame, err := p.read(ctx, p.timeout)
		if err != nil {
			return nil, p.failed(s, err, " where the answer to "+method+" is expected")
		}
		v, err := pattern.Parse(frame)
		switch {
		case err == nil && v.Get("method") != nil && v.Get("id") == nil:
			continue
		case err != nil || v.Get("id") == nil || v.Get("id").Text != id:
			return nil, p.unexpected(s, frame, "something else than the answer to "+method)
		case v.Get("result") == nil:
			return nil, p.unexpected(s, frame, method+" failed")
		}
		return v, nil
	}
}
