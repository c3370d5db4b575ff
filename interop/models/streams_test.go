package models

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicstream "github.com/anthropics/anthropic-sdk-go/packages/ssestream"
	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	openaistream "github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"golang.org/x/tools/txtar"
)

// A reading is what is made of a stream: the text, and the tools with their inputs.
type reading struct {
	Text  string
	Tools []string
}

var (
	partText = regexp.MustCompile(`(?m)^  text ("(?:[^"\\]|\\.)*")`)
	partTool = regexp.MustCompile(`(?m)^  tool \S+ (\S*) (.*?)( malformed)?( opaque .*)?$`)
)

// ours reads a transcript of the agent's own tests. It reports false if the stream is an
// error there, or has a tool whose input is broken.
func ours(t *testing.T, want string) (r reading, ok bool) {
	t.Helper()
	if !strings.Contains(want, "\ndone ") && !strings.HasPrefix(want, "done ") || strings.Contains(want, " malformed\n") {
		return r, false
	}
	for _, m := range partText.FindAllStringSubmatch(want, -1) {
		text, err := strconv.Unquote(m[1])
		if err != nil {
			t.Fatal(err)
		}
		r.Text += text
	}
	for _, m := range partTool.FindAllStringSubmatch(want, -1) {
		r.Tools = append(r.Tools, m[1]+" "+canonical(m[2]))
	}
	return r, true
}

// canonical returns a JSON text as every encoder would write it.
func canonical(text string) string {
	if strings.TrimSpace(text) == "" {
		return "{}"
	}
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	b, _ := json.Marshal(v) // it was decoded
	return string(b)
}

func answerOf(stream string) *http.Response {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(stream))}
}

func readMessages(stream string) (r reading, err error) {
	s := anthropicstream.NewStream[anthropic.MessageStreamEventUnion](anthropicstream.NewDecoder(answerOf(stream)), nil)
	var m anthropic.Message
	for s.Next() {
		if err := m.Accumulate(s.Current()); err != nil {
			return r, err
		}
	}
	for _, b := range m.Content {
		switch b.Type {
		case "text":
			r.Text += b.Text
		case "tool_use":
			r.Tools = append(r.Tools, b.Name+" "+canonical(string(b.Input)))
		}
	}
	return r, s.Err()
}

func readChat(stream string) (r reading, err error) {
	s := openaistream.NewStream[openai.ChatCompletionChunk](openaistream.NewDecoder(answerOf(stream)), nil)
	var acc openai.ChatCompletionAccumulator
	for s.Next() {
		if !acc.AddChunk(s.Current()) {
			return r, errors.New("the chunk does not fit the ones before")
		}
	}
	if len(acc.Choices) > 0 {
		m := acc.Choices[0].Message
		r.Text = m.Content + m.Refusal
		for _, c := range m.ToolCalls {
			r.Tools = append(r.Tools, c.Function.Name+" "+canonical(c.Function.Arguments))
		}
	}
	return r, s.Err()
}

func readResponses(stream string) (r reading, err error) {
	s := openaistream.NewStream[responses.ResponseStreamEventUnion](openaistream.NewDecoder(answerOf(stream)), nil)
	for s.Next() {
		e := s.Current()
		switch e.Type {
		case "response.output_text.delta", "response.refusal.delta":
			r.Text += e.Delta
		case "response.output_item.done":
			if e.Item.Type == "function_call" {
				r.Tools = append(r.Tools, e.Item.Name+" "+canonical(e.Item.AsFunctionCall().Arguments))
			}
		}
	}
	return r, s.Err()
}

// Why some readings differ.
const (
	cut      = "a tool that was cut off at the limit of tokens is left out by the agent"
	late     = "what follows the end is ignored by the agent"
	nameless = "events without a name are ignored by the SDK"
	half     = "the SDK loses characters that are cut between two pieces"
	mixed    = "the SDK makes one tool of several that share an index, as some servers number them"
	older    = "the SDK does not know the older form"
	tag      = "the agent takes thoughts in a tag for thoughts"
	shape    = "the SDK reads only the form that OpenAI sends"
	order    = "the agent keeps the order in which items began"
	end      = "the agent reads what only the end of an item, or of the answer, says"
	stray    = "pieces without their item are ignored by the agent"
)

// TestStreams: the official SDKs make the same of the agent's test streams, wherever both
// make something of them. What differs is listed, with the reason.
func TestStreams(t *testing.T) {
	for _, tc := range []struct {
		file   string
		read   func(string) (reading, error)
		least  int // streams of which both make something
		differ map[string]string
	}{
		{"anthropic/testdata/streams.txtar", readMessages, 45, map[string]string{
			"tool-cut-off":           cut,
			"tool-cut-off-unclosed":  cut,
			"tool-cut-off-empty":     cut,
			"delta-after-block":      late,
			"after-the-end":          late,
			"no-event-names":         nameless,
			"surrogate-cut":          half,
			"surrogate-cut-in-input": half,
		}},
		{"openai/testdata/chat.txtar", readChat, 42, map[string]string{
			"tool-cut-off":               cut,
			"tool-cut-off-second":        cut,
			"tools-all-index-zero":       mixed,
			"tools-without-index":        mixed,
			"tools-without-index-pieces": mixed,
			"tools-without-anything":     mixed,
			"tool-id-repeated":           mixed,
			"legacy-function-call":       older,
			"thoughts-in-tag":            tag,
			"thoughts-in-cut-tag":        tag,
			"thoughts-tag-unclosed":      tag,
			"content-list":               shape,
			"whole-answer":               shape,
		}},
		{"openai/testdata/responses.txtar", readResponses, 42, map[string]string{
			"interleaved":                   order,
			"tool-cut-off-item-done":        cut,
			"tool-arguments-only-in-pieces": end,
			"tool-never-done":               end,
			"refusal-only-at-end":           end,
			"text-only-at-end":              end,
			"text-more-at-end":              end,
			"output-only-in-completed":      end,
			"delta-without-item":            stray,
			"delta-of-other-kind":           stray,
			"delta-no-string":               stray,
			"after-completed":               late,
			"surrogate-cut":                 half,
		}},
	} {
		t.Run(tc.file, func(t *testing.T) {
			a, err := txtar.ParseFile(filepath.Join("..", "..", "cmd", "acp", "internal", "model", filepath.FromSlash(tc.file)))
			if err != nil {
				t.Fatal(err)
			}
			streams, both, failed := map[string]string{}, 0, []string{}
			for _, f := range a.Files {
				if name, ok := strings.CutSuffix(f.Name, ".sse"); ok {
					streams[name] = string(f.Data)
				}
				name, ok := strings.CutSuffix(f.Name, ".want")
				if !ok || streams[name] == "" {
					continue
				}
				want, ok := ours(t, string(f.Data))
				if !ok {
					continue
				}
				got, err := tc.read(streams[name])
				if err != nil {
					failed = append(failed, name)
					continue
				}
				diff := cmp.Diff(want, got)
				_, listed := tc.differ[name]
				switch {
				case diff == "" && listed:
					t.Errorf("%s: there is no difference any more", name)
				case diff != "" && !listed:
					t.Errorf("%s: (-ours +the SDK's)\n%s", name, diff)
				case diff == "":
					both++
				}
			}
			t.Logf("%d streams are the same, %d differ as listed; the SDK refuses %v", both, len(tc.differ), failed)
			if both < tc.least {
				t.Errorf("only %d streams are the same, want %d", both, tc.least)
			}
		})
	}
}
