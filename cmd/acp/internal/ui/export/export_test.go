package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/transcript"
)

var update = flag.Bool("update", false, "write the golden files")

var session = store.Session{
	Key: store.Key{Agent: "gemini", ID: "s-1"}, Command: []string{"gemini", "--acp"}, Cwd: "/home/me/project",
	Title: "Fix the *flaky* test", Protocol: 2, Turns: 1,
	Created: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC), Updated: time.Date(2026, 11, 21, 10, 5, 0, 0, time.UTC),
}

// apply folds updates, one in a line, into a conversation.
func apply(t *testing.T, c *transcript.Conversation, updates string) {
	t.Helper()
	for l := range strings.Lines(updates) {
		if l = strings.TrimSpace(l); l == "" {
			continue
		}
		u, err := acpv2.UnmarshalSessionUpdate([]byte(l))
		if err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		c.Apply(u)
	}
}

func sample(t *testing.T) *transcript.Snapshot {
	t.Helper()
	c := transcript.New(transcript.Config{})
	apply(t, c, `
{"sessionUpdate":"user_message","messageId":"u1","content":[{"type":"text","text":"Why does it fail?\n"},{"type":"resource_link","name":"main.go","uri":"file:///home/me/project/main.go"},{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="}]}
{"sessionUpdate":"agent_thought_chunk","messageId":"t1","content":{"type":"text","text":"Let me *look*.\nFirst the test."}}
{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[{"content":"Read","priority":"high","status":"completed"},{"content":"Fix <it>","priority":"high","status":"in_progress"},{"content":"Run","priority":"low","status":"pending"}]}}
{"sessionUpdate":"tool_call_update","toolCallId":"c1","title":"Edit main.go","kind":"edit","status":"completed","locations":[{"path":"/home/me/project/main.go","line":3}],"content":[{"type":"diff","changes":[{"operation":"modify","path":"/home/me/project/main.go"}],"patch":{"format":"git_patch","text":"diff --git a/main.go b/main.go\n--- a/main.go\n+++ b/main.go\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"}}]}
{"sessionUpdate":"terminal_update","terminalId":"x","command":"go test ./...","exitStatus":{"exitCode":1}}
{"sessionUpdate":"terminal_output_chunk","terminalId":"x","data":"G1szMW1GQUlMG1swbQpvaw=="}
{"sessionUpdate":"tool_call_update","toolCallId":"c2","title":"Run the tests","kind":"execute","status":"failed","content":[{"type":"terminal","terminalId":"x"},{"type":"content","content":{"type":"text","text":"one `+"```"+` fence"}}]}
{"sessionUpdate":"tool_call_update","toolCallId":"c3","title":"Search","kind":"search","status":"in_progress","rawInput":{"q":"x"}}
{"sessionUpdate":"notice","severity":"warning","title":"Slow","description":"The model is slow."}
{"sessionUpdate":"agent_message_chunk","messageId":"a1","content":{"type":"text","text":"It was **racy**:\n\n`+"```go\\nx := 1 < 2\\n```"+`\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n- [x] done\n\n[docs](https://example.com/a?b=1&c=2)"}}
{"sessionUpdate":"usage_update","used":1200,"size":200000,"cost":{"amount":0.0125,"currency":"USD"}}
{"sessionUpdate":"_future","x":1}
`)
	var req acpv2.RequestPermissionRequest
	if err := json.Unmarshal([]byte(`{"sessionId":"s-1","title":"Run a command?","subject":{"type":"command","command":"rm -r build","cwd":"/p"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}`), &req); err != nil {
		t.Fatal(err)
	}
	seq, _ := c.Asked(&req)
	c.Answered(seq, &acpv2.SelectedPermissionOutcome{OptionID: "y"})
	c.Asked(&req)
	c.OutputAt("gap", 0, []byte("begin\n"))
	c.OutputAt("gap", 1000, []byte("end\n"))
	for _, end := range []transcript.TurnEnd{
		{StopReason: acpv2.StopReasonEndTurn, By: transcript.EndedByAgent, Others: 1},
		{StopReason: acpv2.StopReasonCancelled, By: transcript.EndedByUser, Others: 1},
		{StopReason: acpv2.StopReasonCancelled, By: transcript.EndedByTimeout, Error: "the time limit of 2s was reached", Others: 1},
		{StopReason: acpv2.StopReasonMaxTokens, By: transcript.EndedByAgent, Others: 1},
		{StopReason: acpv2.StopReasonRefusal, By: transcript.EndedByAgent, Others: 1},
		{By: transcript.EndedByAgent, Said: "no \x1b[31mquota <left>", Others: 1},
		{By: transcript.EndedByCrash, Error: "gemini exited with status 3", Others: 1},
		{By: transcript.EndedByClient},
	} {
		c.TurnEnded(&end)
	}
	return c.Snapshot()
}

func write(t *testing.T, f Format, s store.Session, snapshot *transcript.Snapshot) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, f, s, snapshot); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	snapshot := sample(t)
	for f, ext := range map[Format]string{Markdown: "md", HTML: "html", JSON: "json", Text: "txt"} {
		t.Run(string(f), func(t *testing.T) {
			got := write(t, f, session, snapshot)
			name := filepath.Join("testdata", "sample."+ext)
			if *update {
				if err := os.MkdirAll("testdata", 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.ReplaceAll(string(want), "\r\n", "\n"), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestJSON(t *testing.T) {
	snapshot := sample(t)
	var d Document
	if err := json.Unmarshal([]byte(write(t, JSON, session, snapshot)), &d); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(SessionOf(session), d.Session); diff != "" || d.Version != 1 {
		t.Errorf("version %d, %s", d.Version, diff)
	}
	var back transcript.Snapshot
	if err := json.Unmarshal(d.Conversation, &back); err != nil {
		t.Fatal(err)
	}
	if back.Len() != snapshot.Len() || back.Text() != snapshot.Text() {
		t.Errorf("%d entries come back of %d", back.Len(), snapshot.Len())
	}
}

// hostile is what an agent may try.
const hostile = "\x1b[2J\x1b]0;title\x07\u009b31mred \u202egnp.exe\u2066 <script>alert(1)</script> <img src=x onerror=alert(1)> " +
	"[a](javascript:alert(1)) [b](data:text/html,x) [c](JaVaScRiPt&#58;alert(1)) ![i](http://evil.example/p.png) [![n](http://evil.example/q.png)](https://ok.example) " +
	"<javascript:alert(1)> \"onmouseover=x </title></pre></style> {{.}} [f](file:///etc/passwd) [r](/relative) <a href=x style=y>z</a>\n\n<iframe src=//x></iframe>\n\n```\"><b>\n</code></pre>\n```\n"

func hostileSnapshot(t *testing.T) *transcript.Snapshot {
	t.Helper()
	c := transcript.New(transcript.Config{})
	h, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	apply(t, c, strings.ReplaceAll(`
{"sessionUpdate":"user_message","messageId":"u","content":[{"type":"text","text":@@},{"type":"resource_link","name":@@,"uri":"javascript:alert(1)"},{"type":"resource_link","name":@@,"uri":"https://ok.example/\" onclick=alert(1) x=\"<b>"},{"type":"image","mimeType":"image/svg+xml","data":"PHN2Zz4="},{"type":"image","mimeType":"image/png","data":"\" onerror=alert(1)"},{"type":"image","mimeType":@@,"data":"x","uri":@@}]}
{"sessionUpdate":"agent_message_chunk","messageId":@@,"content":{"type":"text","text":@@}}
{"sessionUpdate":"agent_thought_chunk","messageId":"t","content":{"type":"text","text":@@}}
{"sessionUpdate":"tool_call_update","toolCallId":@@,"title":@@,"kind":@@,"status":@@,"locations":[{"path":@@}],"content":[{"type":"diff","changes":[{"operation":"move","oldPath":@@,"path":@@}],"patch":{"format":@@,"text":@@}},{"type":"content","content":{"type":"text","text":@@}}]}
{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[{"content":@@,"priority":@@,"status":@@}]}}
{"sessionUpdate":"plan_update","plan":{"type":"markdown","planId":"q","content":@@}}
{"sessionUpdate":"plan_update","plan":{"type":"file","planId":"r","uri":@@}}
{"sessionUpdate":"terminal_update","terminalId":"x","command":@@}
{"sessionUpdate":"notice","severity":@@,"title":@@,"description":@@}
{"sessionUpdate":"session_info_update","title":@@}
`, "@@", string(h)))
	return c.Snapshot()
}

// TestHostile looks at what becomes of texts that would do harm.
func TestHostile(t *testing.T) {
	snapshot := hostileSnapshot(t)
	s := session
	s.Title, s.Agent, s.Cwd = hostile, hostile, hostile
	for _, f := range Formats {
		got := write(t, f, s, snapshot)
		for i, r := range got {
			if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r == 0x202e || r == 0x2066 {
				t.Errorf("%s: character %U in %q", f, r, got[max(i-20, 0):i+20])
				break
			}
		}
	}
	page := write(t, HTML, s, snapshot)
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.StartTagToken, html.SelfClosingTagToken:
			tok := z.Token()
			switch tok.Data {
			case "script", "iframe", "img", "object", "embed", "form", "base", "svg", "link", "b":
				t.Errorf("element %v", tok)
			}
			for _, a := range tok.Attr {
				if strings.HasPrefix(a.Key, "on") {
					t.Errorf("attribute in %v", tok)
				}
				if (a.Key == "href" || a.Key == "src") && !regexp.MustCompile(`^(https?|mailto):`).MatchString(a.Val) {
					t.Errorf("address in %v", tok)
				}
			}
		}
	}
}

func TestDiffLines(t *testing.T) {
	got := diffLines("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n--- not a file\n+++ nor this\n same\ndiff --git a/y b/y\n--- a/y\n")
	var classes []string
	for _, l := range got {
		classes = append(classes, l.Class)
	}
	if diff := cmp.Diff([]string{"file", "file", "file", "hunk", "del", "add", "", "file", "file"}, classes); diff != "" {
		t.Error(diff)
	}
}

func TestFormats(t *testing.T) {
	for name, want := range map[string]Format{"a.md": Markdown, "b/c.HTML": HTML, "x.json": JSON, "y.txt": Text} {
		if got, err := FormatOf(name); got != want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"a", "a.docx", ""} {
		if _, err := FormatOf(name); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLarge has a message of 10 MB, which is shown as it is.
func TestLarge(t *testing.T) {
	c := transcript.New(transcript.Config{EntryBytes: 32 << 20, TotalBytes: 256 << 20})
	text := strings.Repeat("[[[[*_<x ", 10<<20/9)
	c.Apply(&acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text(text)})
	for _, f := range Formats {
		if got := write(t, f, session, c.Snapshot()); len(got) < len(text) {
			t.Errorf("%s: %d bytes of %d", f, len(got), len(text))
		}
	}
}

func TestLinks(t *testing.T) {
	const rel = ` rel="nofollow noreferrer"`
	for _, tt := range []struct{ in, want string }{
		{"[a](https://x.example/?q=1&r=2 \"t\")", `<a href="https://x.example/?q=1&amp;r=2" title="t"` + rel + `>a</a>`},
		{"[a](HTTP://x.example)", `<a href="HTTP://x.example"` + rel + `>a</a>`},
		{"[*a*](mailto:x@y.example)", `<a href="mailto:x@y.example"` + rel + `><em>a</em></a>`},
		{"<x@y.example>", `<a href="mailto:x@y.example"` + rel + `>x@y.example</a>`},
		{"www.x.example", `<a href="http://www.x.example"` + rel + `>www.x.example</a>`},
		{"[*a* & b](javascript:alert(1))", `<em>a</em> &amp; b`},
		{"[a](java&#115;cript:alert(1))", "a"},
		{"[a](&#9;javascript:x)", "a"},
		{"[a](javascript:x#https://ok.example)", "a"},
		{"[a](//x.example)", "a"},
		{"[a](x.html)", "a"},
		{"[a](data:text/html,x)", "a"},
		{"[a]()", "a"},
		{"<javascript:x&amp;\\*y*>", `javascript:x&amp;amp;\*y*`},
		{"![a](https://x.example/p.png)", `<a href="https://x.example/p.png"` + rel + `>image: a</a>`},
		{"![a](p.png)", "image: a"},
		{"[![a](p.png)](https://x.example)", `<a href="https://x.example"` + rel + `>image: a</a>`},
		// Links do not nest, in whatever they are.
		{"[*![a](https://y.example)*](https://x.example)", `<a href="https://x.example"` + rel + `><em>image: a</em></a>`},
		{"![a [b](https://y.example) <https://z.example>](https://x.example)", `<a href="https://x.example"` + rel + `>image: a b https://z.example</a>`},
		{"![a [b](https://y.example)](p.png)", `image: a <a href="https://y.example"` + rel + `>b</a>`},
		{"![![a](https://y.example)](https://x.example)", `<a href="https://x.example"` + rel + `>image: image: a</a>`},
		{"![](https://x.example)", `<a href="https://x.example"` + rel + `>image: </a>`},
		// What browsers would take for a scheme.
		{"[a](<java\tscript:x>)", "a"},
		{"[a](<\x01javascript:x>)", "a"},
		{"[a](< https://x.example>)", "a"},
		{"[a](&Tab;javascript:x)", "a"},
		{"[a](javascript&colon;x)", "a"},
		{"[a](java&NewLine;script:x)", "a"},
		{"[a](&#x6a;avascript:x)", "a"},
		{"[a](\\javascript:x)", "a"},
		{"[a](\u200bjavascript:x)", "a"},
		{"[a](vbscript:x)", "a"},
		{"[a](blob:https://x.example/y)", "a"},
		{"[a](view-source:https://x.example)", "a"},
		{"[a](https:x.example)", "a"},
		{"[a](https:\\\\x.example)", "a"},
		{"[a](http\u017f://x.example)", "a"},
		{"[a](mailto&#58;x)", `<a href="mailto:x"` + rel + `>a</a>`},
		{"[a](&#104;ttps://x.example)", `<a href="https://x.example"` + rel + `>a</a>`},
		{"<http:&#47;&#47;x>", "http:&amp;#47;&amp;#47;x"},
		{"<ftp://x.example>", "ftp://x.example"},
		{"ftp://x.example", "ftp://x.example"},
		{"[a]\n\n[a]: javascript:x", "a"},
		{"[a][]\n\n[a]: https://x.example 'b'", `<a href="https://x.example" title="b"` + rel + `>a</a>`},
		// What would end an attribute.
		{`[a](https://x.example/"onclick=x '"><b>')`, `<a href="https://x.example/%22onclick=x" title="&quot;&gt;&lt;b&gt;"` + rel + `>a</a>`},
		{`[a](https://x.example "&quot;onclick=x&#34;")`, `<a href="https://x.example" title="&quot;onclick=x&quot;"` + rel + `>a</a>`},
		{"[a](<https://x.example/&quot;&gt;>)", `<a href="https://x.example/%22%3E"` + rel + `>a</a>`},
		{`<https://x.example/"x>`, `<a href="https://x.example/%22x"` + rel + `>https://x.example/&quot;x</a>`},
		{"[a](https://x.example){onclick=x}", `<a href="https://x.example"` + rel + `>a</a>{onclick=x}`},
	} {
		if got, want := string(renderMarkdown(tt.in)), "<p>"+tt.want+"</p>\n"; got != want {
			t.Errorf("%s becomes\n%s, want\n%s", tt.in, got, want)
		}
	}
}

// TestReferences: what was made safe does not become harmful when its references
// are resolved.
func TestReferences(t *testing.T) {
	for in, want := range map[string]string{
		"a&#x202e;b&#8294;c":   "<p>abc</p>",
		"&rlm;a&lrm;&#xE0041;": "<p>a</p>",
		"&#27;[31ma&#155;b":    "<p>[31ma</p>",
		"&amp;#27;&lt;b&gt;":   "<p>&amp;#27;&lt;b&gt;</p>",
		"&#27;&lt;b>":          "<p>b&gt;</p>",
		"`&#27;`":              "<p><code>&amp;#27;</code></p>",
		"[a&#27;](https://x.example '&#x2066;b&#27;]0;c\nd')": `<p><a href="https://x.example" title="b` + "\n" + `d" rel="nofollow noreferrer">a</a></p>`,
		"[a](https://x.example/&#x202e;)":                     `<p><a href="https://x.example/%E2%80%AE" rel="nofollow noreferrer">a</a></p>`,
		"&quot;&copy;&Auml; \\&amp;":                          "<p>&quot;©Ä &amp;amp;</p>",
	} {
		if got := string(renderMarkdown(in)); got != want+"\n" {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// TestClasses: no text chooses the classes of what it becomes.
func TestClasses(t *testing.T) {
	for info, want := range map[string]string{
		"go": "go", "c++ x": "c++", "objective-c": "objective-c", "": "",
		"a&#32;terminal": "", "a&Tab;terminal": "", "a\u00a0b": "", `a"onclick=x`: "", strings.Repeat("a", 41): "",
	} {
		pre := "<pre><code>"
		if want != "" {
			pre = `<pre data-language="` + want + `"><code class="language-` + want + `">`
		}
		if got, want := string(renderMarkdown("~~~"+info+"\nx\n~~~")), pre+"x\n</code></pre>\n"; got != want {
			t.Errorf("%q becomes %s, want %s", info, got, want)
		}
	}
}

// TestDrawn: formulas and drawings are shown as their source, with the name of the language.
func TestDrawn(t *testing.T) {
	for in, want := range map[string]string{
		"```mermaid\ngraph TD\n  A --> B\n```":     `<pre data-language="mermaid"><code class="language-mermaid">graph TD` + "\n  A --&gt; B\n</code></pre>\n",
		"so\n$$\na_1 * b_2 * c < \\frac{x}{y}\n$$": "<p>so</p>\n" + `<pre data-language="math"><code class="language-math">a_1 * b_2 * c &lt; \frac{x}{y}` + "\n</code></pre>\n",
		"\\[ a \\]": `<pre data-language="math"><code class="language-math">a` + "\n</code></pre>\n",
	} {
		if got := string(renderMarkdown(in)); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	if !strings.Contains(string(style), "pre[data-language]::before") {
		t.Error("the page does not show the names")
	}
}

// TestManyReferences: many links to what is written once do not make a page that
// is many times as long as the text.
func TestManyReferences(t *testing.T) {
	for _, s := range []string{
		"[a]: https://x.example/" + strings.Repeat("x", maxRendered/2) + "\n\n" + strings.Repeat("[a]", maxRendered/8),
		"[a]: https://x.example '" + strings.Repeat("x", maxRendered/2) + "'\n\n" + strings.Repeat("![a]", maxRendered/10),
	} {
		if n := len(renderMarkdown(s)); n < len(s)/8 || n > 8*len(s) {
			t.Errorf("%d bytes become %d", len(s), n)
		}
	}
}

// harmless says which elements and which of their attributes Markdown may become.
var harmless = map[string]string{
	"p": "", "br": "", "hr": "", "h1": "", "h2": "", "h3": "", "h4": "", "h5": "", "h6": "", "blockquote": "", "pre": "", "em": "", "strong": "",
	"del": "", "ul": "", "li": "", "table": "", "thead": "", "tbody": "", "tr": "", "ol": "start", "code": "class", "th": "style align", "td": "style align",
	"input": "type checked disabled", "a": "href rel title",
}

// FuzzMarkdown looks for Markdown that becomes something that is not harmless.
func FuzzMarkdown(f *testing.F) {
	f.Add(hostile)
	f.Add("&#27;]0;a&#x202e; [&lrm;b](https://x.example '&#155;c') ![[d](http://e)](f)")
	f.Add("[a]: javascript:x\n[a] ![a] [![b](c)](d)")
	f.Add("# a {onclick=x}\n- [x] b\n\n3. c\n\n|a|\n|:-:|\n|b|\n\n```\"go x=\nd\n```\nftp://x.example <x:y> ~~e~~ x@y.example")
	f.Fuzz(func(t *testing.T, s string) {
		got := string(renderMarkdown(safetext.Text(s)))
		if safe := safetext.Text(got); safe != got {
			t.Errorf("%q becomes %q, which is not safe", s, got)
		}
		z := html.NewTokenizer(strings.NewReader(got))
		inLink := false
		for {
			switch z.Next() {
			case html.ErrorToken:
				return
			case html.EndTagToken:
				if name, _ := z.TagName(); string(name) == "a" {
					inLink = false
				}
			case html.StartTagToken, html.SelfClosingTagToken:
				tok := z.Token()
				if tok.Data == "a" {
					if inLink || len(tok.Attr) < 2 {
						t.Errorf("%q becomes %v", s, tok)
					}
					inLink = true
				}
				attributes, ok := harmless[tok.Data]
				if !ok {
					t.Errorf("%q becomes %v", s, tok)
				}
				for _, a := range tok.Attr {
					if !slices.Contains(strings.Fields(attributes), a.Key) ||
						a.Key == "href" && !regexp.MustCompile(`(?i)^(https?://|mailto:)`).MatchString(a.Val) ||
						a.Key == "class" && !regexp.MustCompile(`^language-[a-zA-Z0-9+#._-]{0,40}$`).MatchString(a.Val) ||
						a.Key == "rel" && a.Val != "nofollow noreferrer" || a.Key == "style" && !regexp.MustCompile(`^text-align:(left|right|center)$`).MatchString(a.Val) {
						t.Errorf("%q becomes %v", s, tok)
					}
				}
			case html.CommentToken:
				if c := string(z.Raw()); c != "<!-- raw HTML omitted -->" {
					t.Errorf("%q becomes %s", s, c)
				}
			}
		}
	})
}
