package launch

import (
	"strings"
	"sync"

	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/jsonrpc"
)

// An accent recognizes a program that is not an agent by the first line it writes, so that nobody
// waits for an answer that never comes. Its methods may be called from any goroutine.
type accent struct {
	stop    func()       // called once it is recognized
	ignored func(string) // called with each line; or nil
	noticed func(jsonrpc.Event)

	mu    sync.Mutex
	heard bool // the first line that is not a message was seen
	line  string
	found string
}

// maxAccent bounds the line that is shown, in cells.
const maxAccent = 200

// speaks returns what the program speaks, in words that follow "it", or "" if it may be an agent;
// and the first line it wrote that is not a message, or "" if there is none.
func (a *accent) speaks() (what, line string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.found, a.line
}

// take examines the first line that is not a message.
func (a *accent) take(e jsonrpc.Event) {
	if e.Kind != jsonrpc.EventNoise {
		if a.noticed != nil {
			a.noticed(e)
		}
		return
	}
	text := strings.TrimSpace(string(e.Data))
	if a.ignored != nil {
		a.ignored(text)
	}
	a.mu.Lock()
	first := !a.heard && text != ""
	a.heard = a.heard || first
	found := ""
	if first {
		found = Speaks(text)
	}
	if first {
		a.found, a.line = found, safetext.Line(text, maxAccent)
	}
	a.mu.Unlock()
	if found != "" {
		a.stop()
	}
}
