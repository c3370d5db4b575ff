package modeltest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/model"
)

// Growing holds that the bytes of requests only grow: over a long conversation with
// texts, images, thoughts and tools, each body up to the end of its messages is the
// beginning of the next one. The model answers with done, a whole answer of its stream.
// End is what follows the messages, such as "],".
func Growing(t *testing.T, end string, thought model.Opaque, open func(http.RoundTripper) model.Model) {
	t.Helper()
	const steps = 50
	rng := rand.New(rand.NewPCG(1, 2))
	prefix := &model.Prefix{System: "Do <what> is & said.", Tools: []model.Tool{
		{Name: "read", Description: "Read a file.", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
		{Name: "run", Description: "Run a command.", Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}}}`)},
	}}
	s := &Server{Answers: []Answer{{Status: http.StatusBadRequest, Body: "{}"}}}
	m := open(s)
	var messages []*model.Message
	for step := range steps {
		user := &model.Message{Role: model.User}
		if step > 0 {
			last := messages[len(messages)-1]
			for _, p := range last.Parts {
				if u, ok := p.(*model.ToolUse); ok {
					user.Parts = append(user.Parts, &model.ToolResult{ID: u.ID, Failed: rng.IntN(4) == 0, Parts: randomParts(rng)})
				}
			}
		}
		if len(user.Parts) == 0 || rng.IntN(3) == 0 {
			user.Parts = append(user.Parts, randomParts(rng)...)
		}
		messages = append(messages, user)
		r := &model.Request{Prefix: prefix, Messages: messages, CacheKey: "k"}
		for range m.Generate(t.Context(), r) { //nolint:revive // the request is what counts
		}
		messages = append(messages, randomAnswer(rng, step, thought))
	}
	bodies := s.Bodies()
	if len(bodies) != steps {
		t.Fatalf("%d requests, want %d", len(bodies), steps)
	}
	for i := 1; i < len(bodies); i++ {
		cut := strings.LastIndex(bodies[i-1], end)
		if cut < 0 {
			t.Fatalf("request %d has no %q:\n%s", i-1, end, bodies[i-1])
		}
		if !strings.HasPrefix(bodies[i], bodies[i-1][:cut]) {
			t.Fatalf("request %d is not the beginning of the next one:\n%s\n\n%s", i-1, bodies[i-1][:cut], bodies[i])
		}
		if !json.Valid([]byte(bodies[i])) {
			t.Fatalf("request %d is not JSON:\n%s", i, bodies[i])
		}
	}
}

// PixelData is the data of [Pixel] in base64.
const PixelData = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// Pixel is an image that can be sent.
func Pixel() *model.Image {
	data, err := base64.StdEncoding.DecodeString(PixelData)
	if err != nil {
		panic(err) // of a literal
	}
	return &model.Image{MIMEType: "image/png", Data: data}
}

func randomParts(rng *rand.Rand) []model.Part {
	parts := []model.Part{&model.Text{Text: fmt.Sprintf("text %d <b> \u2028 \xff 😀 \"quoted\"\r\n", rng.IntN(100))}}
	switch rng.IntN(4) {
	case 0:
		parts = append(parts, Pixel())
	case 1:
		parts = append(parts, &model.Text{})
	}
	return parts
}

func randomAnswer(rng *rand.Rand, step int, thought model.Opaque) *model.Message {
	m := &model.Message{Role: model.Assistant}
	if rng.IntN(2) == 0 {
		m.Parts = append(m.Parts, &model.Thought{Text: "hm", Opaque: thought}, &model.Thought{Text: "of another"})
	}
	m.Parts = append(m.Parts, &model.Text{Text: fmt.Sprintf("answer %d", step)})
	for i := range rng.IntN(4) {
		m.Parts = append(m.Parts, &model.ToolUse{ID: fmt.Sprintf("call:%d/%d", step, i), Name: "read", Input: json.RawMessage(fmt.Sprintf(`{"path":"<%d>"}`, i))})
	}
	return m
}
