package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acptest"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/cmd/acp/internal/picture"
)

func has(t *testing.T, got string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
}

// session runs several calls in one session, each in a turn of its own.
func (b *bench) sessionOf(t *testing.T, client *acp.Client) func(Tool, string) Result {
	t.Helper()
	var tool Tool
	var input string
	var res Result
	agent := &acp.Agent{
		NewSession: func(context.Context, *acp.AgentSession) error { return nil },
		Prompt: func(ctx context.Context, turn *acp.Turn) (acp.StopReason, error) {
			b.out, b.session = turn.Output, turn.Session()
			var err error
			if res, err = tool.Run(ctx, b, json.RawMessage(input)); err != nil {
				res = Result{Said: "misuse: " + err.Error()}
			}
			return acp.StopEndTurn, nil
		},
	}
	conn, _ := acptest.Pair(t, agent, client)
	s, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: b.cwd})
	if err != nil {
		t.Fatal(err)
	}
	return func(with Tool, in string) Result {
		t.Helper()
		tool, input = with, in
		if _, err := s.Prompt(t.Context(), acp.Text("go")).Wait(); err != nil {
			t.Fatal(err)
		}
		return res
	}
}

// TestJobs: commands that run on are read, waited for and stopped, in later turns too.
func TestJobs(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("commands are of another shell")
	}
	b := &bench{cwd: t.TempDir()}
	use := b.sessionOf(t, &acp.Client{MaxVersion: 2})
	res := use(Run, `{"command":"echo begun; read x < fifo || sleep 100","background":true}`)
	has(t, res.Said, "It runs in the background, as job 1.")
	if len(b.jobs.Running()) != 1 || b.jobs.Ended() != "" {
		t.Error("it does not run")
	}
	res = use(Job, `{"id":"1","do":"stop"}`)
	has(t, res.Said, "ended by signal")
	if got := b.jobs.Ended(); got != "" {
		t.Errorf("what is known is said again: %s", got)
	}
	if len(b.jobs.Running()) != 0 {
		t.Error("it runs still")
	}

	// One that ends while nobody looks.
	use(Run, `{"command":"echo hello; exit 3","background":true}`)
	<-b.jobs.find("2").ended
	has(t, b.jobs.Ended(), "Job 2 (echo hello; exit 3) has ended. The command has failed with exit status 3.")
	res = use(Job, `{"id":"2","do":"wait"}`)
	has(t, res.Text, "exit status 3")
	if res := use(Job, `{"id":"2","do":"read"}`); strings.Contains(res.Text, "hello") {
		t.Errorf("read twice: %s", res.Text)
	}

	// One that takes too long.
	res = use(Run, `{"command":"echo slow; sleep 100","seconds":3}`)
	has(t, res.Text, "slow\n", "It still runs after 3 seconds, and runs on in the background, as job 3.")
	has(t, use(Job, `{"id":"3","do":"wait","seconds":1}`).Text, "It still runs.")
	has(t, use(Job, `{"id":"3","do":"stop"}`).Said, "ended by signal")
	has(t, use(Job, `{"id":"9","do":"read"}`).Said, `there is no job "9"`)

	// The bound.
	for range MaxJobs {
		use(Run, `{"command":"sleep 100","background":true}`)
	}
	res = use(Run, `{"command":"sleep 100","background":true}`)
	has(t, res.Said, "16 commands run in the background already")
	// The session ends them all, which the leak check of the package sees.
}

// TestRunCancelled: a command of a call that is cancelled ends, and is no job.
func TestRunCancelled(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("commands are of another shell")
	}
	b := &bench{cwd: t.TempDir()}
	ctx, cancel := context.WithCancel(t.Context())
	stop := Tool{Name: "run", Run: func(_ context.Context, env Env, in json.RawMessage) (Result, error) {
		cancel()
		return Run.Run(ctx, env, in)
	}}
	res := b.sessionOf(t, &acp.Client{MaxVersion: 2})(stop, `{"command":"sleep 100"}`)
	if res.Status != acp.ToolCallStatusCancelled || len(b.jobs.Running()) > 0 {
		t.Errorf("%+v", res)
	}
}

// TestAsk: the user's answer is what the model gets.
func TestAsk(t *testing.T) {
	var asked *acp.ElicitationRequest
	answer := &acp.ElicitationResponse{}
	client := &acp.Client{MaxVersion: 2, Elicit: func(_ context.Context, r *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
		asked = r
		return answer, nil
	}}
	b := &bench{cwd: t.TempDir()}
	use := b.sessionOf(t, client)
	answer.Action = &acp.ElicitationAcceptAction{Content: map[string]json.RawMessage{"answer": json.RawMessage(`"red"`)}}
	res := use(Ask, `{"question":"Which colour?","options":["red","green"]}`)
	has(t, res.Text, "The user answers: red")
	if asked == nil {
		t.Fatal("nobody was asked")
	}
	answer.Action = &acp.ElicitationDeclineAction{}
	has(t, use(Ask, `{"question":"Which?"}`).Said, "does not want to answer")
	has(t, use(Ask, `{"question":" "}`).Said, "missing")
	has(t, use(Ask, `{"question":"a","options":["b","b"]}`).Said, "there twice")
	nobody := &bench{cwd: b.cwd}
	has(t, nobody.sessionOf(t, &acp.Client{MaxVersion: 2})(Ask, `{"question":"Which?"}`).Said, "Nobody can be asked here")
}

// TestPatch: all places are sought first; then each file is changed as a call of its own.
func TestPatch(t *testing.T) {
	b := &bench{cwd: t.TempDir()}
	b.write(t, "a.txt", "one\ntwo\nthree\n")
	b.write(t, "gone.txt", "x\n")
	b.write(t, "old.txt", "name\n")
	use := b.sessionOf(t, &acp.Client{MaxVersion: 2})
	patch := func(text string) Result {
		t.Helper()
		in, err := json.Marshal(PatchInput{text})
		if err != nil {
			t.Fatal(err)
		}
		return use(Patch, string(in))
	}
	res := patch("*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n*** Add File: new/b.txt\n+b\n*** Delete File: gone.txt\n*** Update File: old.txt\n*** Move to: moved.txt\n@@\n-name\n+other\n*** End Patch\n")
	has(t, res.Said, "Changed `a.txt`: line 2.", "Created `new/b.txt` with 1 line.", "Deleted `gone.txt`.", "Moved `old.txt` to `moved.txt`: line 1.")
	for name, want := range map[string]string{"a.txt": "one\n2\nthree\n", "new/b.txt": "b\n", "moved.txt": "other\n", "gone.txt": "", "old.txt": ""} {
		data, err := os.ReadFile(filepath.Join(b.cwd, name))
		if string(data) != want || want == "" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is %q, %v", name, data, err)
		}
	}
	for text, want := range map[string]string{
		"*** Begin Patch\n*** Update File: moved.txt\n@@\n-other\n+x\n*** Update File: a.txt\n@@\n-nowhere\n+x\n*** End Patch": "Nothing was changed: ",
		"*** Begin Patch\n*** Add File: a.txt\n+x\n*** End Patch":                                                              "exists already",
		"*** Begin Patch\n*** Delete File: none.txt\n*** End Patch":                                                            "there is no such file",
		"*** Begin Patch\n*** Delete File: a.txt\n*** Delete File: ./a.txt\n*** End Patch":                                     "there twice",
		"*** Begin Patch\n*** Delete File: a.txt\n*** Add File: a.txt\n+x\n*** End Patch":                                      "write it with the tool write",
		"*** Begin Patch\n*** Update File: a.txt\n*** Move to: moved.txt\n@@\n-2\n+3\n*** End Patch":                           "exists already",
		"*** Begin Patch\n*** Delete File: a.txt\n-one\n*** End Patch":                                                         "has more lines than the patch deletes",
		"*** Begin Patch\n*** Update File: a.txt\n@@ four\n-one\n+1\n*** End Patch":                                            "the line @@ four is not in the file",
		"no patch": "*** Begin Patch is missing",
	} {
		has(t, patch(text).Said, want)
	}
	if data, _ := os.ReadFile(filepath.Join(b.cwd, "moved.txt")); string(data) != "other\n" {
		t.Errorf("a patch that does not fit has changed a file: %q", data)
	}
	b.refuse = true
	res = patch("*** Begin Patch\n*** Delete File: a.txt\n*** Delete File: moved.txt\n*** End Patch")
	has(t, res.Said, "Not permitted.", "1 further file of the patch were not changed.")
	if _, err := os.Stat(filepath.Join(b.cwd, "a.txt")); err != nil {
		t.Error("it was deleted without permission")
	}
}

// TestPatchCommand: a line that would apply a patch with a command that no shell has is taken
// for the tool. It is nothing else: what the shell would change in it is not done.
func TestPatchCommand(t *testing.T) {
	const body = "*** Begin Patch\n*** Update File: a.txt\n-$one \\d\n+two\n*** End Patch\n"
	for _, tc := range []struct {
		name, line string
		dir        string
		ok         bool
	}{
		{"heredoc", "apply_patch <<'EOF'\n" + body + "EOF", "", true},
		{"quotes", `applypatch <<"PATCH"` + "\n" + body + "PATCH\n", "", true},
		{"argument", "apply_patch '" + body + "'", "", true},
		{"elsewhere", "cd sub/dir && apply_patch <<'EOF'\n" + body + "EOF\n", "sub/dir", true},
		{"the shell would change it", "apply_patch <<EOF\n" + body + "EOF", "", false},
		{"the shell would change it, too", `apply_patch "` + body + `"`, "", false},
		{"and more", "apply_patch <<'EOF'\n" + body + "EOF\ngo test", "", false},
		{"or not", "cd sub || apply_patch <<'EOF'\n" + body + "EOF\n", "", false},
		{"home", "cd ~ && apply_patch <<'EOF'\n" + body + "EOF\n", "", false},
		{"in the background", "apply_patch <<'EOF' &\n" + body + "EOF\n", "", false},
		{"into a file", "apply_patch <<'EOF' >x\n" + body + "EOF\n", "", false},
		{"another command", "cat <<'EOF'\n" + body + "EOF\n", "", false},
		{"a variable", "apply_patch $X <<'EOF'\n" + body + "EOF\n", "", false},
	} {
		patch, dir, ok := patchOf(tc.line)
		if ok != tc.ok || dir != tc.dir || ok && patch != body {
			t.Errorf("%s: %q in %q, %t", tc.name, patch, dir, ok)
		}
	}
	if patch, _, ok := patchOf("apply_patch <<EOF\n*** Begin Patch\n+a\nEOF"); !ok || patch != "*** Begin Patch\n+a\n" {
		t.Errorf("a heredoc that the shell would leave as it is: %q, %t", patch, ok)
	}
	b := &bench{cwd: t.TempDir()}
	if err := os.Mkdir(filepath.Join(b.cwd, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.write(t, "sub/a.txt", "one\n")
	line := func(s string) string {
		in, err := json.Marshal(RunInput{Command: s})
		if err != nil {
			t.Fatal(err)
		}
		return string(in)
	}
	const change = "<<'EOF'\n*** Begin Patch\n*** Update File: a.txt\n-one\n+two\n*** End Patch\nEOF"
	if _, err := b.use(t, Run, line("apply_patch "+change+"; echo")); err == nil || !strings.Contains(err.Error(), "give it alone") {
		t.Errorf("a line that does more: %v", err)
	}
	res, err := b.use(t, Run, line("cd sub && apply_patch "+change))
	if data, _ := os.ReadFile(filepath.Join(b.cwd, "sub", "a.txt")); err != nil || string(data) != "two\n" || !slices.Equal(b.asked, []About{AboutEdit}) {
		t.Errorf("%q, %v, %v, asked %v", data, res, err, b.asked)
	}
	b.deny = "apply_patch"
	if res, _ := b.use(t, Run, line("cd sub && apply_patch "+change)); !strings.Contains(res.Said, "ot permitted") {
		t.Errorf("a command that a rule denies: %v", res)
	}
}

// TestFetch: pages come as Markdown; nothing but public addresses is reached.
func TestFetch(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write([]byte("<html><head><title>T</title><script>evil()</script></head><body><h1>Head</h1><p>Some <b>bold</b> <a href='/x'>link</a>.</p><ul><li>one</li></ul></body></html>"))
		case "/here":
			http.Redirect(w, r, "/plain", http.StatusFound)
		case "/away":
			http.Redirect(w, r, "http://elsewhere.example/x", http.StatusFound)
		case "/plain":
			_, _ = w.Write([]byte("plain text"))
		case "/binary":
			_, _ = w.Write([]byte{0x89, 'P', 'N', 'G', 0, 0, 1, 2})
		case "/big":
			w.Header().Set("Content-Type", "text/plain")
			_, _ = w.Write([]byte(strings.Repeat("line of text\n", 300_000)))
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	b := &bench{cwd: t.TempDir(), web: NewWeb(true)}
	use := b.sessionOf(t, &acp.Client{MaxVersion: 2})
	get := func(path string) Result { return use(Fetch, `{"url":"`+s.URL+path+`"}`) }
	res := get("/page")
	has(t, res.Text, "# Head", "Some **bold** [link](/x).", "- one")
	if strings.Contains(res.Text, "evil") {
		t.Error(res.Text)
	}
	has(t, get("/here").Text, "plain text")
	has(t, get("/away").Said, "It has moved to http://elsewhere.example/x")
	has(t, get("/binary").Said, "It is not text but ")
	has(t, get("/none").Said, "404 Not Found")
	if res := get("/big"); len(res.Text) > MaxText+200 {
		t.Errorf("%d bytes", len(res.Text))
	}
	has(t, use(Fetch, `{"url":"file:///etc/passwd"}`).Said, "no address of the web")
	has(t, use(Fetch, `{"url":"http://me:secret@host/"}`).Said, "a name or a password")
	if got := b.asked[0]; !strings.HasPrefix(string(got), "fetch 127.0.0.1:") {
		t.Errorf("asked about %q", got)
	}
	b.web = NewWeb(false)
	has(t, get("/plain").Said, "127.0.0.1 is not a public address")
	for _, host := range []string{"localhost:1", "10.1.2.3", "169.254.169.254", "[::1]", "[::ffff:127.0.0.1]", "100.64.0.1", "0.0.0.0"} {
		if res := use(Fetch, `{"url":"http://`+host+`/"}`); !strings.Contains(res.Said, "not a public address") && !strings.Contains(res.Said, "refused") {
			t.Errorf("%s: %s", host, res.Said)
		} else if strings.Contains(res.Said, "refused") {
			t.Errorf("%s was reached for", host)
		}
	}
}

// TestImage: an image is shown as one, also to the model.
func TestImage(t *testing.T) {
	b := &bench{cwd: t.TempDir()}
	var small, wide bytes.Buffer
	if err := errors.Join(png.Encode(&small, image.NewGray(image.Rect(0, 0, 4, 4))), png.Encode(&wide, image.NewGray(image.Rect(0, 0, 8001, 4)))); err != nil {
		t.Fatal(err)
	}
	b.write(t, "a.png", small.String())
	b.write(t, "a.jpg", small.String()) // by another name
	b.write(t, "b.png", "not an image\n")
	b.write(t, "wide.png", wide.String())
	b.write(t, "damaged.png", small.String()[:small.Len()-20])
	for _, name := range []string{"a.png", "a.jpg", "wide.png"} {
		res, err := b.use(t, Read, `{"path":"`+name+`"}`)
		if err != nil || len(res.Images) != 1 || !picture.Fits(res.Images[0], picture.Common) || res.Images[0].MIMEType != "image/png" {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
	res, err := b.use(t, Read, `{"path":"damaged.png"}`)
	if err != nil || res.Status != acp.ToolCallStatusFailed || len(res.Images) > 0 || !strings.Contains(res.Said, "cannot be shown: it is damaged") {
		t.Errorf("%+v, %v", res, err)
	}
	if res, err = b.use(t, Read, `{"path":"b.png"}`); err != nil || len(res.Images) > 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

// An editor lends files: what it shows, by base name.
type editor map[string]string

func (e editor) ReadTextFile(_ context.Context, r *acpv1.ReadTextFileRequest) (*acpv1.ReadTextFileResponse, error) {
	return &acpv1.ReadTextFileResponse{Content: e[filepath.Base(r.Path)]}, nil
}

func (e editor) WriteTextFile(_ context.Context, r *acpv1.WriteTextFileRequest) (*acpv1.WriteTextFileResponse, error) {
	e[filepath.Base(r.Path)] = r.Content
	return &acpv1.WriteTextFileResponse{}, os.WriteFile(r.Path, []byte(r.Content), 0o600)
}

// TestReconcile: the client's files and those on disk.
func TestReconcile(t *testing.T) {
	shown := map[string]string{} // what the editor shows, by base name
	client := &acp.Client{MaxVersion: 1, Files: editor(shown)}
	b := &bench{cwd: t.TempDir(), files: new(Files)}
	use := b.sessionOf(t, client)
	set := func(disk, editor string) {
		t.Helper()
		b.write(t, "a.txt", disk)
		shown["a.txt"] = editor
	}
	read := func() string { t.Helper(); r := use(Read, `{"path":"a.txt"}`); return r.Text + r.Said }
	edit := func(old, new string) string {
		t.Helper()
		in, err := json.Marshal(EditInput{Path: "a.txt", Edits: []Replacement{{Old: old, New: new}}})
		if err != nil {
			t.Fatal(err)
		}
		return use(Edit, string(in)).Said
	}
	set("one\n", "one\n")
	has(t, read(), "one")
	set("two\n", "one\n") // a command has changed it
	has(t, read(), "two", "older text")
	has(t, read(), "two", "older text")
	has(t, edit("two", "three"), "Changed")
	if shown["a.txt"] != "three\n" {
		t.Errorf("the editor shows %q", shown["a.txt"])
	}
	set("three\n", "three\nand more\n") // the user types
	has(t, read(), "and more")
	has(t, edit("and more", "and less"), "Changed")
	set("x\n", "y\n") // both
	has(t, read(), "ask the user to save")
	has(t, edit("y", "z"), "ask the user to save")
	set("y\n", "y\n") // the user has decided
	has(t, read(), "y")
	set("y\n", "y\n\n") // a line too many
	if got := read(); strings.Contains(got, "y\n\n") {
		t.Errorf("%q", got)
	}
	has(t, use(Read, `{"path":"missing.txt"}`).Said, "there is no such file")
	has(t, use(Write, `{"path":"missing.txt","text":"new\n"}`).Said, "Created")
}

// TestSkill: the files of a skill are read by its name, and no others.
func TestSkill(t *testing.T) {
	b := &bench{cwd: t.TempDir(), refuse: true}
	if err := os.MkdirAll(filepath.Join(b.cwd, "skills", "known", "more"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.write(t, "skills/known/SKILL.md", "how it is done\n")
	b.write(t, "skills/known/more/a.md", "details\n")
	b.write(t, "secret.txt", "secret\n")
	use := b.sessionOf(t, &acp.Client{MaxVersion: 2})
	has(t, use(Read, `{"path":"skill:known"}`).Text, "how it is done")
	has(t, use(Read, `{"path":"skill:known/more/a.md"}`).Text, "details")
	has(t, use(Read, `{"path":"skill:known/../../secret.txt"}`).Said, "is not a file of the skill")
	has(t, use(Read, `{"path":"skill:other"}`).Said, `there is no skill "other"`)
}
