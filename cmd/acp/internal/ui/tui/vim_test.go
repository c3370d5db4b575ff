package tui

import (
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/config"
)

// TestVim: commands do to a prompt what they do in vi. In the texts, | is before the cursor.
func TestVim(t *testing.T) {
	for _, tt := range []struct{ text, keys, want string }{
		{"one two|", "0", "|one two"}, {"|one two", "$", "one tw|o"}, {"|  x y", "w", "  |x y"}, {"  x |y", "^", "  |x y"},
		{"|one two-three", "w", "one |two-three"}, {"|one two-three", "2w", "one two|-three"}, {"|one two-three", "2W", "one two-thre|e"},
		{"one two-thre|e", "b", "one two-|three"}, {"one two-thre|e", "B", "one |two-three"}, {"|one two", "e", "on|e two"}, {"|one two", "2e", "one tw|o"},
		{"a\nb|c\nd", "j", "a\nbc\n|d"}, {"abc\nde|f", "k", "ab|c\ndef"}, {"a\nb\n|c", "gg", "|a\nb\nc"}, {"|a\nb\nc", "G", "a\nb\n|c"}, {"a\nb\n|c", "2k", "|a\nb\nc"},
		{"|a,b,c", "f,", "a|,b,c"}, {"|a,b,c", "2f,", "a,b|,c"}, {"|a,b,c", "t,", "|a,b,c"}, {"a,b,|c", "F,", "a,b|,c"}, {"|abc", "fz", "|abc"},
		{"|abc", "x", "|bc"}, {"|abc", "2x", "|c"}, {"ab|c", "x", "a|b"}, {"ab|c", "X", "a|c"}, {"|one two", "dw", "|two"}, {"one |two", "dw", "one| "}, {"|one two three", "d2w", "|three"},
		{"|one two", "de", "| two"}, {"one tw|o", "db", "one |o"}, {"one |two three", "D", "one| "}, {"a\nb|b\nc", "dd", "a\n|c"}, {"a\nb|b", "dd", "|a"}, {"|a\nb\nc", "2dd", "|c"}, {"|a\nb\nc", "dj", "|c"},
		{"|one", "dd", "|"}, {"|f(a, b)", "df,", "| b)"}, {"|f(a, b)", "dt,", "|, b)"}, {"a|bc", "d0", "|bc"}, {"a|bc", "d$", "|a"},
		{"|one two", "cwsix esc", "si|x two"}, {"one |two", "Cx esc", "one |x"}, {"a\nb|b\nc", "ccx esc", "a\n|x\nc"}, {"|abc", "sx esc", "|xbc"}, {"a|bc", "Sx esc", "|x"},
		{"|one", "ix esc", "|xone"}, {"o|ne", "ax esc", "on|xe"}, {"|one", "Ax esc", "one|x"}, {"  on|e", "Ix esc", "  |xone"}, {"o|ne\nz", "ox esc", "one\n|x\nz"}, {"a\no|ne", "Ox esc", "a\n|x\none"},
		{"|abc", "rx", "|xbc"}, {"|abc", "2~", "AB|c"}, {"|a\n  b", "J", "a| b"},
		{"|ab", "xp", "b|a"}, {"|a\nb", "yyp", "a\n|a\nb"}, {"a\n|b", "yyp", "a\nb\n|b"}, {"a\n|b", "yyP", "a\n|b\nb"}, {"|a\nb", "ddp", "b\n|a"}, {"|one two", "ywP", "one| one two"},
		{"|abc", "xxuu", "|abc"}, {"|abc", "ddu", "|abc"}, {"|abc", "d esc x", "|bc"}, {"|abc", "q", "|abc"}, {"äö|ü", "x", "ä|ö"}, {"", "xddpu", "|"},
	} {
		r := newRig(t, 40, 24, func(o *Options) { o.ui.Editing = "vim" }).start()
		at := strings.Index(tt.text, "|")
		r.m.vim.normal = true
		r.m.vim.show(r.m.input, vimState{[]rune(strings.Replace(tt.text, "|", "", 1)), len([]rune(tt.text[:max(at, 0)]))})
		for _, word := range strings.SplitAfter(tt.keys, " ") {
			if strings.TrimSpace(word) == "esc" {
				r.keys("esc")
				continue
			}
			r.keys(strings.TrimSuffix(word, " "))
		}
		st := r.m.vim.state(r.m.input)
		if got := string(st.text[:st.at]) + "|" + string(st.text[st.at:]); got != tt.want {
			t.Errorf("%q, %s: %q, want %q", tt.text, tt.keys, got, tt.want)
		}
	}
}

// TestVimMode: prompts are typed as ever, Esc leads to the commands, and again to what it does without
// them; what is sent begins anew.
func TestVimMode(t *testing.T) {
	r := newRig(t, 80, 24, func(o *Options) { o.ui.Editing = "vim" }).start()
	r.keys("dd ii", "esc")
	r.wants("› dd ii", "normal")
	if r.m.View().Cursor == nil {
		t.Error("no cursor")
	}
	r.keys("0", "x")
	r.wants("› d ii")
	r.run(r.keys("enter"))
	r.lacks("normal")
	r.keys("x", "esc")
	if r.talk.cancels != 0 {
		t.Error("cancelled")
	}
	r.run(r.keys("esc"))
	if r.talk.cancels != 1 {
		t.Errorf("%d cancels", r.talk.cancels)
	}
	r.keys("x") // now the input is empty
	r.keys("/")
	r.wants("/help")
}

// FuzzVim: no keys crash it, and the cursor is always in the text.
func FuzzVim(f *testing.F) {
	f.Add("a\nb c", "2dwpjyykPddu")
	f.Add("", "JpP~xG")
	f.Fuzz(func(t *testing.T, text, keys string) {
		if len(text) > 200 || len(keys) > 60 {
			return
		}
		in := newInput("", "")
		in.resize(40, 5)
		v := &vim{normal: true}
		in.set(text)
		for _, k := range keys {
			v.pending = append(v.pending, k)
			v.command(in)
			if len(v.pending) > 8 {
				v.pending = nil
			}
			if st := v.state(in); st.at > len(st.text) {
				t.Fatalf("%d of %d", st.at, len(st.text))
			}
			if len(in.value()) > 1<<16 {
				return
			}
		}
	})
}

// TestBind: users' keys take the place of others, and mistakes are said.
func TestBind(t *testing.T) {
	for _, tt := range []struct{ id, key, want string }{
		{"zzzzz", "ctrl+x", `ui.keys: there is no action "zzzzz": the actions are `}, {"chnages", "alt+c", `did you mean "changes"?`},
		{"find", "x", "is what users type"}, {"find", "ctrl+c", "Ctrl+C cannot be changed"}, {"find", "hyper+x", "is not a key"}, {"find", "ctrl+", "is not a key"}, {"find", "esc", "is not a key"},
	} {
		if _, err := boundActions(map[string]string{tt.id: tt.key}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s = %s: %v", tt.id, tt.key, err)
		}
	}
	if _, err := boundActions(map[string]string{"find": "alt+1", "copy": "Alt+1"}); err == nil {
		t.Error("one key for two actions")
	}
	r := newRig(t, 80, 40, func(o *Options) {
		o.ui = &config.UI{Keys: map[string]string{"options": "Alt+P", "stderr": "ctrl+f", "jobs": ""}}
	}).start()
	r.wants("Alt+P")
	r.run(r.keys("ctrl+f"))
	r.wants("written nothing to its standard error")
	r.keys("alt+p")
	r.wants("the agent has no options")
	r.keys("esc", "?")
	r.wants("Alt+P          mode", "Ctrl+F         show what the agent has written")
	r.lacks("Alt+B", "Ctrl+F         search")
}
