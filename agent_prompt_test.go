package acp

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestPromptStates: where a prompt is in its queue, whether its request stands for
// the turn, and when both let it go.
func TestPromptStates(t *testing.T) {
	errEnded := errors.New("the request has ended")
	for _, tt := range []struct {
		steps     string
		place     promptPlace
		request   promptRequest
		leaves    string // the step that reports it, or ""
		cancelled bool
	}{
		{"", promptQueued, requestOpen, "", false},
		{"second", promptSecond, requestOpen, "", false},
		{"second first", promptFirst, requestOpen, "", false},
		{"first", promptFirst, requestOpen, "", false},
		{"first first second", promptFirst, requestOpen, "", false},
		{"first begin", promptRunning, requestOpen, "", false},
		// A request that ends takes a prompt without a turn with it.
		{"end", promptQueued, requestEnded, "end", true},
		{"second end", promptSecond, requestEnded, "end", true},
		{"first end", promptFirst, requestEnded, "end", true},
		// Version 1: the answer follows the turn.
		{"first begin settle", promptSettled, requestOpen, "", false},
		{"first begin settle end", promptSettled, requestEnded, "end", true},
		{"first begin end", promptRunning, requestEnded, "", true},
		{"first begin end settle", promptSettled, requestEnded, "settle", true},
		// Version 2: the turn follows the answer, and does not end with the request.
		{"first begin answer", promptRunning, requestAnswered, "", false},
		{"first begin answer settle", promptSettled, requestAnswered, "settle", false},
		{"first begin answer end", promptRunning, requestEnded, "", false},
		{"first begin answer end settle", promptSettled, requestEnded, "settle", false},
		{"first begin end answer", promptRunning, requestEnded, "", true},
		// What has left has no turn.
		{"first left begin", promptLeft, requestOpen, "", false},
		{"first left begin settle", promptLeft, requestOpen, "", false},
	} {
		t.Run(tt.steps, func(t *testing.T) {
			p := &prompt{first: make(chan struct{}), second: make(chan struct{})}
			p.ctx, p.stop = context.WithCancelCause(context.Background())
			leaves := ""
			for _, step := range strings.Fields(tt.steps) {
				done := false
				switch step {
				case "second":
					p.advance(1)
				case "first":
					p.advance(0)
				case "begin":
					p.begin()
				case "settle":
					done = p.settle()
				case "answer":
					p.answer()
				case "end":
					done = p.end(errEnded)
				case "left":
					p.place = promptLeft
				}
				if done {
					leaves += step
				}
			}
			if p.place != tt.place || p.request != tt.request || leaves != tt.leaves {
				t.Errorf("place %d, request %d, leaves at %q; want %d, %d, %q", p.place, p.request, leaves, tt.place, tt.request, tt.leaves)
			}
			if p.place != promptLeft && (isClosed(p.first) != (p.place >= promptFirst) || isClosed(p.second) != (p.place >= promptSecond)) {
				t.Errorf("first %v, second %v in place %d", isClosed(p.first), isClosed(p.second), p.place)
			}
			if (context.Cause(p.ctx) != nil) != tt.cancelled {
				t.Errorf("cause %v", context.Cause(p.ctx))
			}
		})
	}
}
