// Package window keeps a conversation within the context window of a model: it estimates
// how many tokens a request has, and makes a short conversation of a long one.
//
// Its functions change no message. A conversation that is made short is a new one, which
// begins with what must not be lost: the user's words as they were, the plan, the files
// that were changed, and what the model itself has written down to continue.
package window

import (
	"encoding/json"

	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/picture"
)

const (
	// firstRatio is how many tokens a byte is taken for before the first answer.
	firstRatio = 0.28
	// imageTokens is what an image is taken for whose size is not known.
	imageTokens = 1500
	// imagePixels are about those of one token, as Anthropic says, and mostImage and leastImage are
	// the bounds: models make larger images smaller, the latest ones to 4784 tokens, and others count
	// at least a tile.
	imagePixels = 750
	mostImage   = 4784
	leastImage  = 256
	// partBytes is what surrounds each part and each message, in bytes.
	partBytes = 16
)

// A Meter estimates how many tokens a conversation has. It learns from what the provider
// says of each answer. The zero value has learned nothing; methods must not be called at
// once.
type Meter struct {
	ratio  float64 // tokens per byte, learned; 0 is firstRatio
	seen   int     // messages of the request that was counted last
	read   int     // its tokens
	answer int     // those of the answer to it
}

// Saw learns from an answer. messages are those of the request.
func (m *Meter) Saw(p *model.Prefix, messages []*model.Message, u model.Usage) {
	if !u.Known || u.Read() == 0 {
		return
	}
	bytes, images := weights(messages)
	bytes += prefixWeight(p)
	// What images have is an estimate: if it is most of all, the rest teaches nothing.
	if tokens := u.Read() - images; tokens >= images && tokens > 0 && bytes > 0 {
		m.ratio = float64(tokens) / float64(bytes)
	}
	m.Resume(len(messages), u)
}

// Resume continues with a request of which only the number of its messages is known. It
// teaches nothing.
func (m *Meter) Resume(messages int, u model.Usage) {
	m.seen, m.read, m.answer = messages, u.Read(), max(u.Output-u.Reasoning, 0)
}

// Shrunk reports whether a server has read much less of a request than of the one before,
// which it continued. A model's thoughts may be left out on purpose, so a little does not
// count.
func (m *Meter) Shrunk(u model.Usage) bool {
	return u.Known && m.seen > 0 && m.read > 1000 && u.Read()*4 < m.read*3
}

// Forget forgets how long the last request was, since the next one does not continue it.
func (m *Meter) Forget() { m.seen, m.read, m.answer = 0, 0, 0 }

// Estimate returns how many tokens a request with these messages has, which continue
// those that were seen last.
func (m *Meter) Estimate(p *model.Prefix, messages []*model.Message) int {
	if m.seen == 0 || m.seen > len(messages) {
		bytes, images := weights(messages)
		return m.tokens(bytes+prefixWeight(p), images)
	}
	total, rest := m.read, messages[m.seen:]
	if len(rest) > 0 && rest[0].Role == model.Assistant {
		total += m.answer
		rest = rest[1:]
	}
	return total + m.tokens(weights(rest))
}

// Of returns how many tokens some messages have.
func (m *Meter) Of(messages ...*model.Message) int { return m.tokens(weights(messages)) }

// Written returns how many tokens some bytes of an answer have, about.
func Written(bytes int) int { return int(float64(bytes) * firstRatio) }

func (m *Meter) tokens(bytes, images int) int {
	r := m.ratio
	if r == 0 {
		r = firstRatio
	}
	return int(float64(bytes)*r) + images
}

// weights returns how many bytes messages have, and tokens of images.
func weights(messages []*model.Message) (bytes, images int) {
	for _, m := range messages {
		b, i := partsWeight(m.Parts)
		bytes += b + partBytes
		images += i
	}
	return bytes, images
}

func partsWeight(parts []model.Part) (bytes, images int) {
	for _, p := range parts {
		bytes += partBytes
		switch p := p.(type) {
		case *model.Text:
			bytes += weight(p.Text)
		case *model.Thought:
			bytes += weight(p.Text)
		case *model.Image:
			images += imageWeight(p)
		case *model.ToolUse:
			bytes += len(p.Name) + weight(string(p.Input))
		case *model.ToolResult:
			b, i := partsWeight(p.Parts)
			bytes, images = bytes+b, images+i
		}
	}
	return bytes, images
}

// imageWeight returns how many tokens an image has, about. The providers' rules differ.
func imageWeight(p *model.Image) int {
	w, h, ok := picture.Size(p.Data)
	if !ok {
		return imageTokens
	}
	if w > mostImage*imagePixels/h { // also where the product would be too large
		return mostImage
	}
	return max(w*h/imagePixels, leastImage)
}

func prefixWeight(p *model.Prefix) int {
	n := weight(p.System)
	for _, t := range p.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema) + partBytes
	}
	return n
}

// dense is where the scripts begin of which each character is about a token, such as Chinese and Japanese, and what is added
// for one: it has three bytes, and counts as five.
const (
	dense     = 0x2E80
	denseMore = 2
)

// weight returns how many bytes of English a text counts as.
func weight(text string) int {
	n := len(text)
	for _, c := range text {
		if c >= dense {
			n += denseMore
		}
	}
	return n
}

// Cut reports whether a server has read so much less than it was sent that it must have left out
// a part of it.
func Cut(p *model.Prefix, messages []*model.Message, u model.Usage) bool {
	bytes, _ := weights(messages)
	bytes += prefixWeight(p)
	// No tokenizer makes one token of ten bytes on average of what programs consist of.
	return u.Known && bytes > 4096 && u.Read() > 0 && u.Read()*10 < bytes
}

// Filled reports whether a server that may not have read all of a request has filled a window with it. Many servers count only
// what was not in their cache, so that a small number is no proof. One that is near the size of the window is, or is exactly a
// size that windows have, and so are two in a row that are large and about the same: before is the one of the answer before,
// or 0.
func Filled(read, before, size int) bool {
	if size > 0 && read >= size*3/4 || read >= 2048 && read&(read-1) == 0 {
		return true
	}
	return read >= 1000 && before > 0 && abs(read-before)*20 <= before
}

func abs(n int) int { return max(n, -n) }

// object returns the input of a tool as an object; nil if it is none.
func object(input json.RawMessage) map[string]any {
	var o map[string]any
	_ = json.Unmarshal(input, &o) // not an object: nil
	return o
}
