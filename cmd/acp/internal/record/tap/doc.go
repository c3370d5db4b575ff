// Package tap stands between an editor and an agent: it forwards what they say as it comes and tells
// a recorder of it. With a [Policy] it also answers what the agent asks for that the rules decide.
//
// # The path
//
// Without a policy there is a goroutine for each direction that reads what is there and writes it,
// whatever it is; nothing waits for the end of a line, nothing is taken apart, and a side that does
// not read stalls the other as it would without the tap. What passes is cut into lines, which are
// handed to a [Sink] just before they are written, so that an answer is never recorded before its
// request. The sink must not block.
//
// With a policy lines are forwarded as a whole, since one has to be read before it can be let
// through. Those that are let through stay as they were, to the byte.
//
// # Endings
//
// Each side sees what it would see without the tap. Where one stops writing the other sees the end
// of its input, and where one stops reading the other sees a broken pipe; the rest goes on. The tap
// ends when the agent has, with its status, after what the agent wrote was forwarded.
package tap
