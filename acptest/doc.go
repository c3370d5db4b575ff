// Package acptest helps to test agents and clients: [Pair] connects the two in
// memory, scripts play a peer with any quirk, [Faults] break a stream, [Grease]
// tests a peer's tolerance, and [Golden] compares whole conversations. It works
// at the level of [jsonrpc.Stream], so its parts can be combined with each other and
// with any transport.
//
//	conn, _ := acptest.Pair(t, agent, client)
//
// # Scripts
//
// A script plays one side of a conversation on the wire, byte by byte. It describes
// the quirk of an agent in a few lines:
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
// Blank lines, and space at both ends of a line, are ignored. A comment begins with #;
// it has its own line or follows a step. The steps, one per line, are played in order:
//
//	-> JSON       The peer under test must send this next.
//	...           The peer may send anything until the frame that the next -> line
//	              describes, or until the !eof. As the last line: anything at all.
//	<- JSON       The script sends this.
//	!raw TEXT     The script sends the rest of the line unchanged, JSON or not.
//	!initialize N The handshake in protocol version N. An agent's script answers
//	              initialize, also again and on a new stream if the client asks
//	              for a higher version first; a client's script makes the request.
//	!session NAME The same for session/new. An agent's script gives the session the
//	              id NAME. In both, $NAME is the id.
//	!sleep 10ms   The script pauses; in a testing/synctest bubble time is virtual.
//	!timeout 10s  From here on, the time that the script waits for each frame, and
//	              for the peer to take one. The default is 10 s.
//	!stall        The script reads and writes nothing more.
//	!close        The script closes the stream.
//	!eof          The peer under test must close the stream.
//	!reopen       The transport must be opened again; the script continues there.
//
// A JSON value may span several lines. What is expected is a pattern:
//
//	...                      any value; in an object: any other members; in an array,
//	                         once or at both ends: any elements
//	$name                    any value, which is remembered; later uses of the name must
//	                         be equal to it, and where it is sent, it is sent unchanged
//	string, number, integer, any value of that type
//	boolean, object, array
//	~"regexp"                a string that matches the expression somewhere
//	a | b                    either
//	!a                       anything else
//	"name"?                  a member that may be missing
//	anything else            the same value; numbers are compared by value
//
// The member jsonrpc may be left out: it is required in what is received, and added to
// what is sent. !initialize and !session may be followed by an object. Its members are
// added to the result, or for a client to the params, and replace those of the same name.
//
// After the last step the peer may close the stream, but must not send anything. If the
// peer does not follow the script, the error is a [*ScriptError]: it has the line, what
// was expected and what was received.
//
// # Bubbles
//
// Everything here works in testing/synctest bubbles, because it waits only for channels
// and timers. In a bubble waiting takes no time, and each side sends in a repeatable
// order. Where frames of the two sides cross is not repeatable: call synctest.Wait
// between two steps of a test whose order matters. [Golden] does not need that.
package acptest
