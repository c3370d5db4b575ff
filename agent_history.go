package acp

import (
	"strings"

	"github.com/goacp/acp/acpv2"
)

const (
	historyBytes   = 1 << 20
	historyUpdates = 4096
)

// A history is what a session without a ResumeSession hook remembers, so that it
// can be replayed while it is open. Beyond 1 MiB or 4,096 updates the oldest are
// dropped.
type history struct {
	items []historyItem
	bytes int

	left leftCalls // of a history that the agent sends
	end  replayEnd // of that
}

// historyItem is an update, or a message of text that is being written.
type historyItem struct {
	update SessionUpdate
	kind   messageKind
	id     MessageID
	text   *strings.Builder
	bytes  int
}

const historyItemBytes = 256

// add remembers an update, unless it is momentary.
func (h *history) add(u SessionUpdate) {
	if IsMomentary(u) {
		return
	}
	text, err := (&acpv2.UpdateSessionNotification{Update: u}).AppendJSON(nil)
	if err != nil {
		return // it is not sent either
	}
	h.push(historyItem{update: u, bytes: historyItemBytes + len(text)})
}

func (h *history) push(i historyItem) {
	h.items = append(h.items, i)
	h.bytes += i.bytes
	h.trim()
}

// trim drops the oldest updates, but never the latest.
func (h *history) trim() {
	drop := 0
	for len(h.items)-drop > 1 && (h.bytes > historyBytes || len(h.items)-drop > historyUpdates) {
		h.bytes -= h.items[drop].bytes
		h.items[drop] = historyItem{}
		drop++
	}
	h.items = h.items[drop:]
}

// addText remembers a piece of a message.
func (h *history) addText(kind messageKind, id MessageID, text string) {
	if n := len(h.items); n > 0 {
		if last := &h.items[n-1]; last.text != nil && last.id == id && last.text.Len() < historyBytes {
			last.text.WriteString(text)
			last.bytes += len(text)
			h.bytes += len(text)
			h.trim()
			return
		}
	}
	b := new(strings.Builder)
	b.WriteString(text)
	h.push(historyItem{kind: kind, id: id, text: b, bytes: historyItemBytes + len(text)})
}

// all returns the updates, oldest first. A message that was written without
// interruption is whole. A message with other updates between its pieces stays in
// pieces, because a whole message would replace those before it.
func (h *history) all() []SessionUpdate {
	pieces := map[MessageID]int{}
	for _, i := range h.items {
		if i.text != nil {
			pieces[i.id]++
		} else if c := chunkOf(i.update); c != nil {
			pieces[c.MessageID]++
		}
	}
	out := make([]SessionUpdate, 0, len(h.items))
	for _, i := range h.items {
		if i.text == nil {
			out = append(out, i.update)
			continue
		}
		whole, text := pieces[i.id] == 1, Text(i.text.String())
		switch {
		case whole && i.kind == agentThought:
			out = append(out, &AgentThought{MessageID: i.id, Content: acpv2.Set([]ContentBlock{text})})
		case whole:
			out = append(out, &AgentMessage{MessageID: i.id, Content: acpv2.Set([]ContentBlock{text})})
		case i.kind == agentThought:
			out = append(out, &AgentThoughtChunk{MessageID: i.id, Content: text})
		default:
			out = append(out, &AgentMessageChunk{MessageID: i.id, Content: text})
		}
	}
	return out
}

// chunkOf returns a piece of the agent's messages.
func chunkOf(u SessionUpdate) *ContentChunk {
	switch u := u.(type) {
	case *AgentMessageChunk:
		return (*ContentChunk)(u)
	case *AgentThoughtChunk:
		return (*ContentChunk)(u)
	}
	return nil
}
