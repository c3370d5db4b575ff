package agent

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
)

// maxToldBlocks bounds how many blocks of a prompt are listed.
const maxToldBlocks = 20

// plainAnswer is the answer to a prompt that is not a command: what this agent is, and
// what it was given.
func plainAnswer(blocks []acp.ContentBlock, looked bool) string {
	var given []string
	for _, b := range blocks {
		if what := given1(b); what != "" {
			given = append(given, "- "+what)
		}
	}
	var b strings.Builder
	b.WriteString("I have no language model yet, so I cannot answer that. What I can do are commands: `/read`, `/search`, `/edit`, `/run` and more; `/help` lists them. In `acp chat`, `/agent` leads to other agents.")
	if looked {
		b.WriteString("\n\nTo give me a model, set `ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, `GEMINI_API_KEY`, `OPENROUTER_API_KEY` or `DEEPSEEK_API_KEY`, or start Ollama, llama.cpp, LM Studio or vLLM on this machine, and begin a new session.\n`/key` asks for a key here; `acp models` says what was found.")
	}
	if len(given) > 0 {
		b.WriteString("\n\nApart from the text, I was given:\n\n")
		more := len(given) - maxToldBlocks
		b.WriteString(strings.Join(given[:min(len(given), maxToldBlocks)], "\n"))
		if more > 0 {
			fmt.Fprintf(&b, "\n- and %d more", more)
		}
	}
	return b.String()
}

// given1 says what a block of a prompt is; "" for text.
func given1(b acp.ContentBlock) string {
	switch b := b.(type) {
	case *acp.TextContent:
		return ""
	case *acp.ResourceLink:
		what := "a link to " + prose.Inline(b.URI)
		if b.Name != "" && !strings.HasSuffix(b.URI, b.Name) {
			what += " named " + prose.Inline(b.Name)
		}
		return what
	case *acp.ImageContent:
		return fmt.Sprintf("an image, %s, %s", prose.Inline(b.MIMEType), decoded(b.Data))
	case *acp.AudioContent:
		return fmt.Sprintf("a recording, %s, %s", prose.Inline(b.MIMEType), decoded(b.Data))
	case *acp.EmbeddedResource:
		address, kind, bytes := resource(b)
		return fmt.Sprintf("the contents of %s: %s, %s", prose.Inline(address), kind, prose.Size(int64(bytes)))
	}
	return "something that I do not know"
}

// decoded says how many bytes base64 stands for.
func decoded(data string) string {
	data = strings.TrimRight(data, "=")
	return prose.Size(int64(base64.RawStdEncoding.DecodedLen(len(data))))
}

// resource says what an embedded resource is.
func resource(b *acp.EmbeddedResource) (address, kind string, bytes int) {
	switch r := b.Resource.(type) {
	case *acp.TextResourceContents:
		return r.URI, fmt.Sprintf("text, %d lines", prose.Lines(r.Text)), len(r.Text)
	case *acp.BlobResourceContents:
		return r.URI, "bytes", base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(r.Blob, "=")))
	}
	return "", "something that I do not know", 0
}
