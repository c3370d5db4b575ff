package backend

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/transcript"
)

// maxReason bounds the reason why a turn ended, in cells.
const maxReason = 1000

// turnEnd describes how a turn has ended, and who ended it. It separates what the agent has said
// from what this program says.
func (s *Session) turnEnd(ctx context.Context, res *acp.Result, err error) *transcript.TurnEnd {
	s.mu.Lock()
	others := s.turns
	user := s.cancelled > 0
	if user {
		s.cancelled--
	}
	s.mu.Unlock()
	end := &transcript.TurnEnd{By: transcript.EndedByAgent, Others: others}
	if res != nil {
		end.StopReason = res.StopReason
	}
	if res != nil && end.StopReason == acp.StopCancelled && !user {
		var stop history.End
		if ownmeta.Read(res.Meta, &stop); stop.By != "" { // another client of a gateway
			end.By, end.Who = transcript.EndedByUser, stop.By
		}
	}
	if text := s.host.refused(err); text != "" {
		end.Error = text
	} else if said, ok := errors.AsType[*jsonrpc.Error](err); ok {
		if end.Said = said.Error(); s.host.cfg.Agent.Gateway {
			end.Said, end.Error = "", words(said)
		}
	} else if failure, ok := errors.AsType[*acp.Failure](err); ok {
		end.Said = failure.Message
	}
	cause := context.Cause(ctx)
	cancelled := end.StopReason == acp.StopCancelled || end.StopReason == "" && end.Said == ""
	switch {
	case cause != nil && cancelled:
		s.endedHere(end, cause)
	case user && cancelled:
		end.By = transcript.EndedByUser
	case errors.Is(err, jsonrpc.ErrClosed) && s.host.life.Err() != nil:
		end.By = transcript.EndedByClient
	case errors.Is(err, jsonrpc.ErrClosed):
		end.By, end.Said = transcript.EndedByCrash, ""
		why := strings.TrimPrefix(s.host.coded("prompt", err).Error(), "prompt: ")
		end.Error = safetext.Line(why, maxReason)
	case err != nil && end.Said == "" && end.Error == "":
		end.Error = safetext.Line(err.Error(), maxReason)
	}
	return end
}

// words returns what a gateway has answered, without the code, which says nothing to people.
func words(said *jsonrpc.Error) string {
	text := cmp.Or(said.Message, said.Error())
	if _, ok := errors.AsType[*jsonrpc.Failure](said); ok {
		return safetext.Line(text, maxReason)
	}
	if detail := said.Detail(); detail != "" && said.Message != "" {
		text += ": " + detail
	}
	return safetext.Line(text, maxReason)
}

// endOfOthers returns how a turn has ended that is not one of this client, if a gateway says so with an update; nil
// if the agent had finished.
func (s *Session) endOfOthers(u acp.SessionUpdate) *transcript.TurnEnd {
	idle, ok := u.(*acp.IdleStateUpdate)
	if !ok || !s.host.cfg.Agent.Gateway || !history.IsOthers(idle) {
		return nil
	}
	end := history.EndOf(idle)
	if end == nil || end.IsClean() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	end.Others = s.turns
	return end
}

// putEnd records the end of a turn that is not one of this client.
func (s *Session) putEnd(end *transcript.TurnEnd) {
	s.journal.put(item{turn: end, event: turnEvent(end)})
}

// endedHere returns who has ended a turn by ending its context.
func (s *Session) endedHere(end *transcript.TurnEnd, cause error) {
	switch code := exitcode.Of(cause); {
	case code == exitcode.Timeout || errors.Is(cause, context.DeadlineExceeded):
		end.By = transcript.EndedByTimeout
	case code == exitcode.Cancelled || errors.Is(cause, context.Canceled):
		end.By = transcript.EndedByUser
		return
	default: // a limit of the cost, for example
		end.By = transcript.EndedByClient
	}
	if !errors.Is(cause, context.DeadlineExceeded) {
		end.Error = safetext.Line(cause.Error(), maxReason)
	}
}

func turnEvent(end *transcript.TurnEnd) store.Event {
	data, err := json.Marshal(records.EndOf(end))
	if err != nil {
		return store.Event{}
	}
	return store.Event{At: time.Now(), Kind: journal.KindEnd, Data: data}
}
