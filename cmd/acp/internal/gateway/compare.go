package gateway

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

// maxCompared bounds the turns of a session that are compared with what its agent remembers.
const maxCompared = 16 << 10

// An account is what was said in a session as its log has it, or as its agent has replayed it: the text of each turn,
// without white space, as hashes. The zero value is empty.
type account struct {
	turns  []accountTurn
	prompt acp.MessageID // of the last prompt
	over   bool          // there were too many turns
}

type accountTurn struct {
	asked, said hash.Hash
	answered    bool // the agent has said something
	broken      bool // the turn did not end well, so the agent may remember it in another way
}

func (a *account) last() *accountTurn {
	if len(a.turns) == 0 {
		return nil
	}
	return &a.turns[len(a.turns)-1]
}

// begin begins a turn.
func (a *account) begin(id acp.MessageID) *accountTurn {
	if len(a.turns) == maxCompared {
		a.over = true
		return nil
	}
	a.turns = append(a.turns, accountTurn{asked: sha256.New(), said: sha256.New()})
	a.prompt = id
	return a.last()
}

// user takes what a user has said. Pieces that follow each other are one prompt.
func (a *account) user(id acp.MessageID, blocks ...acp.ContentBlock) {
	t := a.last()
	if t == nil || t.answered || id != "" && a.prompt != "" && id != a.prompt {
		t = a.begin(id)
	}
	if t != nil && !a.over {
		hashText(t.asked, blocks)
	}
}

// agent takes what the agent has said.
func (a *account) agent(blocks ...acp.ContentBlock) {
	if t := a.last(); t != nil && !a.over {
		t.answered = true
		hashText(t.said, blocks)
	}
}

// add takes an update.
func (a *account) add(u acp.SessionUpdate) {
	switch u := u.(type) {
	case *acp.UserMessage:
		if content, ok := u.Content.Get(); ok {
			a.user(u.MessageID, content...)
		}
	case *acp.UserMessageChunk:
		a.user(u.MessageID, u.Content)
	case *acp.AgentMessage:
		if content, ok := u.Content.Get(); ok {
			a.agent(content...)
		}
	case *acp.AgentMessageChunk:
		a.agent(u.Content)
	case *acp.ToolCallUpdate, *acp.AgentThoughtChunk, *acp.AgentThought:
		a.agent()
	}
}

// hashText adds the text of blocks, without white space.
func hashText(h hash.Hash, blocks []acp.ContentBlock) {
	for _, b := range blocks {
		if text, ok := b.(*acp.TextContent); ok {
			for field := range strings.FieldsSeq(text.Text) {
				_, _ = h.Write([]byte(field))
			}
		}
	}
}

// difference says how what an agent remembers differs from the log; "" if it does not. handed is set if the agent's
// session began with a transcript, which is part of its first prompt.
func (a *account) difference(log *account, handed bool) string {
	i := 0
	for n, want := range log.turns {
		var have *accountTurn
		if i < len(a.turns) {
			have = &a.turns[i]
		}
		asked := have != nil && (n == 0 && handed || sameHash(have.asked, want.asked))
		switch {
		case want.broken && !asked: // it never got the prompt
		case have == nil:
			return fmt.Sprintf("It remembers %d turns of %d.", n, len(log.turns))
		case !asked:
			return fmt.Sprintf("Its turn %d is another one than here.", n+1)
		case !want.broken && !sameHash(have.said, want.said):
			return fmt.Sprintf("Its answer in turn %d is another one than here.", n+1)
		default:
			i++
		}
	}
	if more := len(a.turns) - i; more > 0 && !a.over && !log.over {
		return fmt.Sprintf("It remembers %d turns more than there are here.", more)
	}
	return ""
}

func sameHash(a, b hash.Hash) bool { return string(a.Sum(nil)) == string(b.Sum(nil)) }

// account returns what the log has of the turns that have ended after a record.
func (s *session) account(ctx context.Context, after uint64) (*account, error) {
	a := new(account)
	var open bool
	err := s.g.cfg.Log.Read(ctx, s.id, after, func(r engine.Record) error {
		switch r.Kind {
		case kindPrompt:
			p, err := records.DecodePrompt(r.Data)
			if err != nil {
				return err
			}
			if a.begin(acp.MessageID(p.ID)) != nil {
				hashText(a.last().asked, p.Content)
			}
			open = true
		case kindUpdate:
			u, err := records.DecodeUpdate(r.Data)
			if err != nil {
				return err
			}
			a.add(u)
		case kindEnd:
			end, err := records.DecodeEnd(r.Data)
			if err != nil {
				return err
			}
			if t := a.last(); t != nil && open {
				t.broken = end.Lost || end.Error != "" || end.Stop == acp.StopCancelled
			}
			open = false
		}
		return nil
	})
	if open && len(a.turns) > 0 && !a.over {
		a.turns = a.turns[:len(a.turns)-1] // it runs
	}
	return a, err
}

// compare says in the session if the agent has replayed another history than there is. What it has replayed is not
// shown: the log is what counts.
func (b *backend) compare(ctx context.Context, known attributes) error {
	b.mu.Lock()
	replayed := b.replayed
	b.replayed = account{}
	b.mu.Unlock()
	if known.Since == nil {
		return nil
	}
	log, err := b.s.account(ctx, *known.Since)
	if errors.As(err, new(*engine.DamageError)) {
		return nil // it is the log that lacks something
	}
	if err != nil {
		return err
	}
	said := replayed.difference(log, *known.Since > 0)
	if said == known.Differs {
		return nil // which it was before
	}
	if err := b.s.keep(ctx, func(a *attributes) { a.Differs = said }); err != nil || said == "" {
		return err
	}
	return b.s.notice(ctx, acp.NoticeSeverityWarning, "The agent remembers this session in another way.", said+" What is shown here is what was said.")
}
