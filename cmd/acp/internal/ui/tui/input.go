package tui

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
)

// The bounds of the input. Pasted text that exceeds longPaste or longLines is shown as a
// placeholder, which is replaced by the text when the prompt is sent.
const (
	longPaste  = 4000 // bytes
	longLines  = 24
	maxPastes  = 64       // placeholders
	maxPrompt  = 16 << 20 // bytes of a prompt
	inputLines = 12       // visible lines
)

// An input is the text area in which the user types, with its history and placeholders.
type input struct {
	area    textarea.Model
	history history
	at      int    // position in the history; its length stands for the draft
	draft   string // what was being typed before the user went back in the history
	pastes  map[string]string
	images  map[string]image
	marks   []string // names of the placeholders, oldest first
	n       int      // placeholders created so far
}

func newInput(dir, cwd string) *input {
	in := &input{area: textarea.New(), pastes: map[string]string{}, images: map[string]image{}}
	in.history.path = historyPath(dir, cwd)
	a := &in.area
	a.ShowLineNumbers = false
	a.CharLimit = 0
	a.MaxHeight = 6
	a.MaxContentHeight = 10000
	a.DynamicHeight = true
	a.MinHeight = 1
	a.EndOfBufferCharacter = ' '
	a.SetPromptFunc(2, func(p textarea.PromptInfo) string {
		if p.LineNumber == 0 {
			return "› "
		}
		return "  "
	})
	a.SetVirtualCursor(false)
	k := &a.KeyMap
	k.InsertNewline = key.NewBinding(key.WithKeys("shift+enter", "alt+enter", "ctrl+j"))
	k.Paste = key.NewBinding(key.WithDisabled()) // acp's own also pastes pictures
	k.CharacterForward = key.NewBinding(key.WithKeys("right"))
	k.DeleteCharacterForward = key.NewBinding(key.WithKeys("delete"))
	k.TransposeCharacterBackward = key.NewBinding(key.WithDisabled())
	k.SelectAll = key.NewBinding(key.WithDisabled())
	a.Focus()
	return in
}

func (in *input) restyle(st *styles) {
	s := textarea.DefaultStyles(true)
	for _, state := range []*textarea.StyleState{&s.Focused, &s.Blurred} {
		state.CursorLine = st.text
		state.Text = st.text
		state.EndOfBuffer = st.text
		state.Placeholder = st.dim
		state.Prompt = st.accent
	}
	s.Cursor.Color = nil
	s.Cursor.Blink = true
	in.area.SetStyles(s)
}

func (in *input) resize(width, lines int) {
	in.area.MaxHeight = max(1, lines)
	in.area.SetWidth(max(4, width))
}

func (in *input) value() string { return in.area.Value() }

func (in *input) set(s string) {
	in.area.SetValue(s)
	in.area.MoveToEnd()
}

func (in *input) clear() {
	in.area.Reset()
	in.at = len(in.history.lines)
	in.draft = ""
}

// update passes a message to the text area.
func (in *input) update(msg tea.Msg) tea.Cmd {
	var cmd tea.Cmd
	in.area, cmd = in.area.Update(msg)
	return cmd
}

// insert inserts text at the cursor, or a placeholder if it is long.
func (in *input) insert(s string) {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	if len(s) > maxPrompt {
		s = s[:maxPrompt]
	}
	if lines := strings.Count(strings.TrimSuffix(s, "\n"), "\n") + 1; len(s) > longPaste || lines > longLines {
		in.area.InsertString(in.newMark("pasted text, "+counted(lines, "line", "lines"), func(name string) { in.pastes[name] = s }))
		return
	}
	in.area.InsertString(s)
}

// insertImage inserts a placeholder for a picture.
func (in *input) insertImage(img image) {
	in.area.InsertString(in.newMark("image, "+size(int64(len(img.data))), func(name string) { in.images[name] = img }))
}

// newMark creates a placeholder and forgets the oldest one beyond maxPastes.
func (in *input) newMark(what string, keep func(name string)) string {
	in.n++
	name := fmt.Sprintf("[#%d %s]", in.n, what)
	keep(name)
	in.marks = append(in.marks, name)
	if len(in.marks) > maxPastes {
		delete(in.pastes, in.marks[0])
		delete(in.images, in.marks[0])
		in.marks = in.marks[1:]
	}
	return name
}

// empty returns the first placeholder in a text that stands for nothing, as in a prompt of an earlier run, whose long texts and
// pictures were not kept; "" if there is none.
func (in *input) empty(text string) string {
	for _, name := range in.marks { // which may have brackets in them
		text = strings.ReplaceAll(text, name, "")
	}
	for _, name := range placeholder().FindAllString(text, -1) {
		if isMark(name) {
			return name
		}
	}
	return ""
}

// isMark reports whether a text in brackets with a number has the form of a placeholder of [input.newMark].
func isMark(name string) bool {
	_, what, _ := strings.Cut(name, " ")
	return slices.ContainsFunc([]string{"pasted text, ", "image, ", "the conversation so far", "output of "}, func(form string) bool {
		return strings.HasPrefix(what, form)
	})
}

// attached returns the pictures and long texts whose placeholders a text contains.
func (in *input) attached(text string) (images []image, long map[string]string) {
	for _, name := range in.marks {
		if !strings.Contains(text, name) {
			continue
		}
		if img, ok := in.images[name]; ok {
			img.name = name
			images = append(images, img)
		}
		if s, ok := in.pastes[name]; ok {
			if long == nil {
				long = map[string]string{}
			}
			long[name] = s
		}
	}
	return images, long
}

// first and last report whether the cursor is in the first or last row of the input.
func (in *input) first() bool { return in.area.Line() == 0 && in.area.LineInfo().RowOffset == 0 }

func (in *input) last() bool {
	i := in.area.LineInfo()
	return in.area.Line() == in.area.LineCount()-1 && i.RowOffset >= i.Height-1
}

// back and forth move through the history. They report false at its ends.
func (in *input) back() bool {
	if in.at <= 0 || len(in.history.lines) == 0 {
		return false
	}
	if in.at >= len(in.history.lines) {
		in.at = len(in.history.lines)
		in.draft = in.value()
	}
	in.at--
	in.set(in.history.lines[in.at])
	return true
}

func (in *input) forth() bool {
	if in.at >= len(in.history.lines) {
		return false
	}
	in.at++
	if in.at == len(in.history.lines) {
		in.set(in.draft)
	} else {
		in.set(in.history.lines[in.at])
	}
	return true
}

// cursorWord returns the word that ends at the cursor, and the text before it on the same line.
func (in *input) cursorWord() (before, word string) {
	lines := strings.Split(in.value(), "\n")
	row := in.area.Line()
	if row >= len(lines) {
		return "", ""
	}
	line := []rune(lines[row])
	col := min(in.area.Column(), len(line))
	start := col
	for start > 0 && line[start-1] != ' ' && line[start-1] != '\t' {
		start--
	}
	return string(line[:start]), string(line[start:col])
}

// replaceWord replaces the word that ends at the cursor.
func (in *input) replaceWord(with string) {
	_, word := in.cursorWord()
	for range []rune(word) {
		in.area, _ = in.area.Update(tea.KeyPressMsg{Code: tea.KeyBackspace})
	}
	in.area.InsertString(with)
}

// size returns a number of bytes in a readable form.
func size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000_000:
		return fmt.Sprintf("%d kB", (n+500)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
