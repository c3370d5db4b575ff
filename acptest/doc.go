// Package acptest helps to test agents and clients: [Pair] connects the two in
// memory, scripts play a peer with any quirk, [Faults] break a stream, [Grease]
// tries a peer's tolerance, and [Golden] compares whole conversations. It works
// on the level of [jsonrpc.Stream], so what it makes can be combined with each
// other and with any transport.
//
//	conn, _ := acptest.Pair(t, agent, client)
//
// # Scripts
//
// A script plays one side of a conversation on the wire, byte by byte, so that
// the quirk of an agent can be written down in a few lines:
//
//	agent := acptest.ScriptedAgent(t, `
//		!initialize 1
//		!session s1
//		-> {"id":$id,"method":"session/prompt","params":{...}}
//		<- {"id":$id,"result":{"stopReason":"end_turn"}}
//		<- {"method":"session/update","params":{"sessionId":"s1","update":{ # too late
//			"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"oh"}}}}
//	`)
//	conn, err := client.Connect(ctx, agent)
//
// Blank lines and space around lines mean nothing; a line that begins with # is
// a comment, and one may follow a step. The steps, one a line, are played in
// order:
//
//	-> JSON       The peer under test has to send this next.
//	...           It may send anything up to the frame that the next -> line, or
//	              !eof, describes, and as the last line anything at all.
//	<- JSON       The script sends this.
//	!raw TEXT     The script sends the rest of the line as it is, JSON or not.
//	!initialize N The handshake in protocol version N. An agent's script answers
//	              initialize, also again and on a new stream if the client asks
//	              for a higher version first; a client's script makes the request.
//	!session NAME The same with session/new. An agent's script calls the session
//	              NAME. $NAME is the id in both.
//	!sleep 10ms   Nothing happens for a time, virtual in a testing/synctest bubble.
//	!timeout 10s  How long the script waits, from here on, for each frame and for
//	              the peer to take one. It is 10 s at first.
//	!stall        The script reads and writes nothing more.
//	!close        The script closes the stream.
//	!eof          The peer under test has to close the stream.
//	!reopen       The transport must be opened again; the script continues there.
//
// A JSON value may stand on several lines. In what is expected, ... stands for
// any value, for any other members of an object and, once in an array or at both
// of its ends, for any elements; all else has to be there and equal, numbers by value. $name stands
// for any value, which is kept; where it comes again, it has to be the same, and
// where it is sent, the value goes out as it came in. The words string, number,
// integer, boolean, object and array stand for any value of that type, ~"regexp"
// for a string in which the expression is found, a | b for either, !a for
// anything else, and a member "name"? may be missing. The member jsonrpc may be
// left out: it has to be there when a message is received, and is added to what
// is sent. !initialize and !session may be followed by an object with members to
// be added to the result, or to the params for a client, or to replace those
// there are.
//
// After the last step the peer may close the stream, but not send anything. A
// script that is not followed is a [*ScriptError]: it names the line, what was
// expected and what was received.
//
// # Bubbles
//
// Everything here works in testing/synctest bubbles: it waits in channels and
// timers only. In a bubble waiting takes no time, and the order in which one side
// sends is repeatable. Frames of the two sides that cross each other are not: call
// synctest.Wait between two steps of a test whose order matters. [Golden] does not
// need that.
package acptest
