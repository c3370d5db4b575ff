package gateway

import (
	"context"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

// handover returns what the agent gets for a prompt: the first time in a session that does not remember
// what was said, that comes first.
func (b *backend) handover(content []acp.ContentBlock) []acp.ContentBlock {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.transcript == "" {
		return content
	}
	b.handed = true
	text := handoverBegins + "\n\n" + b.transcript + "\n\nThe next message of the user follows."
	before := []acp.ContentBlock{acp.Text(text)}
	if len(content) > 0 {
		if skill, ok := content[0].(*acpv2.SkillReference); ok { // which comes before everything else
			before, content = append([]acp.ContentBlock{skill}, before...), content[1:]
		}
	}
	return append(before, content...)
}

// handoverBegins is what an agent gets before a transcript.
const handoverBegins = "This conversation was begun in another session. What was said so far:"

// heard is called when the agent has had a prompt: what was handed over with it need not be handed over again, even if
// it is another process.
func (b *backend) heard(ctx context.Context) {
	b.mu.Lock()
	handed := b.handed
	if handed {
		b.transcript, b.handed = "", false
	}
	b.mu.Unlock()
	if !handed {
		return
	}
	if err := b.s.keep(ctx, func(a *attributes) { a.Handover = false }); err != nil && !b.s.given() {
		b.s.logger().Warn("gateway: an attribute cannot be kept", "error", err)
	}
}

// maxTranscript bounds a transcript, in bytes. The end is what is kept.
const maxTranscript = 64 << 10

// transcript returns what was said in the session up to the last turn that has ended, and the last record of that.
func (s *session) transcript(ctx context.Context) (text string, at uint64, err error) {
	var t strings.Builder
	last, ended := "", 0
	say := func(who, text string) {
		if who != last {
			if t.Len() > 0 {
				t.WriteString("\n\n")
			}
			t.WriteString(who + ": ")
			last = who
		}
		t.WriteString(text)
	}
	err = s.g.cfg.Log.Fold(ctx, s.id, 0, func(r engine.Record) error {
		switch r.Kind {
		case kindPrompt:
			p, err := records.DecodePrompt(r.Data)
			if err != nil {
				return err
			}
			last, ended = "", t.Len()
			for _, block := range p.Content {
				if text, ok := block.(*acp.TextContent); ok {
					say("User", text.Text)
				}
			}
		case kindUpdate:
			u, err := records.DecodeUpdate(r.Data)
			if err != nil {
				return err
			}
			switch u := u.(type) {
			case *acp.AgentMessageChunk:
				if text, ok := u.Content.(*acp.TextContent); ok {
					say("Agent", text.Text)
				}
			case *acp.UserMessage: // for a turn that ran
				if text := strings.TrimSpace(textOf(u.Content.Or(nil))); text != "" {
					say("User", text)
				}
			}
		case kindEnd:
			ended, at = t.Len(), r.Seq
		}
		return nil
	})
	text = t.String()[:ended]
	if len(text) > maxTranscript {
		text = "…" + strings.ToValidUTF8(text[len(text)-maxTranscript:], "")
	}
	return text, at, err
}
