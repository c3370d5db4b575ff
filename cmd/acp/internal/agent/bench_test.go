package agent

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acptest"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/anthropic"
	"github.com/goacp/acp/cmd/acp/internal/model/openai"
	"github.com/goacp/acp/cmd/acp/internal/model/stream"
)

// canned answers each request with the same stream, and counts the bytes.
type canned struct {
	body  string
	bytes int64
}

func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		return nil, err
	}
	c.bytes += n
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(c.body)), Request: r}, nil
}

const (
	cannedMessages = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"m\",\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"ok\"}}\n\n" +
		"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	cannedChat = "data: {\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"ok\"},\"finish_reason\":null}]}\n\n" +
		"data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	cannedResponses = "data: {\"type\":\"response.created\",\"response\":{\"id\":\"r\"}}\n\n" +
		"data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"i\",\"role\":\"assistant\",\"content\":[]}}\n\n" +
		"data: {\"type\":\"response.output_text.delta\",\"item_id\":\"i\",\"output_index\":0,\"content_index\":0,\"delta\":\"ok\"}\n\n" +
		"data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"i\",\"role\":\"assistant\",\"status\":\"completed\",\"content\":[{\"type\":\"output_text\",\"text\":\"ok\"}]}}\n\n" +
		"data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"usage\":{\"input_tokens\":10,\"output_tokens\":2}}}\n\n"
)

// BenchmarkList is a page of 50 of 1,000 sessions, each of which has 100 KiB.
func BenchmarkList(b *testing.B) {
	s := stored(b.TempDir())
	said := journal.Draft{Kind: journal.KindUpdate, Data: []byte(`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"` + strings.Repeat("x", 1000) + `"}}`)}
	for i := range 1000 {
		k, err := s.create(acp.SessionID(fmt.Sprint("s", i)), about{Cwd: "/x", Title: fmt.Sprint("title ", i)})
		if err == nil {
			err = errors.Join(k.add(slices.Repeat([]journal.Draft{said}, 100)...), k.sync(), k.close())
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		page, err := s.list(new(acp.SessionQuery), pageSize)
		if err != nil || len(page.Sessions) != pageSize || !strings.HasPrefix(page.Sessions[0].Title, "title ") {
			b.Fatal(page, err)
		}
	}
}

// BenchmarkKeep is an update that is kept before it is sent.
func BenchmarkKeep(b *testing.B) {
	s := stored(b.TempDir())
	k, err := s.create("s", about{Cwd: "/x"})
	if err != nil {
		b.Fatal(err)
	}
	k.most = math.MaxInt64
	u := &acp.AgentMessageChunk{MessageID: "m", Content: acp.Text("a few words of it")}
	for b.Loop() {
		d, err := updateDraft(u)
		if err = errors.Join(err, k.add(d)); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if err := k.close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkStep is a request of the agent with 200,000 tokens of history: from the prompt
// of an editor over the journal to the whole request, and back to the editor. After 1,000
// steps it has to be as fast as after 10: compare -benchtime 10x and 1000x.
func BenchmarkStep(b *testing.B) {
	for _, api := range []string{"messages", "responses", "chat"} {
		b.Run(api, func(b *testing.B) {
			rt := &canned{}
			info := model.Info{Provider: "p", ID: "m", Name: "m", Context: 1_000_000}
			client := stream.Client{HTTP: &http.Client{Transport: rt}}
			var m model.Model
			var err error
			switch api {
			case "messages":
				rt.body = cannedMessages
				m, err = anthropic.New(anthropic.Config{Info: info, Key: "k", Client: client})
			case "responses":
				rt.body = cannedResponses
				m, err = openai.NewResponses(openai.Config{Info: info, Key: "k", Client: client})
			default:
				rt.body = cannedChat
				m, err = openai.NewChat(openai.Config{Info: info, Key: "k", Client: client})
			}
			if err != nil {
				b.Fatal(err)
			}
			agent, err := New(Options{Dir: b.TempDir(), Models: fixed{m: m}})
			if err != nil {
				b.Fatal(err)
			}
			conn, _ := acptest.Pair(b, agent, &acp.Client{MaxVersion: 2})
			s, err := conn.NewSession(b.Context(), acp.SessionConfig{Cwd: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			ask := func(text string) {
				if _, err := s.Prompt(b.Context(), acp.Text(text)).Wait(); err != nil {
					b.Fatal(err)
				}
			}
			for i := range 100 { // 100 × 8 kB
				ask(fmt.Sprintf("%d ", i) + strings.Repeat("func main() { println(42) } ", 290))
			}
			rt.bytes = 0
			b.ReportAllocs()
			for b.Loop() {
				ask("And now?")
			}
			b.StopTimer()
			b.ReportMetric(float64(rt.bytes)/float64(b.N)/1000, "request-kB")
			var mem runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&mem)
			b.ReportMetric(float64(mem.HeapAlloc)/(1<<20), "heap-MiB")
		})
	}
}
