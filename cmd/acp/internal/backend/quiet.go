package backend

import (
	"fmt"
	"strings"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/jsonrpc"
)

// stderrWait bounds the wait for the reason of a turn in which nothing was said: it comes by
// another stream than the answer.
const stderrWait = 100 * time.Millisecond

// A turnMark is how much a link had written, apart from messages, when a turn began.
type turnMark struct {
	stderr int // lines
	ignored
}

// ignored counts what was ignored of the agent's output.
type ignored struct {
	noise  uint64 // frames that are not messages
	unread uint64 // messages that were too large or nested too deeply
	unfit  uint64 // messages that did not fit the protocol
	misfit string // what did not fit in the first of those that are not reported
}

// noticed counts messages that do not fit the protocol, and reports an answer to a request that was never
// sent at once: what waits for the answer may wait for ever.
func (l *link) noticed(e jsonrpc.Event) {
	switch e.Kind {
	case jsonrpc.EventMalformedNotification:
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.unfit++; l.misfit == "" {
			l.misfit = safetext.Line(e.Path, maxMisfit)
		}
	case jsonrpc.EventUnknownResponse:
		id := safetext.Line(string(e.Data), maxMisfit)
		if id == "" || id == "null" { // it answers what it could not read
			return
		}
		if l.stray.CompareAndSwap(false, true) {
			l.host.apart(func() {
				l.host.note(Note{Kind: NoteNoise, Text: "the agent answered a request that was never sent: id " + id})
			})
		}
	}
}

// maxMisfit bounds the name of a member and an id in a note, in cells.
const maxMisfit = 100

func (l *link) mark() turnMark { return turnMark{l.stderr.mark(), l.ignored()} }

func (l *link) ignored() ignored {
	st := l.conn.Conn().Stats()
	l.mu.Lock()
	defer l.mu.Unlock()
	return ignored{st.Noise + st.Invalid, st.Oversize + st.TooDeep, l.unfit, l.misfit}
}

// quiet reports that a turn has ended in which nothing was said, which looks like success, and that
// something was ignored. It reports lines that are not messages once for as long as the agent runs,
// since some agents log to their standard output all the time. What an agent that answers has
// written before its turns, such as a banner, does no harm.
func (s *Session) quiet(on *link, mark turnMark, silent bool) {
	h := s.host
	now := on.ignored()
	before := on.tell(now, mark.noise, silent)
	now.unfit -= before.unfit // what was replayed before the turn counts
	if !silent {
		told := now
		told.noise -= max(mark.noise, before.noise)
		told.unread -= max(mark.unread, before.unread)
		if before.noise > 0 {
			told.noise = 0
		}
		if text := told.String(); text != "" {
			h.note(Note{Kind: NoteNoise, Text: text})
		}
		return
	}
	ignored, why := now.String(), ""
	if line := on.stderr.since(mark.stderr, stderrWait); line != "" {
		why = "the last it wrote to standard error: " + line
	}
	if ignored != "" {
		if why != "" {
			why = "; " + why
		}
		why = ignored + why
	}
	notice := &acp.Notice{Severity: acp.NoticeSeverityWarning, Title: "The agent said nothing", Description: sentence(why)}
	text := "the agent said nothing"
	if why != "" {
		text += "; " + why
	}
	s.put(notice)
	h.note(Note{Kind: NoteSilent, Text: text})
}

// tell records that what was ignored so far is reported; lines that are not messages only if some
// of them came after mark or all are reported. It returns what was reported before.
func (l *link) tell(now ignored, mark uint64, all bool) (before ignored) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before = ignored{noise: min(l.told.noise, now.noise), unread: min(l.told.unread, now.unread), unfit: min(l.told.unfit, now.unfit)}
	if all || now.noise > mark {
		l.told.noise = max(l.told.noise, now.noise)
	}
	l.told.unread = max(l.told.unread, now.unread)
	if now.unfit > l.told.unfit {
		l.told.unfit, l.misfit = now.unfit, ""
	}
	return before
}

// String returns it in a line, or "" for nothing.
func (i ignored) String() string {
	var list []string
	switch i.noise {
	case 0:
	case 1:
		list = append(list, "a line that is not ACP was ignored: --verbose shows it")
	default:
		list = append(list, fmt.Sprintf("%d lines that are not ACP were ignored: --verbose shows them", i.noise))
	}
	switch i.unread {
	case 0:
	case 1:
		list = append(list, "a message was too large or nested too deeply, and was ignored")
	default:
		list = append(list, fmt.Sprintf("%d messages were too large or nested too deeply, and were ignored", i.unread))
	}
	switch at := ""; i.unfit {
	case 0:
	case 1:
		if i.misfit != "" {
			at = " (" + i.misfit + ")"
		}
		list = append(list, "a message that does not fit the protocol was ignored"+at+": --verbose shows it")
	default:
		if i.misfit != "" {
			at = " (the first: " + i.misfit + ")"
		}
		list = append(list, fmt.Sprintf("%d messages that do not fit the protocol were ignored%s: --verbose shows them", i.unfit, at))
	}
	return strings.Join(list, "; ")
}

// sentence makes the first letter a capital.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
