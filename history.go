package acp

import (
	"strings"

	"github.com/goacp/acp/acpv2"
)

const (
	historyBytes   = 1 << 20
	historyUpdates = 4096
)

// A history is what a session without a ResumeSession hook remembers of itself,
// so that it can be replayed as long as it is open. Beyond 1 MiB or 4,096
// updates the oldest are forgotten. It is counted roughly.
type history struct {
	items []historyItem
	bytes int
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

// add remembers an update, unless it only concerns the moment.
func (h *history) add(u SessionUpdate) {
	size := historyItemBytes
	switch u := u.(type) {
	case StateUpdate, *Notice, *UsageUpdate, *AvailableCommandsUpdate, *ConfigOptionUpdate:
		return
	case *UserMessage:
		blocks, _ := u.Content.Get()
		size += contentBytes(blocks...)
	case *AgentMessage:
		blocks, _ := u.Content.Get()
		size += contentBytes(blocks...)
	case *AgentMessageChunk:
		size += contentBytes(u.Content)
	case *ToolCallContentChunk:
		size += toolContentBytes(u.Content)
	case *ToolCallUpdate:
		size += len(u.RawInput) + len(u.RawOutput)
		content, _ := u.Content.Get()
		for _, c := range content {
			size += toolContentBytes(c)
		}
	case *TerminalOutputChunk:
		size += len(u.Data)
	}
	h.push(historyItem{update: u, bytes: size})
}

func (h *history) push(i historyItem) {
	h.items = append(h.items, i)
	h.bytes += i.bytes
	h.trim()
}

// trim forgets the oldest, but never the latest.
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

// all returns what is remembered, oldest first, messages in one piece.
func (h *history) all() []SessionUpdate {
	out := make([]SessionUpdate, 0, len(h.items))
	for _, i := range h.items {
		switch {
		case i.text == nil:
			out = append(out, i.update)
		case i.kind == agentThought:
			out = append(out, &AgentThought{MessageID: i.id, Content: acpv2.Set([]ContentBlock{Text(i.text.String())})})
		default:
			out = append(out, &AgentMessage{MessageID: i.id, Content: acpv2.Set([]ContentBlock{Text(i.text.String())})})
		}
	}
	return out
}

func contentBytes(blocks ...ContentBlock) (n int) {
	for _, b := range blocks {
		switch b := b.(type) {
		case *TextContent:
			n += len(b.Text)
		case *ImageContent:
			n += len(b.Data)
		case *AudioContent:
			n += len(b.Data)
		case *EmbeddedResource:
			switch r := b.Resource.(type) {
			case *TextResourceContents:
				n += len(r.Text)
			case *BlobResourceContents:
				n += len(r.Blob)
			}
		case *UnknownContentBlock:
			n += len(b.Raw)
		}
		n += historyItemBytes
	}
	return n
}

func toolContentBytes(c ToolCallContent) int {
	switch c := c.(type) {
	case *BlockContent:
		return contentBytes(c.Content)
	case *Diff:
		n := historyItemBytes * (1 + len(c.Changes))
		if c.Patch != nil {
			n += len(c.Patch.Text)
		}
		return n
	}
	return historyItemBytes
}
