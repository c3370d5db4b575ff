package transcript

import (
	"slices"
	"strings"

	"github.com/goacp/acp/acpv2"
)

// A content is a list of blocks that grows. Copies of it stay as they are while the
// latest grows: what they see of the shared memory is never written again.
type content struct {
	blocks []acpv2.ContentBlock // those that are finished
	text   string               // the text block at the end, to which chunks are added
	open   bool                 // there is one
	run    *run                 // for the writer
}

// A run is the memory behind the latest copy of a content. Another Conversation
// that continues from the same snapshot must not write to it.
type run struct {
	owner  *Conversation
	blocks []acpv2.ContentBlock
	text   strings.Builder
}

// A contentRun is the same for the content of a tool call.
type contentRun struct {
	owner *Conversation
	parts []acpv2.ToolCallContent
}

// plainText returns the text of a block that has only text.
func plainText(b acpv2.ContentBlock) (string, bool) {
	t, ok := b.(*acpv2.TextContent)
	if !ok || t == nil || t.Annotations != nil || len(t.Meta) > 0 || len(t.Unknown) > 0 {
		return "", false
	}
	return t.Text, true
}

func (b *content) writable(c *Conversation) *run {
	if b.run == nil || b.run.owner != c {
		b.run = &run{owner: c, blocks: slices.Clip(b.blocks)}
		b.run.text.WriteString(b.text)
	}
	return b.run
}

func (b *content) addText(c *Conversation, s string) {
	r := b.writable(c)
	r.text.WriteString(s)
	b.text, b.open = r.text.String(), true
}

func (b *content) addBlock(c *Conversation, block acpv2.ContentBlock) {
	r := b.writable(c)
	if b.open {
		r.blocks = append(r.blocks, acpv2.Text(b.text))
		r.text.Reset()
	}
	r.blocks = append(r.blocks, block)
	b.blocks, b.text, b.open = slices.Clip(r.blocks), "", false
}

// contentOf returns the content that a whole list makes.
func contentOf(blocks []acpv2.ContentBlock) content {
	n := len(blocks)
	if n > 0 {
		if text, ok := plainText(blocks[n-1]); ok {
			return content{blocks: slices.Clip(blocks[:n-1]), text: text, open: true}
		}
	}
	return content{blocks: slices.Clip(blocks)}
}

func (b *content) list() []acpv2.ContentBlock {
	if !b.open {
		return b.blocks
	}
	return append(b.blocks, acpv2.Text(b.text))
}

func (b *content) empty() bool { return !b.open && len(b.blocks) == 0 }

func (b *content) patch() (p acpv2.Patch[[]acpv2.ContentBlock]) {
	if !b.empty() {
		p = acpv2.Set(b.list())
	}
	return p
}

func (b *content) joined() string {
	var all []string
	for _, block := range b.blocks {
		if t, ok := block.(*acpv2.TextContent); ok {
			all = append(all, t.Text)
		}
	}
	if len(all) == 0 {
		return b.text
	}
	return strings.Join(append(all, b.text), "")
}
