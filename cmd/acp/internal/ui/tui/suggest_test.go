package tui

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// suggested returns a suggestion for each text.
func suggested(texts ...string) (list []acpv2.PromptSuggestion) {
	for _, text := range texts {
		list = append(list, acpv2.PromptSuggestion{Prompt: []acp.ContentBlock{acp.Text(text)}})
	}
	return list
}

// TestSuggestion: an empty input offers the first prompt that the agent suggests. Tab takes it without sending, typing and Esc
// hide it, and a list that the agent withdraws, or that a prompt follows, is offered no more.
func TestSuggestion(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	update := func(texts ...string) {
		t.Helper()
		r.talk.suggests = suggested(texts...)
		r.said(&acpv2.PromptSuggestionsUpdate{Suggestions: r.talk.suggests})
	}
	update("Run the tests", "Stop here")
	r.wants("› Run the tests · Tab takes it")
	r.lacks("Stop here")
	r.keys("x")
	r.lacks("Run the tests")
	r.keys("backspace")
	r.wants("Run the tests")
	r.run(r.keys("tab"))
	r.wants("› Run the tests")
	if got := r.m.input.value(); got != "Run the tests" || len(r.talk.sent()) > 0 {
		t.Errorf("the input has %q, and %d prompts were sent", got, len(r.talk.sent()))
	}
	r.m.input.clear()

	update("Fix the bug")
	r.wants("Fix the bug")
	r.lacks("Run the tests")
	r.run(r.keys("esc"))
	r.lacks("Fix the bug")
	r.keys("tab")
	if !r.m.browsing && r.m.input.value() != "" {
		t.Errorf("Tab has taken %q, which was hidden", r.m.input.value())
	}
	r.m.browsing = false
	update("Fix the bug")
	r.wants("Fix the bug") // suggested again
	update()
	r.lacks("Fix the bug")

	update("Commit it")
	r.run(r.keys("other", "enter"))
	r.lacks("Commit it")
	r.send(turnMsg{attempt: 1, talk: r.talk, result: &acp.Result{StopReason: acp.StopEndTurn}})
	r.lacks("Commit it")
	update("Commit it")
	r.wants("Commit it")
}

// TestSuggestionOffered: a suggestion that cannot be typed is left out, and one that can be is made safe to print.
func TestSuggestionOffered(t *testing.T) {
	image := acpv2.PromptSuggestion{Prompt: []acp.ContentBlock{acp.Text("Look: "), &acp.ImageContent{}}}
	for name, test := range map[string]struct {
		list []acpv2.PromptSuggestion
		want string
	}{
		"none":         {nil, ""},
		"no blocks":    {[]acpv2.PromptSuggestion{{}}, ""},
		"an image":     {[]acpv2.PromptSuggestion{image}, ""},
		"another":      {append([]acpv2.PromptSuggestion{image, {}}, suggested(" \n", "Go on")...), "Go on"},
		"escapes":      {suggested("\x1b]0;owned\x07\x1b[2JGo\x1b[31m on\u202e\u009b31m"), "Go on"},
		"only escapes": {suggested("\x1b[2J"), ""},
		"too long":     {suggested(strings.Repeat("x", maxSuggestion+1)), ""},
		"lines":        {suggested("one\ntwo"), "one\ntwo"},
	} {
		t.Run(name, func(t *testing.T) {
			got, of := offered(test.list)
			if diff := cmp.Diff(test.want, got); diff != "" || (of != nil) != (got != "") {
				t.Error(diff, of)
			}
		})
	}
	r := newRig(t, 30, 24, nil).start()
	r.talk.suggests = suggested("\x1b]0;owned\x07First line\x1b[2J\nsecond line, which is long")
	r.wants("› First line second line, w")
	lines, _ := r.m.draw()
	if raw := strings.Join(lines, "\n"); strings.Contains(raw, "owned") || strings.Contains(raw, "\x1b[2J") {
		t.Errorf("%q", raw)
	}
	r.keys("tab")
	if got := r.m.input.value(); got != "First line\nsecond line, which is long" {
		t.Errorf("%q", got)
	}
}

// TestUnset: what the user has chosen for a session and it did not get is said, and the conversation goes on.
func TestUnset(t *testing.T) {
	r := newRig(t, 80, 24, nil)
	r.talk.unset = []error{errors.New("--mode code: no code today")}
	r.start()
	r.wants("--mode code: no code today")
}
