package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
)

// maxToldCommands bounds how many of the commands that are left out are named.
const maxToldCommands = 5

// A wish is what a prompt asks for. Editors add text blocks with context before or after
// what the user has typed, and some send a prompt whose turn was cancelled again with the
// next one.
type wish struct {
	text   string   // the block that counts, or "" if there is no text
	name   string   // of the command it begins with
	rest   string   // what follows that
	ok     bool     // it is a command
	others []string // names of the commands in other blocks
}

// wishOf returns what a prompt asks for: the last of its texts that begins with a command,
// or else its last text. The first again blocks of text are prompts whose turns were
// cancelled; commands in them are left out.
func wishOf(blocks []acp.ContentBlock, again int) wish {
	var w wish
	all := promptTexts(blocks)
	for i, text := range slices.Backward(all) {
		name, rest, ok := splitCommand(text)
		switch {
		case !ok:
		case w.ok || i < again:
			w.others = append(w.others, name)
		default:
			w = wish{text, name, rest, true, w.others}
		}
	}
	if !w.ok && len(all) > 0 {
		w.text = all[len(all)-1]
	}
	slices.Reverse(w.others)
	return w
}

// promptTexts returns the texts of a prompt that say something.
func promptTexts(blocks []acp.ContentBlock) []string {
	var all []string
	for _, b := range blocks {
		if t, ok := b.(*acp.TextContent); ok && strings.TrimSpace(t.Text) != "" {
			all = append(all, t.Text)
		}
	}
	return all
}

// leftOut says that commands are not carried out; "" if there are none.
func (w wish) leftOut() string {
	if len(w.others) == 0 {
		return ""
	}
	var names []string
	for _, name := range w.others[:min(len(w.others), maxToldCommands)] {
		names = append(names, prose.Inline("/"+prose.OneLine(name, 40)))
	}
	if more := len(w.others) - maxToldCommands; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	list := strings.Join(names, ", ")
	if w.ok {
		return "This prompt holds several commands. I carry out the last one; these are left out: " + list + ".\n\n"
	}
	return "Your editor has sent cancelled commands again. They are left out: " + list + ".\n\n"
}

// cancelled are the texts of a prompt whose turn was cancelled, while no other
// prompt has been answered since. Its zero value is none.
type cancelled []string

// maxCancelled bounds what is remembered of a cancelled prompt, in bytes.
const maxCancelled = 64 << 10

// again counts the texts at the beginning of a prompt that are those of the
// cancelled one. A prompt that has nothing else is one that the user has typed
// again.
func (c cancelled) again(blocks []acp.ContentBlock) int {
	all := promptTexts(blocks)
	if len(c) == 0 || len(all) <= len(c) || !slices.Equal(all[:len(c)], c) {
		return 0
	}
	return len(c)
}

// cancelledPrompt remembers a prompt, unless it is too long.
func cancelledPrompt(blocks []acp.ContentBlock) cancelled {
	all := promptTexts(blocks)
	size := 0
	for _, text := range all {
		if size += len(text); size > maxCancelled {
			return nil
		}
	}
	return all
}

// titleOf makes a title of a prompt: of what it asks for, not of the context that
// an editor has put before it.
func titleOf(w wish) string {
	line, _, _ := strings.Cut(strings.TrimSpace(w.text), "\n")
	return prose.OneLine(line, maxTitle)
}
