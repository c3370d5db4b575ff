package agent

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
)

func blocksOf(texts ...string) []acp.ContentBlock {
	var all []acp.ContentBlock
	for _, text := range texts {
		all = append(all, acp.Text(text))
	}
	return all
}

const rules = "Sharing `AGENTS.md`:\n\n---\n# Rules\nBe nice.\n\n---"

// TestWish holds which of several texts counts, with the prompts that editors send.
func TestWish(t *testing.T) {
	for _, tt := range []struct {
		name   string
		texts  []string
		again  int
		want   wish
		title  string
		others string // in what is told of them
	}{
		{"rules first", []string{rules, "/help"}, 0, wish{"/help", "help", "", true, nil}, "/help", ""},
		{"file first", []string{"Sharing the following file as context: data.txt", "/read data.txt"}, 0,
			wish{"/read data.txt", "read", " data.txt", true, nil}, "/read data.txt", ""},
		{"cancelled first", []string{"/run sleep 300 & sleep 301", "/run echo never", "/demo slow"}, 0,
			wish{"/demo slow", "demo", " slow", true, []string{"run", "run"}}, "/demo slow", "`/run`, `/run`"},
		{"context behind", []string{"/read x", "Sharing the following file"}, 0, wish{"/read x", "read", " x", true, nil}, "/read x", ""},
		{"no command", []string{rules, "hello\nthere"}, 0, wish{text: "hello\nthere"}, "hello", ""},
		{"path", []string{"/help", "/etc/hosts is a file"}, 0, wish{"/help", "help", "", true, nil}, "/help", ""},
		{"empty ones", []string{" ", "/help", "\n"}, 0, wish{"/help", "help", "", true, nil}, "/help", ""},
		{"nothing", nil, 0, wish{}, "", ""},
		{"sent again", []string{"/run rm x", "hello"}, 1, wish{text: "hello", others: []string{"run"}}, "hello", "cancelled commands again"},
		{"many", []string{"/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h"}, 0,
			wish{"/h", "h", "", true, []string{"a", "b", "c", "d", "e", "f", "g"}}, "/h", "and 2 more"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := wishOf(blocksOf(tt.texts...), tt.again)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(wish{})); diff != "" {
				t.Errorf("wish (-want +got):\n%s", diff)
			}
			if title := titleOf(got); title != tt.title {
				t.Errorf("title %q, want %q", title, tt.title)
			}
			if told := got.leftOut(); (told == "") != (tt.others == "") || !strings.Contains(told, tt.others) {
				t.Errorf("told %q, want %q", told, tt.others)
			}
		})
	}
}

// TestCancelledAgain holds what is taken for a cancelled prompt that is sent once more.
func TestCancelledAgain(t *testing.T) {
	c := cancelledPrompt(blocksOf("/run a", "/run b"))
	for _, tt := range []struct {
		texts []string
		want  int
	}{
		{[]string{"/run a", "/run b", "hello"}, 2},
		{[]string{"/run a", "/run b"}, 0}, // typed again
		{[]string{"/run a", "hello"}, 0},
		{[]string{"hello", "/run a", "/run b"}, 0},
		{nil, 0},
	} {
		if got := c.again(blocksOf(tt.texts...)); got != tt.want {
			t.Errorf("%q: %d, want %d", tt.texts, got, tt.want)
		}
	}
	if c := cancelledPrompt(blocksOf(strings.Repeat("x", maxCancelled), "y")); c != nil {
		t.Error("a long prompt is remembered")
	}
}

// TestSeveralTexts has a prompt with context before its command: it is carried out, the session is
// called after it, and is told again as it was.
func TestSeveralTexts(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		k := start(t, v)
		contains(t, k.tell(rules, acp.Text("/read main.go:1")), "package main")
		if title := k.session.Title(); title != "/read main.go:1" {
			t.Errorf("title %q", title)
		}
		if err := k.session.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		session, how, err := k.conn.Restore(t.Context(), k.session.ID(), acp.SessionConfig{Cwd: k.cwd, Replay: true})
		if err != nil || how == acp.RestoredNew {
			t.Fatalf("restored as %v: %v", how, err)
		}
		if title := session.Title(); title != "/read main.go:1" {
			t.Errorf("title when restored %q", title)
		}
		contains(t, k.taken(), "Be nice", "/read main.go:1", "package main")
	})
}

// TestSentAgain cancels a command. The client sends it again with the next prompt, in which it must not
// be carried out.
func TestSentAgain(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("commands are of another shell")
	}
	versions(t, func(t *testing.T, v int) {
		k := start(t, v)
		const run = "/run echo >>ran; echo started; sleep 60"
		reply := k.session.Prompt(t.Context(), acp.Text(run))
		for u, err := range reply.Updates() {
			if err != nil {
				t.Fatal(err)
			}
			if shows("started")(u) {
				if err := k.session.Cancel(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		contains(t, k.tell(run, acp.Text("hello")), "`/run`", "no language model")
		contains(t, k.tell(run, acp.Text("/read main.go:1")), "`/run`", "package main")
		if got := k.read("ran"); got != "\n" {
			t.Errorf("it ran %d times", strings.Count(got, "\n"))
		}
	})
}
