// Package tap stands between an editor and an agent: it forwards what they write as it comes and
// passes it to a recorder. With a [Guard] it also answers requests of the agent that the rules
// decide.
//
// # The path
//
// Without a guard a goroutine for each direction reads what is there and writes it, whatever it is.
// Nothing waits for the end of a line, nothing is parsed, and a side that does not read stalls the
// other one as it would without the tap. What passes is split into lines, which a [Sink] receives
// just before they are written, so that an answer is never recorded before its request. The sink
// must not block.
//
// With a guard lines are forwarded as a whole, since a line must be read before it can pass. The
// lines that pass are unchanged, to the byte.
//
// # Endings
//
// Each side sees what it would see without the tap. If one side stops writing, the other sees the
// end of its input; if one stops reading, the other sees a broken pipe; the rest continues. The tap
// ends after the agent has ended and what the agent wrote was forwarded, with the agent's status.
package tap
