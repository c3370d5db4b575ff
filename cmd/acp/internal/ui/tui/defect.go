package tui

import (
	"fmt"
	"runtime/debug"

	tea "charm.land/bubbletea/v2"
)

// A defect is a panic of a command. The loop of the screen panics with it again, so that what it is and where is written
// before [Run] returns: bubbletea writes a panic of a command while the program ends already.
type defect struct {
	value any
	stack []byte
}

// Error returns what is written.
func (d defect) Error() string { return fmt.Sprintf("%v\n\n%s", d.value, d.stack) }

// guard makes a panic of a command a message. That is a defect.
func guard(cmd tea.Cmd) tea.Cmd {
	if cmd == nil {
		return nil
	}
	return func() (msg tea.Msg) {
		defer func() {
			if r := recover(); r != nil {
				msg = defect{r, debug.Stack()}
			}
		}()
		msg = cmd()
		if all, ok := msg.(tea.BatchMsg); ok { // whose commands are called elsewhere
			guarded := make(tea.BatchMsg, len(all))
			for i, cmd := range all {
				guarded[i] = guard(cmd)
			}
			return guarded
		}
		return msg
	}
}
