package tool

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/seek"
)

// grown is a session with files; a path that ends with a slash is a directory.
func grown(t *testing.T, files map[string]string) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{cwd: dir, ignores: true}
	for name, text := range files {
		parent, _ := filepath.Split(name)
		if err := os.MkdirAll(filepath.Join(dir, parent), 0o700); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "/") {
			b.write(t, name, text)
		}
	}
	return b
}

// TestSearch: what a search and a find look at, show, and say.
func TestSearch(t *testing.T) {
	long := strings.Repeat("x", 5000) + "needle" + strings.Repeat("y", 5000)
	b := grown(t, map[string]string{
		".gitignore": "node_modules/\n/out\n*.gen\n", "a.ts": "one\nneedle 1\nthree\nfour\nneedle 2\n", "b.tsx": "needle\n", "c.go": "needle()\nfunc f() {}\n",
		"sub/d.ts": "needle d\n", "sub/deep/e.go": "nothing\n", "node_modules/m/m.js": "needle m\nonly here\n", "out/o.js": "only here\n", "x.gen": "only here\n",
		"all/.gitignore": "*\n", "all/f": "needle\n", "empty/": "", "crlf.txt": "first\r\nneedle crlf\r\nlast\r\n", "bin.dat": "needle\x00\n", "long.js": long + "\n",
		"huge.txt": "needle\n" + strings.Repeat("0123456789abcde\n", MaxSearchFile/16),
	})
	use := b.sessionOf(t, &acp.Client{MaxVersion: 2})
	for _, test := range []struct {
		tool   Tool
		input  string
		want   string // in the text
		not    string // in it; "" is anything
		failed bool
	}{
		{Search, `{"pattern":"needle [12]"}`, "a.ts:2: needle 1\na.ts:5: needle 2\n2 matching lines in 1 file. 1 file larger than 4.0 MiB left out.", "", false},
		{Search, `{"pattern":"needle","glob":"*.{ts,tsx}"}`, "a.ts:2: needle 1\na.ts:5: needle 2\nb.tsx:1: needle\nsub/d.ts:1: needle d\n4 matching lines in 3 files.", "c.go", false},
		{Search, `{"pattern":"needle","glob":"sub"}`, "sub/d.ts:1: needle d\n1 matching line in 1 file.", "", false},
		{Search, `{"pattern":"needle","path":"sub"}`, "sub/d.ts:1: needle d\n1 matching line in 1 file.", "", false},
		{Search, `{"pattern":"needle","path":"sub/d.ts"}`, "sub/d.ts:1: needle d\n1 matching line in 1 file.", "", false},
		{Search, `{"pattern":"needle","path":"sub","glob":"sub/*.ts"}`, "1 matching line", "", false},
		{Search, `{"pattern":"needle","glob":"!*.{js,txt}"}`, "needle()", "huge", false},
		{Search, `{"pattern":"needle crlf$"}`, "crlf.txt:2: needle crlf\n1 matching line", "", false},
		{Search, `{"pattern":"^needle\\(\\)$"}`, "c.go:1: needle()\n1 matching line in 1 file.", "", false},
		{Search, `{"pattern":"needle","glob":"long.js"}`, "…" + strings.Repeat("x", 100) + "needle" + strings.Repeat("y", 194) + "…\n", "", false},
		// What was ignored is said when nothing is found, and searched on request.
		{Search, `{"pattern":"only here"}`, "Nothing found in 8 files. Not looked at, since .gitignore files name them: 2 directories (node_modules/, out/) and 3 files; ignored: true looks at them, too. Left out: 1 file larger than 4.0 MiB, 1 file not text.", "", false},
		{Search, `{"pattern":"only here","ignored":true}`, "node_modules/m/m.js:2: only here\nout/o.js:1: only here\nx.gen:1: only here\n3 matching lines in 3 files.", "", false},
		{Search, `{"pattern":"only here","path":"node_modules"}`, "node_modules/m/m.js:2: only here\n1 matching line", "", false},
		// Nothing looked at is an error that says why.
		{Search, `{"pattern":"needle","path":"none"}`, "`none`: there is no such file", "", true},
		{Search, `{"pattern":"needle","path":"empty"}`, "There are no files in `empty`.", "", true},
		{Search, `{"pattern":"needle","path":"all"}`, "All that is in `all` is ignored, since .gitignore files name it: 2 files; ignored: true looks at it, too.", "", true},
		{Search, `{"pattern":"needle","glob":"*.rs"}`, "None of the 10 files in `.` fits the glob `*.rs`. Not looked at, since .gitignore files name them: 2 directories", "slash", true},
		{Search, `{"pattern":"needle","glob":"lib/*.ts"}`, "None of the 10 files in `.` fits the glob `lib/*.ts`, which has a slash and so is a whole path from there on (**/ is any directories)", "", true},
		{Search, `{"pattern":"needle","glob":"*.dat"}`, "No file in `.` could be searched. Left out: 1 file not text.", "", true},
		// Context, files, counts.
		{Search, `{"pattern":"needle","path":"a.ts","context":1}`, "a.ts-1- one\na.ts:2: needle 1\na.ts-3- three\na.ts-4- four\na.ts:5: needle 2\n2 matching lines", "--", false},
		{Search, `{"pattern":"one|four","path":"a.ts","context":1}`, "a.ts:1: one\na.ts-2- needle 1\na.ts-3- three\na.ts:4: four\na.ts-5- needle 2\n", "--", false},
		{Search, `{"pattern":"^one|2$","path":"a.ts","context":1}`, "a.ts:1: one\na.ts-2- needle 1\n--\na.ts-4- four\na.ts:5: needle 2\n", "", false},
		{Search, `{"pattern":"needle","glob":"*.{ts,tsx}","show":"files"}`, "a.ts\nb.tsx\nsub/d.ts\n3 files with matching lines.", ":", false},
		{Search, `{"pattern":"needle","glob":"*.{ts,tsx}","show":"count"}`, "a.ts: 2\nb.tsx: 1\nsub/d.ts: 1\n4 matching lines in 3 files.", "", false},
		{Search, `{"pattern":"a\nb"}`, "", "", true},
		{Search, `{"pattern":"a\\nb"}`, "the pattern has a line break in it", "", true},
		{Search, `{"pattern":"a","show":"lots"}`, "show is lines, files or count", "", true},
		{Find, `{"glob":"*.{ts,tsx}"}`, "3 files found.", "", false},
		{Find, `{"glob":"sub"}`, "2 files found.", "", false},
		{Find, `{"glob":"**/*.{go,js}"}`, "3 files found.", "node_modules", false},
		{Find, `{"glob":"*.js","ignored":true}`, "3 files found.", "", false},
		{Find, `{"glob":"*","path":"sub/deep"}`, "sub/deep/e.go\n1 file found.", "", false},
		{Find, `{"glob":"*.rs"}`, "0 files found: none of the 10 files in `.` fits the glob `*.rs`. Not looked at, since .gitignore files name them: 2 directories", "", false},
		{Find, `{"glob":"*","path":"none"}`, "there is no such file", "", true},
	} {
		res := use(test.tool, test.input)
		text := res.Text
		if text == "" {
			text = res.Said
		}
		text = filepath.ToSlash(text)
		failed := res.Status != acp.ToolCallStatusCompleted
		if !strings.Contains(text, test.want) || test.not != "" && strings.Contains(text, test.not) || failed != test.failed {
			t.Errorf("%s %s: %s\n%s\nwant\n%s", test.tool.Name, test.input, res.Status, text, test.want)
		}
	}
	abs, err := json.Marshal(filepath.Join(b.cwd, "sub", "*.ts"))
	if err != nil {
		t.Fatal(err)
	}
	has(t, use(Search, `{"pattern":"needle","glob":`+string(abs)+`}`).Text, "1 matching line in 1 file.")
	b.asked = nil
	b.refuse = true
	outside, err := json.Marshal(filepath.Dir(b.cwd))
	if err != nil {
		t.Fatal(err)
	}
	has(t, use(Search, `{"pattern":"needle","path":`+string(outside)+`}`).Said, "Not permitted.")
	has(t, use(Find, `{"glob":"*","path":`+string(outside)+`}`).Said, "Not permitted.")
	if len(b.asked) != 2 || b.asked[0] != AboutRead {
		t.Errorf("asked about %v", b.asked)
	}
}

// TestSearchBounds: what is shown is bounded, the same each time, and what is left out is said.
func TestSearchBounds(t *testing.T) {
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("d%03d/f.txt", i)] = strings.Repeat("match\n", 5)
	}
	b := grown(t, files)
	use := b.sessionOf(t, &acp.Client{MaxVersion: 2})
	res := use(Search, `{"pattern":"match"}`)
	has(t, res.Text, "1500 matching lines in 300 files. Only the first 200 are shown, in the order of paths; show: count, a path or a glob tells more.")
	if !strings.HasPrefix(filepath.ToSlash(res.Text), "d000/f.txt:1: match\n") || strings.Count(res.Text, ": match\n") != MaxMatches || !strings.Contains(filepath.ToSlash(res.Text), "d039/f.txt:5: match\n1500") {
		t.Errorf("%.3000s", res.Text)
	}
	for range 5 {
		if again := use(Search, `{"pattern":"match"}`); again.Text != res.Text {
			t.Errorf("another time: %s", again.Text)
		}
	}
	res = use(Search, `{"pattern":"match","show":"files"}`)
	has(t, res.Text, "300 files with matching lines. Only the first 200 files are shown")
	b.write(t, "wide.txt", strings.Repeat("wide "+strings.Repeat("é", 250)+"\n", 300))
	res = use(Search, `{"pattern":"wide"}`)
	has(t, res.Text, "300 matching lines in 1 file. Only the first 39 are shown")
	if len(res.Text) > maxResult+300 {
		t.Errorf("%d bytes", len(res.Text))
	}
	b.write(t, "lots.txt", strings.Repeat("q\n", maxCounted+50_000))
	has(t, use(Search, `{"pattern":"q"}`).Text, "More than 100000 matching lines: the search was ended, so not all files were looked at. Only 200 are shown")
	for i := range MaxFound + 50 {
		b.write(t, fmt.Sprintf("d000/g%d", i), "")
	}
	has(t, use(Find, `{"glob":"g*"}`).Text, "550 files found. Only the 500 that were changed last are shown.")
}

// TestSearchTime: a search that takes too long says so.
func TestSearchTime(t *testing.T) {
	b := grown(t, map[string]string{"a.txt": "x\n"})
	s, err := newScope(b, "", "", false)
	if err != nil {
		t.Fatal(err)
	}
	s.within = time.Nanosecond
	p, err := seek.Compile("x")
	if err != nil {
		t.Fatal(err)
	}
	q := newSearch(s, p, showLines, 0)
	if err := q.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	has(t, q.summary(), "It was ended after 1ns, so not all files were looked at: give a path or a glob.")
}

// TestSearchRules: rules hold for each file, also for a path that is asked for.
func TestSearchRules(t *testing.T) {
	b := grown(t, map[string]string{"a.txt": "word\n", "secret.txt": "word\n", "sub/secret.txt": "word\n"})
	b.deny = "secret"
	use := b.sessionOf(t, &acp.Client{MaxVersion: 2})
	has(t, use(Search, `{"pattern":"word"}`).Text, "a.txt:1: word\n1 matching line in 1 file. Left out, since a rule forbids reading: 2 files.")
	has(t, use(Search, `{"pattern":"word","path":"sub"}`).Text, "")
	has(t, use(Search, `{"pattern":"word","path":"sub"}`).Said, "No file in `sub` could be searched. Left out, since a rule forbids reading: 1 file.")
	if got := use(Search, `{"pattern":"word","path":"secret.txt"}`); strings.Contains(got.Text, "word") {
		t.Error(got.Text)
	}
}

// TestSearchAsked: one file that a rule wants asked about is searched once the user has allowed it, and not before; among
// others it is left out.
func TestSearchAsked(t *testing.T) {
	for _, kind := range []acp.ToolKind{acp.ToolKindRead, acp.ToolKindSearch} {
		b := grown(t, map[string]string{"a.txt": "word\n", "secret.txt": "word\n"})
		b.ask, b.askKind = "secret", kind
		use := b.sessionOf(t, &acp.Client{MaxVersion: 2})
		want := map[acp.ToolKind]About{acp.ToolKindRead: AboutRead, acp.ToolKindSearch: AboutSearch}[kind]
		for _, tool := range []Tool{Search, Find} {
			b.asked = nil
			input := map[string]string{Search.Name: `{"pattern":"word","path":"secret.txt"}`, Find.Name: `{"glob":"*","path":"secret.txt"}`}
			got := use(tool, input[tool.Name])
			has(t, got.Text, "secret.txt")
			if len(b.asked) == 0 || b.asked[0] != want || strings.Contains(got.Text, "Left out") {
				t.Errorf("%s, %s: asked %q: %s", kind, tool.Name, b.asked, got.Text)
			}
		}
		b.asked = nil
		has(t, use(Search, `{"pattern":"word"}`).Text, "a.txt:1: word\n1 matching line in 1 file. Left out, since a rule wants you to be asked")
		b.refuse = true
		if got := use(Search, `{"pattern":"word","path":"secret.txt"}`); strings.Contains(got.Text, "word") || len(b.asked) != 1 {
			t.Errorf("asked %q: %s", b.asked, got.Text)
		}
	}
}
