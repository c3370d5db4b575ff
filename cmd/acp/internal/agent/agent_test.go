package agent

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/tool"
	"github.com/goacp/acp/jsonrpc"
)

func updating() bool { return flag.Lookup("update").Value.String() == "true" }

// TestTranscripts compares whole conversations.
func TestTranscripts(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("commands are of another shell")
	}
	talks := map[string][]string{
		"talk": {"hello there", "/help", "/nosuch", "/rea x", "/usage now"},
		"read": {
			"/read main.go", "/read main.go:4-5", "/read doc", "/read 'no such.txt'", "/read main.go:9-2", "/read",
			"/read main.go:100-",
		},
		"search": {`/search println`, `/search "^fi" *.txt`, `/search nothing_of_the_kind`, `/search (`, `/search a b c`},
		"edit": {
			`/edit main.go println("one") => println("1")`, "/edit main.go\n<<<<<<<\n\tprintln(\"two\")\n=======\n\tprintln(\"2\")\n\tprintln(\"3\")\n>>>>>>>",
			"/edit main.go println => print", "/edit! main.go println => print", "/edit main.go nothing => more", "/edit main.go",
			"/edit none.go a => b", "/write new/file.txt hello", "/write new/file.txt\none\n  two\n", "/write new/file.txt\none\n  two\n",
		},
		"run":  {`/run echo a b | tee out`, "/run exit 3", "/run"},
		"plan": {"/plan", "/plan first; second; third", "/plan next", "/plan done 3", "/plan done 9", "/plan next", "/plan", "/plan clear"},
		"mode": {"/mode", "/mode auto", "/edit doc/notes.txt first => 1st", "/mode read-only", "/edit doc/notes.txt second => 2nd", "/run touch ran", "/run true", "/mode sideways"},
		"name": {"/title", "/title   A better\tname ", "/title", "/mcp"},
	}
	versions(t, func(t *testing.T, v int) {
		for name, prompts := range talks {
			t.Run(name, func(t *testing.T) {
				k := start(t, v)
				var b strings.Builder
				for _, p := range prompts {
					b.WriteString(k.tell(p) + "\n----\n")
				}
				golden(t, fmt.Sprintf("%s-v%d", name, v), b.String())
			})
		}
		for _, name := range []string{"edit", "run"} {
			t.Run("lent-"+name, func(t *testing.T) {
				if v == 2 {
					t.Skip("version 2 clients lend nothing")
				}
				k := start(t, v, lent)
				var b strings.Builder
				for _, p := range talks[name] {
					b.WriteString(k.tell(p) + "\n----\n")
				}
				golden(t, "lent-"+name, b.String())
			})
		}
	})
}

// TestDemo checks that the demonstration shows everything, and leaves nothing.
func TestDemo(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv("TMP", temp)
	versions(t, func(t *testing.T, v int) {
		k := start(t, v)
		text := k.tell("/demo")
		contains(t, text, "thought:", "plan:", "demonstration", "read", "edit", "execute", "search", "fetch", "move", "delete",
			"switch_mode", "other", "+\treturn \"Hello, \" + name + \"!\"", "PASS", "usage: 12345 of 200000", "invented")
		if v == 2 {
			contains(t, text, "subagent:", "notice: A notice", "terminal #")
		}
		if got := len(k.asked); got != 2 {
			t.Errorf("%d questions: %q", got, k.asked)
		}
		left, err := filepath.Glob(filepath.Join(temp, "acp-demo-*"))
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %q, %v", left, err)
		}
		k.answer = func(r *acp.PermissionRequest) acp.PermissionDecision { return r.Reject() }
		contains(t, k.tell("/demo"), "not done: you did not allow it")
		// It is no plan of the session's.
		contains(t, k.tell("/plan"), "There is no plan")

		contains(t, k.tell("/demo flood 300"), "update 300 of 300")
		if n := len(k.tell("/demo big 2")); n < 2_000_000 || n > 2_001_000 {
			t.Errorf("%d bytes", n)
		}
		contains(t, k.tell("/demo flood many"), "Usage:")
		contains(t, k.tell("/demo slow 3"), "Usage:")
		contains(t, k.tell("/demo form"), "no forms")
	})
}

func TestForm(t *testing.T) {
	answers := map[string]struct {
		answer *acp.ElicitationResponse
		want   string
	}{
		"accept":  {acp.AcceptElicitation(map[string]json.RawMessage{"name": json.RawMessage(`"Ann"`)}), `"Ann"`},
		"decline": {acp.DeclineElicitation(), "You declined"},
		"cancel":  {acp.CancelElicitation(), "You dismissed"},
	}
	versions(t, func(t *testing.T, v int) {
		for name, a := range answers {
			t.Run(name, func(t *testing.T) {
				k := start(t, v, func(k *talk) {
					k.client.Elicit = func(context.Context, *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
						return a.answer, nil
					}
				})
				contains(t, k.tell("/demo form"), a.want)
			})
		}
	})
}

// TestAnswers checks what becomes of the answers to questions.
func TestAnswers(t *testing.T) {
	steps := []struct {
		name   string
		choose func(*acp.PermissionRequest) acp.PermissionDecision
		asks   []bool // whether the prompts below ask
		done   []bool
	}{
		{"allow once", (*acp.PermissionRequest).Allow, []bool{true, true}, []bool{true, true}},
		{"allow always", (*acp.PermissionRequest).AllowAlways, []bool{true, false}, []bool{true, true}},
		{"reject once", (*acp.PermissionRequest).Reject, []bool{true, true}, []bool{false, false}},
		{"reject always", (*acp.PermissionRequest).RejectAlways, []bool{true, false}, []bool{false, false}},
		{"cancel", func(*acp.PermissionRequest) acp.PermissionDecision { return acp.CancelPermission() }, []bool{true, true}, []bool{false, false}},
		{"something else", func(*acp.PermissionRequest) acp.PermissionDecision { return acp.SelectPermission("nonsense") }, []bool{true, true}, []bool{false, false}},
	}
	versions(t, func(t *testing.T, v int) {
		for _, s := range steps {
			t.Run(s.name, func(t *testing.T) {
				k := start(t, v)
				k.answer = s.choose
				for i := range s.asks {
					k.asked = nil
					name := fmt.Sprintf("new%d.txt", i)
					text := k.tell("/write " + name + " x")
					if got := len(k.asked) > 0; got != s.asks[i] {
						t.Errorf("%d: asked: %t", i, got)
					}
					_, err := os.Stat(filepath.Join(k.cwd, name))
					if got := err == nil; got != s.done[i] {
						t.Errorf("%d: written: %t", i, got)
					}
					if !s.done[i] {
						contains(t, text, "failed", "Not done: ")
					}
				}
				// Answers are about one kind of thing, and a mode ends them.
				k.asked = nil
				k.tell("/run touch ran")
				if len(k.asked) != 1 {
					t.Errorf("a command: asked %q", k.asked)
				}
				k.tell("/mode ask")
				k.asked = nil
				k.tell("/write again.txt x")
				if len(k.asked) != 1 {
					t.Errorf("after /mode: asked %q", k.asked)
				}
			})
		}
	})
}

// TestClientMode sets options as clients do.
func TestClientMode(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		k := start(t, v)
		if err := k.session.SetMode(t.Context(), modeReadOnly); err != nil {
			t.Fatal(err)
		}
		contains(t, k.tell("/write a.txt x"), "read-only mode")
		if err := k.session.SetMode(t.Context(), modeAuto); err != nil {
			t.Fatal(err)
		}
		k.tell("/write a.txt x")
		if len(k.asked) > 0 {
			t.Errorf("asked %q", k.asked)
		}
		k.write(".gitignore", "*.txt\n")
		contains(t, k.tell("/search second"), "Nothing found")
		if err := k.session.SetOption(t.Context(), optionIgnore, &acp.SessionConfigOptionValueBoolean{Value: false}); err != nil {
			t.Fatal(err)
		}
		contains(t, k.tell("/search second"), "notes.txt:2: second")
		if err := k.session.SetMode(t.Context(), "sideways"); err == nil {
			t.Error("there is a mode that there is not")
		}
	})
}

// TestOutside names files that are not the session's.
func TestOutside(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		outside := realDir(t)
		secret := filepath.Join(outside, "secret.txt")
		if err := os.WriteFile(secret, []byte("secret text\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, lend := range []bool{false, true} {
			if lend && v == 2 {
				continue
			}
			change := func(*talk) {}
			if lend {
				change = lent
			}
			k := start(t, v, change)
			links := map[string]string{"link.txt": secret, "dir": outside, "dangling": filepath.Join(outside, "made.txt"), "loop": "loop"}
			for name, target := range links {
				if err := os.Symlink(target, filepath.Join(k.cwd, name)); err != nil {
					t.Skip(err)
				}
			}
			rel, err := filepath.Rel(k.cwd, secret)
			if err != nil {
				t.Fatal(err)
			}
			k.answer = func(r *acp.PermissionRequest) acp.PermissionDecision { return r.Reject() }
			for _, name := range []string{
				secret, rel, "doc/../" + rel, "link.txt", "dir/secret.txt", "file://" + filepath.ToSlash(secret), "./doc/../dir/secret.txt",
			} {
				k.asked = nil
				text := k.tell("/read '" + name + "'")
				lacks(t, text, "secret text")
				if len(k.asked) != 1 {
					t.Errorf("read %s: asked %q", name, k.asked)
				}
			}
			k.tell("/mode auto")
			for _, name := range []string{"dangling", "dir/new.txt", filepath.Join(outside, "new.txt"), "link.txt"} {
				k.asked = nil
				k.tell("/write '" + name + "' x")
				if len(k.asked) == 0 {
					t.Errorf("write %s: not asked", name)
				}
			}
			contains(t, k.tell("/read loop"), "agent:")
			lacks(t, k.tell("/search secret"), "secret text")
			for _, made := range []string{"made.txt", "new.txt"} {
				if _, err := os.Stat(filepath.Join(outside, made)); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s was made: %v", made, err)
				}
			}
			if got, _ := os.ReadFile(secret); string(got) != "secret text\n" {
				t.Errorf("the secret is %q", got)
			}
			if lend {
				continue
			}
			k.answer = func(r *acp.PermissionRequest) acp.PermissionDecision { return r.Allow() }
			contains(t, k.tell("/read link.txt"), "secret text")
		}
	})
}

// TestBig shows that what is long is cut, and what is no text is not shown.
func TestBig(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		k := start(t, v)
		k.write("long.txt", strings.Repeat("a line\n", tool.MaxReadLines+10))
		contains(t, k.tell("/read long.txt"), fmt.Sprintf("Lines 1–%d of", tool.MaxReadLines), fmt.Sprintf("long.txt:%d-", tool.MaxReadLines+1))
		contains(t, k.tell(fmt.Sprintf("/read long.txt:%d-", tool.MaxReadLines+1)), fmt.Sprintf("Lines %d–%d of", tool.MaxReadLines+1, tool.MaxReadLines+10))
		k.write("wide.txt", strings.Repeat("é", tool.MaxReadBytes))
		if n := len(k.tell("/read wide.txt")); n > tool.MaxReadBytes+2000 {
			t.Errorf("%d bytes", n)
		}
		k.write("image.bin", "\x89PNG\x00\x01")
		contains(t, k.tell("/read image.bin"), "is not text")
		contains(t, k.tell("/edit image.bin P => Q"), "is not text")
		k.write("many.txt", strings.Repeat("match\n", tool.MaxMatches+1))
		text := k.tell("/search match")
		contains(t, text, fmt.Sprintf("%d matching lines", tool.MaxMatches+1), fmt.Sprintf("Only the first %d are shown", tool.MaxMatches))
		k.write("empty.txt", "")
		contains(t, k.tell("/read empty.txt"), "is empty")
		k.write("huge.txt", "needle\n"+strings.Repeat("x", tool.MaxSearchFile))
		contains(t, k.tell("/search needle"), "Left out: 1 file larger than 4.0 MiB")
		contains(t, k.tell("/plan "+strings.Repeat("x;", tool.MaxSteps+1)), "at most")
	})
}

// TestContent gives the agent other things than text.
func TestContent(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		k := start(t, v)
		file := "file://" + filepath.ToSlash(filepath.Join(k.cwd, "main.go"))
		text := k.tell("look at this",
			&acp.ResourceLink{Name: "main.go", URI: file},
			&acp.ImageContent{MIMEType: "image/png", Data: base64.StdEncoding.EncodeToString(make([]byte, 2048))},
			&acp.EmbeddedResource{Resource: &acp.TextResourceContents{URI: "file:///notes.md", Text: "a\nb\n"}},
			&acp.EmbeddedResource{Resource: &acp.BlobResourceContents{URI: "file:///x.bin", Blob: "AAAA"}},
			&acp.AudioContent{MIMEType: "audio/wav", Data: "AAAA"},
		)
		contains(t, text, "no language model", "a link to `file://", "an image, `image/png`, 2.0 KiB",
			"the contents of `file:///notes.md`: text, 2 lines", "the contents of `file:///x.bin`: bytes, 3 bytes", "a recording, `audio/wav`, 3 bytes")
		contains(t, k.tell("/read", &acp.ResourceLink{Name: "main.go", URI: file}), "package main")
		contains(t, k.tell("/read @main.go"), "package main")
		var many []acp.ContentBlock
		for range maxToldBlocks + 5 {
			many = append(many, &acp.ResourceLink{Name: "x", URI: "file:///x"})
		}
		contains(t, k.tell("look", many...), "and 5 more")
	})
}

// TestMeanwhile changes a file while the user is asked.
func TestMeanwhile(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		k := start(t, v)
		k.answer = func(r *acp.PermissionRequest) acp.PermissionDecision {
			k.write("doc/notes.txt", "first\nsecond\nthird\n")
			return r.Allow()
		}
		contains(t, k.tell("/edit doc/notes.txt first => 1st"), "changed by somebody else")
		if diff := cmp.Diff("first\nsecond\nthird\n", k.read("doc/notes.txt")); diff != "" {
			t.Error(diff)
		}
		k.answer = func(r *acp.PermissionRequest) acp.PermissionDecision {
			if err := os.RemoveAll(filepath.Join(k.cwd, "doc")); err != nil {
				t.Error(err)
			}
			if err := os.Symlink(os.TempDir(), filepath.Join(k.cwd, "doc")); err != nil {
				t.Skip(err)
			}
			return r.Allow()
		}
		contains(t, k.tell("/write doc/acp-never-made.txt x"), "leads somewhere else")
	})
}

// TestSessions goes through the life of a session.
func TestSessions(t *testing.T) {
	for _, memory := range []bool{false, true} {
		versions(t, func(t *testing.T, v int) {
			var change []func(*talk)
			if memory {
				change = append(change, inMemory)
			}
			k := start(t, v, change...)
			said := k.tell("/read main.go") + k.tell("/plan one; two") + k.tell("/mode auto") + k.tell("/title My title")
			id := k.session.ID()
			if err := k.session.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !memory {
				k.connect() // to another agent
			}
			infos := k.listed("")
			if len(infos) != 1 || infos[0].SessionID != id || infos[0].Title != "My title" || infos[0].Cwd != k.cwd || infos[0].UpdatedAt == "" {
				t.Errorf("listed %+v", infos)
			}
			if got := k.listed(k.cwd + "x"); len(got) != 0 {
				t.Errorf("listed elsewhere: %+v", got)
			}
			k.taken()
			s, err := k.conn.Load(t.Context(), id, acp.SessionConfig{Cwd: k.cwd})
			if err != nil {
				t.Fatal(err)
			}
			k.session = s
			told := k.taken()
			for l := range strings.Lines(said) {
				if strings.HasPrefix(l, "ask:") || strings.HasPrefix(l, "option") || strings.HasPrefix(l, "title") || strings.HasPrefix(l, "tool") {
					continue
				}
				contains(t, told, strings.TrimSpace(l))
			}
			if s.Title() != "My title" {
				t.Errorf("title %q", s.Title())
			}
			contains(t, k.tell("/mode"), "**auto**")
			contains(t, k.tell("/plan next"), "in_progress: two")

			fork, err := s.Fork(t.Context(), acp.SessionConfig{Cwd: k.cwd})
			if err != nil {
				t.Fatal(err)
			}
			if fork.ID() == id {
				t.Errorf("forked %s", fork.ID())
			}
			k.session = fork
			contains(t, k.tell("/plan"), "[>] `two`")
			k.tell("only in the fork")
			if fork.Title() != "My title (fork)" { // it comes behind the answer
				t.Errorf("title of the fork: %q", fork.Title())
			}
			k.session = s
			if err := fork.Delete(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := k.conn.Resume(t.Context(), fork.ID(), acp.SessionConfig{Cwd: k.cwd}); !errors.Is(err, jsonrpc.ErrResourceNotFound) {
				t.Errorf("resumed what was deleted: %v", err)
			}
			if title, err := s.SetTitle(t.Context(), "  From\nthe client "); err != nil || title != "From the client" {
				t.Errorf("title %q, %v", title, err)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if title, err := k.conn.SetTitle(t.Context(), id, "While closed"); err != nil || title != "While closed" {
				t.Errorf("title %q, %v", title, err)
			}
			if got := k.listed(k.cwd); len(got) != 1 || got[0].Title != "While closed" {
				t.Errorf("listed %+v", got)
			}
			k.taken()
			if k.session, err = k.conn.Resume(t.Context(), id, acp.SessionConfig{Cwd: k.cwd}); err != nil {
				t.Fatal(err)
			}
			lacks(t, k.taken(), "user:", "agent:")
			contains(t, k.tell("/sessions"), "While closed", "(this one)")
			contains(t, k.tell("/sessions all"), "While closed", "CWD")
			if err := k.session.Delete(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := k.listed(""); len(got) != 0 {
				t.Errorf("listed after it was deleted: %+v", got)
			}
			if !memory {
				err := filepath.WalkDir(k.dir, func(path string, d fs.DirEntry, err error) error {
					if err == nil && !d.IsDir() {
						t.Errorf("left behind: %s", path)
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func (k *talk) listed(cwd string) (all []acp.SessionInfo) {
	k.t.Helper()
	for i, err := range k.conn.ListSessions(k.t.Context(), acp.ListOptions{Cwd: cwd}) {
		if err != nil {
			k.t.Fatal(err)
		}
		all = append(all, i)
	}
	return all
}

// TestHostileIDs asks for sessions by names of files.
func TestHostileIDs(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		k := start(t, v)
		k.tell("hello")
		victim := filepath.Join(filepath.Dir(k.dir), "victim"+suffix)
		if err := os.WriteFile(victim, []byte("keep me\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, end := range []string{suffix, oldSuffix} {
			if err := os.Symlink(victim, filepath.Join(k.dir, "link"+end)); err != nil {
				t.Log(err)
			}
		}
		for _, id := range []acp.SessionID{
			"", ".", "..", "../victim", "..\\victim", "/etc/passwd", "a/b", "link", "none", "\x00", acp.SessionID(strings.Repeat("x", 5000)), "C:x", "nul\n",
		} {
			if _, err := k.conn.Resume(t.Context(), id, acp.SessionConfig{Cwd: k.cwd}); err == nil {
				t.Errorf("resumed %q", id)
			}
			_ = k.conn.Delete(t.Context(), id) // that there is none is as good
			if _, err := k.conn.Fork(t.Context(), id, acp.SessionConfig{Cwd: k.cwd}); err == nil && id != "" {
				t.Errorf("forked %q", id)
			}
			if _, err := k.conn.SetTitle(t.Context(), id, "x"); err == nil {
				t.Errorf("named %q", id)
			}
		}
		if got, err := os.ReadFile(victim); err != nil || string(got) != "keep me\n" {
			t.Errorf("the other file: %q, %v", got, err)
		}
	})
}

// TestUnused makes no journal of a session in which nothing was said.
func TestUnused(t *testing.T) {
	k := start(t, 2)
	if err := k.session.SetMode(t.Context(), modeReadOnly); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(k.dir); err != nil || len(left) != 1 || left[0].Name() != blankDir {
		t.Errorf("there is %v, %v", left, err)
	}
	for name, want := range map[string]fs.FileMode{filepath.Join(k.dir, blankDir): 0o700, stored(k.dir).blanks.path(k.session.ID()): 0o600} {
		if info, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	k.tell("hello")
	for name, want := range map[string]fs.FileMode{k.dir: 0o700, filepath.Join(k.dir, string(k.session.ID())+suffix): 0o600} {
		info, err := os.Stat(name)
		if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// TestTwice opens one session in two places.
func TestTwice(t *testing.T) {
	k := start(t, 2)
	k.tell("hello")
	first := k.conn
	k.connect()
	_, err := k.conn.Resume(t.Context(), k.session.ID(), acp.SessionConfig{Cwd: k.cwd})
	if f, ok := errors.AsType[*acp.Failure](err); !ok || f.Reason != "session_open" {
		t.Errorf("resumed: %v", err)
	}
	if err := k.conn.Delete(t.Context(), k.session.ID()); err == nil {
		t.Error("deleted while it is open")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := k.conn.Resume(t.Context(), k.session.ID(), acp.SessionConfig{Cwd: k.cwd}); err != nil {
		t.Errorf("resumed after it was closed: %v", err)
	}
}

// TestUnsaved goes on when the session cannot be kept, and says so once.
func TestUnsaved(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		k := start(t, v, func(k *talk) {
			if err := os.WriteFile(k.dir, nil, 0o600); err != nil { // no directory
				k.t.Fatal(err)
			}
		})
		contains(t, k.tell("hello"), "no language model", "cannot be saved")
		text := k.tell("/read main.go")
		contains(t, text, "package main")
		lacks(t, text, "cannot be saved")
		contains(t, k.tell("/usage"), "Nothing of it could be saved")
	})
}
