package launch

import (
	"strings"
	"sync"

	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/jsonrpc"
)

// An accent is what gives away a program that is no agent, so that nobody waits for the answer it
// will never give. Its methods may be called from any goroutine.
type accent struct {
	stop    func()       // called once it is found out
	ignored func(string) // called with each line; or nil

	mu    sync.Mutex
	heard bool // the first line that is no message was seen
	line  string
	found string
}

// maxAccent bounds the line that is shown, in cells.
const maxAccent = 200

// speaks says what the program speaks, in words that follow "it", "" if it may be an agent; and the
// first line it wrote that is no message, "" if there is none.
func (a *accent) speaks() (what, line string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.found, a.line
}

// take looks at the first line that is no message.
func (a *accent) take(e jsonrpc.Event) {
	if e.Kind != jsonrpc.EventNoise {
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
