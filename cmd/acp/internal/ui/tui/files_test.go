package tui

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/mention"
)

// TestMentionPaths: @ offers directories and leads into them, also above the project and in the home
// directory; hidden files come last.
func TestMentionPaths(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	r := newRig(t, 80, 30, nil).start()
	cwd := r.m.opt.cwd
	for _, name := range []string{cwd + "/.gitignore", cwd + "/main.go", cwd + "/src/deep/a.go", cwd + "/src/b.go", home + "/notes/todo.md", home + "/.secret", cwd + "/../beside/x.txt"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("text of "+filepath.Base(name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.send(filesMsg{mention.List(t.Context(), cwd)})
	read := func(cmd tea.Cmd) { // not with run, which takes reading for waiting
		t.Helper()
		for cmd != nil {
			msg := cmd()
			if b, ok := msg.(tea.BatchMsg); ok {
				cmd = b[len(b)-1]
				continue
			}
			cmd = r.send(msg)
		}
	}
	types := func(keys ...string) {
		t.Helper()
		for _, k := range keys {
			if k == "tab" || k == "backspace" {
				read(r.keys(k))
				continue
			}
			for _, c := range k {
				read(r.keys(string(c)))
			}
		}
	}
	r.keys("@")
	r.wants("▸ main.go", "src/", "src/deep/", "directory", "src/deep/a.go")
	r.keys("sr")
	r.wants("▸ src/")
	r.keys("tab")
	r.wants("› @src/", "src/b.go")
	r.keys("deep", "tab")
	r.wants("› @src/deep/")
	r.m.input.clear()
	types("@../")
	r.wants("../beside/")
	types("bes", "tab")
	r.wants("› @../beside/", "▸ ../beside/x.txt")
	r.keys("tab")
	r.m.input.insert("and ")
	types("@~/")
	r.wants("~/notes/")
	r.lacks(".secret")
	types(".")
	r.wants("~/.secret")
	types("backspace", "n", "tab")
	r.wants("~/notes/todo.md")
	r.keys("tab")
	r.wants("› @../beside/x.txt and @~/notes/todo.md")
	blocks, _ := compose(t.Context(), cwd, r.m.input.value()+" @"+home+"/notes/", nil, nil, acp.PromptContent{EmbeddedContext: true})
	var got []string
	for _, b := range blocks {
		switch b := b.(type) {
		case *acpv2.EmbeddedResource:
			got = append(got, b.Resource.(*acpv2.TextResourceContents).Text)
		case *acpv2.ResourceLink:
			got = append(got, b.MIMEType)
		}
	}
	if strings.Join(got, ", ") != "text of x.txt, text of todo.md, inode/directory" {
		t.Errorf("%q", got)
	}
	r.m.input.clear()
	types("@/nowhere/")
	r.lacks("▸")
}

// TestFilesCut: a remark says that not all files are offered.
func TestFilesCut(t *testing.T) {
	r := newRig(t, 100, 24, nil).start()
	r.send(filesMsg{slices.Repeat([]string{"a"}, mention.MaxFiles)})
	r.wants("not all files of this directory are offered")
}
