//go:build unix

package page

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp/internal/long"
)

// pixel is a picture.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// TestParts: a transcript consists of the parts that the page of the gateway has, under the policy of this page, and what
// was opened stays open while the conversation goes on.
func TestParts(t *testing.T) {
	s, tb := serve(t, Options{},
		said(0, chunk("s", "agent_message_chunk", "# Heading\n\n```go\nfunc main() {}\n```\n")),
		said(1, update("s", `{"sessionUpdate":"agent_message_chunk","content":{"type":"image","mimeType":"image/png","data":"`+pixel+`"}}`)),
		said(2, update("s", `{"sessionUpdate":"tool_call","toolCallId":"c","title":"Read","kind":"read","status":"completed","rawInput":{"path":"/x"}}`)),
		said(3, update("s", `{"sessionUpdate":"tool_call","toolCallId":"d","title":"Edit","kind":"edit","status":"completed","content":[{"type":"diff","path":"/f","oldText":"one two\n","newText":"one three\n"}]}`)),
	)
	tb.Until(`document.getElementById('count-frames').innerText === '4'`)
	tb.Press("2")
	for _, is := range []string{
		`document.querySelector('.conversation .markdown .level-1')?.innerText === 'Heading'`,
		`document.querySelector('.conversation .code .hl-keyword')?.innerText === 'func'`, // from a chunk that comes later
		`document.querySelector('.conversation img.picture')?.naturalWidth === 1`,
		`document.querySelector('.conversation .diff .new mark')?.innerText === 'three'`,
		`document.querySelector('.conversation .tool details')?.open === false`,
	} {
		tb.Until(is)
	}
	tb.Eval(`document.querySelector('.conversation .tool summary').click()`, nil)
	tb.Until(`document.querySelector('.conversation .tool .body details.other')`)
	tb.Eval(`document.querySelector('.conversation .tool .body details.other summary').click()`, nil)
	s.Record(said(5, chunk("s", "agent_message_chunk", "More.")))
	tb.Until(`document.querySelector('.conversation').innerText.includes('More.')`)
	tb.Until(`document.querySelector('.conversation .tool .body details.other').open && document.querySelector('.conversation .tool .json').innerText.includes('/x')`)
}

// TestPrinted: what a command writes has its colours.
func TestPrinted(t *testing.T) {
	printed := base64.StdEncoding.EncodeToString([]byte("\x1b[31mred\x1b[0m\n"))
	_, tb := serve(t, Options{},
		said(0, `>{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2}}`),
		said(1, `<{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2}}`),
		said(2, update("s", `{"sessionUpdate":"terminal_update","terminalId":"t","command":"ls","output":{"data":"`+printed+`"},"exitStatus":{"exitCode":1}}`)),
	)
	tb.Until(`document.getElementById('count-frames').innerText === '3'`)
	tb.Press("2")
	tb.Until(`document.querySelector('.conversation .terminal .exit.bad')?.innerText === 'exit status 1'`)
	tb.Until(`document.querySelector('.conversation .ansi .printed span')?.innerText === 'red'`)
}

// TestAxe: axe finds nothing against any view, in both schemes, narrow and wide.
func TestAxe(t *testing.T) {
	long.Test(t)
	axe, err := os.ReadFile(filepath.Join("..", "..", "web", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		if os.Getenv("ACP_AXE") == "require" {
			t.Fatal(err)
		}
		t.Skip("axe is not there: npm ci in cmd/acp/internal/web")
	}
	_, tb := serve(t, demoOptions(), demo()...)
	tb.Until(`document.querySelectorAll('.row').length > 10`)
	tb.Eval(string(axe)+"; 0", nil)
	for _, width := range []int{360, 1280} {
		tb.Size(width, 800)
		for _, scheme := range []string{"light", "dark"} {
			tb.Scheme(scheme)
			for _, view := range []string{"1", "2", "3"} {
				tb.Press(view)
				if view == "2" {
					tb.Until(`document.querySelectorAll('.conversation article').length > 5`)
				}
				tb.Drawn()
				var found []string
				tb.Eval(`axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations.map((v) => v.impact + " " + v.id + ": " +
					v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200)).join("; ")))`, &found)
				if len(found) > 0 {
					t.Errorf("view %s, %d wide, %s: %s", view, width, scheme, strings.Join(found, "\n"))
				}
			}
		}
	}
}
