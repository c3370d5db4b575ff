package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

func edit(t *testing.T, text string) *Edit {
	t.Helper()
	file := filepath.Join(t.TempDir(), "dir", "config.toml")
	if text != "" {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	e, err := OpenEdit(file)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEditSet(t *testing.T) {
	for _, tc := range []struct{ name, text, key, value, want string }{
		{"empty", "", "ui.plain", "true", "[ui]\nplain = true\n"},
		{"empty top", "", "agent", "gemini", "agent = \"gemini\"\n"},
		{"replace", "# mine\n[ui] # looks\ntheme   =  'dark'   # at night\nplain = true\n", "ui.theme", "light", "# mine\n[ui] # looks\ntheme   =  \"light\"   # at night\nplain = true\n"},
		{"add to table", "[ui]\ntheme = \"dark\" # x\n\n# stores\n[store]\noff = true\n", "ui.plain", "true", "[ui]\ntheme = \"dark\" # x\nplain = true\n\n# stores\n[store]\noff = true\n"},
		{"add to empty table", "[ui]\n[store]\n", "ui.plain", "true", "[ui]\nplain = true\n[store]\n"},
		{"no line feed", "[ui]\ntheme = \"dark\"", "ui.plain", "true", "[ui]\ntheme = \"dark\"\nplain = true\n"},
		{"new table", "agent = \"x\"\n", "ui.plain", "true", "agent = \"x\"\n\n[ui]\nplain = true\n"},
		{"top with tables", "[ui]\nplain = true\n", "agent", "x", "agent = \"x\"\n\n[ui]\nplain = true\n"},
		{"top after a comment", "# settings\n\n[ui]\nplain = true\n", "agent", "x", "# settings\n\nagent = \"x\"\n\n[ui]\nplain = true\n"},
		{"top before a comment", "# looks\n[ui]\nplain = true\n", "agent", "x", "agent = \"x\"\n\n# looks\n[ui]\nplain = true\n"},
		{"dotted", "ui.theme = \"dark\"\n[store]\noff = true\n", "ui.plain", "true", "ui.theme = \"dark\"\nui.plain = true\n[store]\noff = true\n"},
		{"dotted in table", "[agents]\na.command = \"x\"\n", "agents.a.login_env", "true", "[agents]\na.command = \"x\"\na.login_env = true\n"},
		{"list over lines", "[permissions]\nallow = [\n  \"read\", # fine\n]\ndeny = []\n", "permissions.allow", "read\ncommand:ls", "[permissions]\nallow = [\"read\", \"command:ls\"]\ndeny = []\n"},
		{"list as in files", "", "permissions.allow", `["read"]`, "[permissions]\nallow = [\"read\"]\n"},
		{"duration", "", "timeouts.connect", "90s", "[timeouts]\nconnect = \"1m30s\"\n"},
		{"in braces", "ui = {theme = \"dark\", plain = false}\n", "ui.plain", "true", "ui = {theme = \"dark\", plain = true}\n"},
		{"quoted name", "", `agents."my.agent".command`, "x y", "[agents.\"my.agent\"]\ncommand = \"x y\"\n"},
		{"odd text", "", "agents.a.command", "a\"b\\c\x1b\n\u00e9", "[agents.a]\ncommand = \"a\\\"b\\\\c\\u001B\\n\u00e9\"\n"},
		{"windows lines", "[ui]\r\ntheme = \"dark\"\r\n", "ui.theme", "light", "[ui]\r\ntheme = \"light\"\r\n"},
		{"table below", "[agents.a.env]\nX = \"1\"\n", "agents.a.command", "x", "[agents.a.env]\nX = \"1\"\n\n[agents.a]\ncommand = \"x\"\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := edit(t, tc.text)
			if err := e.SetText(tc.key, tc.value); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, e.Text()); d != "" {
				t.Error(d)
			}
			if err := e.Check(); err != nil {
				t.Error(err)
			}
			if err := e.Save(); err != nil {
				t.Fatal(err)
			}
			if data, err := os.ReadFile(e.name); err != nil || string(data) != tc.want {
				t.Errorf("in the file: %q, %v", data, err)
			}
		})
	}
}

func TestEditSetMistakes(t *testing.T) {
	for _, tc := range []struct{ text, key, value, want string }{
		{"", "ui.theem", "dark", `did you mean "ui.theme"?`},
		{"", "ui.theme", "pink", "is not one of auto, dark, light"},
		{"", "ui", "x", "is a table"},
		{"", "", "x", "the key is empty"},
		{"", "ui..x", "x", "a part is empty"},
		{"", `agents."x`, "x", "a quote is not closed"},
		{"", "agents.a/b.command", "x", "separators"},
		{"", "ui.plain.x", "true", "has no parts"},
		{"ui = {theme = \"dark\"}\n", "ui.plain", "true", ":1: ui is written in braces; use acp config edit to add ui.plain"},
		{"[agents.a]\nenv = {}\n", "agents.a.env.X", "1", "cannot be added to what is there"},
	} {
		e := edit(t, tc.text)
		err := e.SetText(tc.key, tc.value)
		if err == nil || !strings.Contains(err.Error(), tc.want) || exitcode.Of(err) != exitcode.Usage {
			t.Errorf("%s = %s: %v, want %s", tc.key, tc.value, err, tc.want)
		}
		if e.Text() != tc.text {
			t.Errorf("%s: the text has changed to %q", tc.key, e.Text())
		}
	}
	file := filepath.Join(t.TempDir(), "x.toml")
	if err := os.WriteFile(file, []byte("[ui\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenEdit(file); err == nil || !strings.HasPrefix(err.Error(), file+":1:4: ") {
		t.Errorf("a broken file: %v", err)
	}
	if _, err := OpenEdit(""); err == nil {
		t.Error("no file is no error")
	}
}

func TestEditUnset(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		key        path
		want       string
	}{
		{"value", "[ui]\ntheme = \"dark\" # x\nplain = true\n", path{"ui", "theme"}, "[ui]\nplain = true\n"},
		{"table", "agent = \"a\"\n\n[agents.a]\ncommand = \"x\"\n\n[agents.a.env]\nX = \"1\"\n\n# b\n[agents.b]\ncommand = \"y\"\n", path{"agents", "a"}, "agent = \"a\"\n\n# b\n[agents.b]\ncommand = \"y\"\n"},
		{"last table", "[ui]\nplain = true\n[agents.a]\ncommand = \"x\"", path{"agents", "a"}, "[ui]\nplain = true\n"},
		{"in braces", "[agents]\na = {command = \"x\", env = {X = \"1\"}}\nb = {command = \"y\"}\n", path{"agents", "a"}, "[agents]\nb = {command = \"y\"}\n"},
		{"dotted", "agents.a.command = \"x\"\nagents.b.command = \"y\"\nagents.a.args = [\n\"1\"]\n", path{"agents", "a"}, "agents.b.command = \"y\"\n"},
		{"not there", "[ui]\nplain = true\n", path{"agents", "a"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := edit(t, tc.text)
			had, err := e.Unset(tc.key...)
			if err != nil || had != (tc.want != "") {
				t.Fatalf("%v, %v", had, err)
			}
			if tc.want == "" {
				tc.want = tc.text
			}
			if d := cmp.Diff(tc.want, e.Text()); d != "" {
				t.Error(d)
			}
		})
	}
	e := edit(t, "agents = {a = {command = \"x\"}, b = {command = \"y\"}}\n")
	if _, err := e.Unset("agents", "a"); err == nil || !strings.Contains(err.Error(), "written in braces") {
		t.Errorf("in braces with others: %v", err)
	}
}

func FuzzEdit(f *testing.F) {
	f.Add("[ui]\ntheme = \"dark\"\n", "ui.plain", "true")
	f.Add("agents = {a = {command = \"x\"}}\n# c", "agents.a.command", "y")
	f.Add("a.b = 1\n[permissions]\nallow = [\n]", "permissions.allow", "read")
	f.Fuzz(func(t *testing.T, text, key, value string) {
		doc, problem := parseDocument("f", []byte(text))
		if problem != nil {
			return
		}
		e := &Edit{name: "f", doc: doc}
		before := len(doc.entries)
		if e.SetText(key, value) != nil {
			return
		}
		p, _ := parseKey(key)
		if !e.Has(p...) {
			t.Fatalf("%q is not set in %q", key, e.Text())
		}
		if n := len(e.doc.entries); n != before && n != before+1 {
			t.Errorf("%d values were %d, in %q", n, before, e.Text())
		}
		if had, err := e.Unset(p...); err == nil && !had {
			t.Errorf("%q cannot be removed again", key)
		}
	})
}
