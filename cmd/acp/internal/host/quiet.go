package host

import (
	"fmt"
	"strings"
	"time"

	"github.com/goacp/acp"
)

// stderrWait is how long the reason of a turn in which nothing was said is waited for: it comes another
// way than the answer.
const stderrWait = 100 * time.Millisecond

// A turnMark is what a link had written besides messages when a turn began.
type turnMark struct {
	stderr int    // lines
	noise  uint64 // frames that are no messages
}

func (l *link) mark() turnMark {
	frames, _ := l.conn.Noise()
	return turnMark{l.stderr.mark(), frames}
}

// quiet says that a turn has ended in which nothing was said, which looks like success, and that lines
// were ignored. What an agent that answers has written before its turns, such as a banner, does no harm.
func (s *Session) quiet(on *link, mark turnMark, silent bool) {
	h := s.host
	frames, _ := on.conn.Noise()
	if !silent {
		mark.noise = max(mark.noise, on.told(frames))
		ignored := ignoredLines(frames - mark.noise)
		if ignored != "" {
			h.note(Note{Kind: NoteNoise, Text: ignored})
		}
		return
	}
	on.told(frames)
	ignored, why := ignoredLines(frames), ""
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

// told notes that so many frames were told, and returns how many were before.
func (l *link) told(frames uint64) (before uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, l.noise = l.noise, max(l.noise, frames)
	return min(before, frames)
}

func ignoredLines(n uint64) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "a line that is not ACP was ignored: --verbose shows it"
	}
	return fmt.Sprintf("%d lines that are not ACP were ignored: --verbose shows them", n)
}

// sentence makes the first letter a capital.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
