package changes

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/mention"
)

// programs are the settings of git that name a command, with what makes git run it: $ stands for a command that leaves
// its mark. What is in angle brackets in git's list is x here.
var programs = map[string]string{
	"alias.*":                      "!$",
	"browser.<tool>.cmd":           "$",
	"browser.<tool>.path":          "$",
	"core.alternateRefsCommand":    "$",
	"core.askPass":                 "$",
	"core.editor":                  "$",
	"core.fsmonitor":               "$",
	"core.gitProxy":                "$",
	"core.hooksPath":               "hooks",
	"core.pager":                   "$",
	"core.sshCommand":              "$",
	"credential.<url>.*":           "!$", // helper
	"credential.helper":            "!$",
	"diff.<driver>.command":        "$",
	"diff.<driver>.textconv":       "$",
	"diff.external":                "$",
	"diff.guitool":                 "x",
	"diff.tool":                    "x",
	"difftool.<tool>.cmd":          "$",
	"difftool.<tool>.path":         "$",
	"filter.<driver>.clean":        "$",
	"filter.<driver>.process":      "$", // not in the list of every version
	"filter.<driver>.smudge":       "$",
	"gpg.<format>.program":         "$",
	"gpg.program":                  "$",
	"gpg.ssh.defaultKeyCommand":    "$",
	"guitool.<name>.cmd":           "$",
	"help.browser":                 "x",
	"hook.<name>.command":          "$",
	"imap.tunnel":                  "$",
	"instaweb.browser":             "$",
	"instaweb.httpd":               "$",
	"interactive.diffFilter":       "$",
	"man.<tool>.cmd":               "$",
	"man.<tool>.path":              "$",
	"man.viewer":                   "x",
	"merge.<driver>.driver":        "$",
	"merge.guitool":                "x",
	"merge.tool":                   "x",
	"mergetool.<tool>.cmd":         "$",
	"mergetool.<tool>.path":        "$",
	"pager.<cmd>":                  "$",
	"receive.procReceiveRefs":      "refs",
	"remote.<name>.receivepack":    "$ #",
	"remote.<name>.uploadpack":     "$ #",
	"remote.<name>.url":            "ext::$",
	"remote.<name>.vcs":            "ext",
	"sendemail.ccCmd":              "$",
	"sendemail.headerCmd":          "$",
	"sendemail.sendmailCmd":        "$",
	"sendemail.smtpServer":         "$",
	"sendemail.tocmd":              "$",
	"sequence.editor":              "$",
	"submodule.<name>.update":      "!$",
	"tar.<format>.command":         "$",
	"trailer.<keyAlias>.cmd":       "$",
	"trailer.<keyAlias>.command":   "$",
	"uploadpack.packObjectsHook":   "$",
	"url.<base>.insteadOf":         "https://nowhere/",
	"web.browser":                  "x",
	"extensions.partialClone":      "x",    // what makes git run remote.<name>.uploadpack
	"remote.<name>.promisor":       "true", // likewise
	"core.repositoryFormatVersion": "1",    // likewise
	"protocol.allow":               "always",
	"protocol.<name>.allow":        "always",
}

// alike are words in the name of a setting that names a command.
var alike = regexp.MustCompile(`(?i)(command|cmd|program|helper|askpass|driver>\.(driver|clean|smudge|process|textconv)|editor|pager|browser|uploadpack$|receivepack$|hook|monitor$|external|tunnel|viewer)`)

// harmless are settings that are alike, and name none.
var harmless = []string{"fsmonitor.allowRemote", "fsmonitor.socketDir", "core.fsmonitorHookVersion", "advice.ignoredHook", "advice.waitingForEditor",
	"color.pager", "completion.commands", "notes.rewrite.<command>", "rebase.abbreviateCommands", "column.ui"}

// hostile writes settings that name programs into a git directory. Each program leaves a file with its name in marks.
func hostile(t *testing.T, gitDir, marks string) {
	t.Helper()
	hooks := filepath.Join(gitDir, "evil-hooks")
	for name, value := range programs {
		command := "touch '" + marks + "/" + regexp.MustCompile(`[^a-zA-Z.]`).ReplaceAllString(name, "_") + "'; cat"
		value = strings.ReplaceAll(value, "$", `sh -c "`+command+`"`)
		switch name {
		case "core.hooksPath":
			value = hooks
		case "remote.<name>.url":
			value = "ext::touch " + marks + "/ext"
		case "remote.<name>.vcs": // would be used in place of the program on the other side
			continue
		}
		key := regexp.MustCompile(`<[a-zA-Z]+>`).ReplaceAllString(name, "x")
		key = strings.NewReplacer("alias.*", "alias.diff", "credential.x.*", "credential.x.helper").Replace(key)
		configure(t, gitDir, key, value)
	}
	if err := os.MkdirAll(hooks, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, hook := range []string{"post-index-change", "reference-transaction", "post-checkout", "fsmonitor-watchman"} {
		if err := os.WriteFile(filepath.Join(hooks, hook), []byte("#!/bin/sh\ntouch '"+marks+"/hook-"+hook+"'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func configure(t *testing.T, gitDir, key, value string) {
	t.Helper()
	if out, err := exec.Command("git", "config", "--file", filepath.Join(gitDir, "config"), key, value).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", key, err, out)
	}
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// repository makes a repository with two committed files whose attributes name every driver.
func repository(t *testing.T, dir string) {
	t.Helper()
	write(t, filepath.Join(dir, "a.txt"), "one\n")
	write(t, filepath.Join(dir, "b.txt"), "two\n")
	write(t, filepath.Join(dir, ".gitattributes"), "*.txt filter=x diff=x merge=x\n")
	run(t, dir, "init", "-q")
	run(t, dir, "add", ".")
	run(t, dir, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")
}

// TestSettings: no program runs that the settings of git name, in no kind of repository, and the changes are found where
// there is a work tree.
func TestSettings(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil || runtime.GOOS == "windows" {
		t.Skip("needs git and a shell")
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for name := range strings.FieldsSeq(run(t, ".", "help", "--config")) {
		if _, ok := programs[name]; !ok && alike.MatchString(name) && !slices.Contains(harmless, name) {
			t.Errorf("git's setting %s is not in the table", name)
		}
	}
	for name, prepare := range map[string]func(t *testing.T, dir, marks string) (at string, want string){
		"plain": func(t *testing.T, dir, marks string) (string, string) {
			repository(t, dir)
			hostile(t, filepath.Join(dir, ".git"), marks)
			return dir, "a.txt"
		},
		"a partial clone with a missing object": func(t *testing.T, dir, marks string) (string, string) {
			repository(t, dir)
			object := run(t, dir, "rev-parse", "HEAD:a.txt")
			if err := os.Remove(filepath.Join(dir, ".git", "objects", object[:2], object[2:])); err != nil {
				t.Fatal(err)
			}
			hostile(t, filepath.Join(dir, ".git"), marks)
			configure(t, filepath.Join(dir, ".git"), "remote.x.url", dir)
			return dir, "a.txt"
		},
		"an embedded bare repository": func(t *testing.T, dir, marks string) (string, string) {
			repository(t, dir)
			sub := filepath.Join(dir, "sub")
			repository(t, sub)
			for _, name := range []string{"HEAD", "config", "objects", "refs", "index"} {
				if err := os.Rename(filepath.Join(sub, ".git", name), filepath.Join(sub, name)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.RemoveAll(filepath.Join(sub, ".git")); err != nil {
				t.Fatal(err)
			}
			run(t, dir, "add", "-f", ".")
			run(t, dir, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "with a repository")
			configure(t, sub, "core.bare", "false")
			configure(t, sub, "core.worktree", ".")
			hostile(t, sub, marks)
			return sub, "a.txt"
		},
		"the settings of the user": func(t *testing.T, dir, marks string) (string, string) {
			home := t.TempDir()
			repository(t, dir)
			hostile(t, home, marks)
			if err := os.Rename(filepath.Join(home, "config"), filepath.Join(home, ".gitconfig")); err != nil {
				t.Fatal(err)
			}
			t.Setenv("HOME", home)
			return dir, "a.txt"
		},
		"the environment": func(t *testing.T, dir, marks string) (string, string) {
			repository(t, dir)
			t.Setenv("GIT_EXTERNAL_DIFF", "touch "+marks+"/external")
			t.Setenv("GIT_CONFIG_COUNT", "1")
			t.Setenv("GIT_CONFIG_KEY_0", "filter.x.clean")
			t.Setenv("GIT_CONFIG_VALUE_0", "touch "+marks+"/clean; cat")
			return dir, "a.txt"
		},
	} {
		t.Run(name, func(t *testing.T) {
			marks, dir := t.TempDir(), filepath.Join(t.TempDir(), "it is")
			at, want := prepare(t, dir, marks)
			base, err := TakeBase(t.Context(), at)
			if err != nil || base == nil {
				t.Fatalf("%v, %v", base, err)
			}
			write(t, filepath.Join(at, "a.txt"), "one and a half\n")
			files, err := Find(t.Context(), at, base)
			if err != nil || len(files) != 1 || filepath.Base(files[0].Path) != want {
				t.Errorf("%v, %v", short(at, files), err)
			}
			if base, err = TakeBase(t.Context(), at); err != nil || base == nil { // with something changed
				t.Error(err)
			}
			if files := mention.List(t.Context(), at); !slices.Contains(files, "a.txt") {
				t.Errorf("@ offers %q", files)
			}
			left, err := os.ReadDir(marks)
			for _, l := range left {
				t.Errorf("git ran %s", l.Name())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFilter: a file that a filter of git would convert is compared as it is stored, and the list says so; one that is
// only touched is not listed.
func TestFilter(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil || runtime.GOOS == "windows" {
		t.Skip("needs git and a shell")
	}
	dir := t.TempDir()
	run(t, dir, "init", "-q")
	configure(t, filepath.Join(dir, ".git"), "filter.lfs.clean", "sed s/.*/pointer/")
	write(t, filepath.Join(dir, ".gitattributes"), "*.bin filter=lfs\n")
	write(t, filepath.Join(dir, "a.bin"), "content\n")
	write(t, filepath.Join(dir, "b.txt"), "text\n")
	run(t, dir, "add", ".")
	run(t, dir, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")
	base, err := TakeBase(t.Context(), filepath.Join(dir))
	if err != nil {
		t.Fatal(err)
	}
	if files, err := Find(t.Context(), dir, base); err != nil || len(files) != 0 {
		t.Errorf("%v, %v", short(dir, files), err)
	}
	write(t, filepath.Join(dir, "a.bin"), "more content\n")
	write(t, filepath.Join(dir, "b.txt"), "text\n")
	files, err := Find(t.Context(), dir, base)
	if err != nil || len(files) != 1 || files[0].Filter != "lfs" || files[0].Source != Compared {
		t.Fatalf("%+v, %v", files, err)
	}
}
