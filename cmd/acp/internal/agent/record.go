package agent

import (
	"context"
	"encoding/base64"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/process"
)

const (
	// maxKeptOutput is how much of a command's output is kept as it comes, in bytes; of
	// more, only the last outputTail are kept when it has ended. What the client is sent
	// has no bound.
	maxKeptOutput = 4 << 20
	outputTail    = 1 << 20
)

// record keeps what a session is about to send. What cannot be kept is reported by the
// turn, at its end; the conversation continues.
func (b *builtin) record(_ context.Context, s *acp.AgentSession, u acp.SessionUpdate) error {
	v, ok := s.Value.(*session)
	if !ok {
		return nil // it is being opened, or works for another one: that is its own conversation
	}
	switch u := u.(type) {
	case *acp.SessionInfoUpdate:
		// setTitle keeps the title, also while no client has the session open.
	case *acp.IdleStateUpdate:
		_ = v.sync() // a failure is in lost
	case *acp.TerminalOutputChunk:
		v.keepOutput(u)
	case *acp.TerminalUpdate:
		v.keepTerminal(u)
	default:
		if !acp.IsMomentary(u) { // optionChanged keeps the options
			v.keep(u)
		}
	}
	return nil
}

// keptOutput is what is kept of the output of a command that runs.
type keptOutput struct {
	bytes int
	tail  *process.Tail // of a command that has printed more than is kept as it comes
}

// keepOutput keeps a piece of a command's output.
func (s *session) keepOutput(u *acp.TerminalOutputChunk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, err := base64.StdEncoding.DecodeString(u.Data)
	out := s.outputs[u.TerminalID]
	if err != nil || out == nil {
		s.add(u)
		return
	}
	_, _ = out.tail.Write(data) // never fails
	if out.bytes += len(data); out.bytes <= maxKeptOutput {
		s.add(u)
	}
}

// keepTerminal keeps what is said of a command. Before its end it keeps the end of its
// output, if that was too long.
func (s *session) keepTerminal(u *acp.TerminalUpdate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.outputs[u.TerminalID]
	_, ended := u.ExitStatus.Get()
	switch {
	case ended && out != nil:
		delete(s.outputs, u.TerminalID)
		if out.bytes > maxKeptOutput {
			text, _ := out.tail.Text()
			s.add(&acp.TerminalUpdate{TerminalID: u.TerminalID, Output: acp.Set(output(text))})
		}
	case !ended && out == nil:
		if s.outputs == nil {
			s.outputs = map[acp.TerminalID]*keptOutput{}
		}
		s.outputs[u.TerminalID] = &keptOutput{tail: process.NewTail(outputTail)}
	}
	s.add(u)
}

// output is all output of a terminal.
func output(text string) acpv2.TerminalOutput {
	return acpv2.TerminalOutput{Data: base64.StdEncoding.EncodeToString([]byte(text))}
}
