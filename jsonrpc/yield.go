package jsonrpc

import "runtime"

const (
	busyBytes  = 64 << 10 // queued bytes from which the lanes go first
	fewEntries = 4        // messages at once from which nobody in particular is waited for
)

// The functions below let other goroutines run before this one continues. All of
// them trade a delay of this goroutine for fewer wake-ups and fewer system calls. The
// numbers, of processor time, are from ADR 0016.

// yieldToLanes has the handlers catch up with the reader, when it has read more than
// they have handled: what is read faster only has to be kept, and perhaps decoded
// again. Without it a stream costs 7 to 12 % more on one processor, the same on two.
func yieldToLanes() { runtime.Gosched() }

// yieldToAnswers lets go first whoever was just made ready to answer, or has an answer
// now: the reader's next attempt to read will most likely find nothing yet, and
// nobody waits for that. Streams of notifications would only lose by it. Without it a
// round trip between processes costs 12 % more where they have one processor.
func yieldToAnswers() { runtime.Gosched() }

// yieldToSenders lets other callers and handlers, which are likely to be about to send,
// do so first: one write then takes all of it. Without it 64 callers cost 54 to 87 %
// more.
func yieldToSenders() { runtime.Gosched() }
