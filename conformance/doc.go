// Package conformance checks whether agents and clients keep to the Agent Client
// Protocol. Its rules are data: what must hold, how strictly, where the
// specification says so, and a scenario that tries it.
//
// [CheckAgent] and [CheckClient] play the other side of a connection and report
// the result of each [Rule]. [CheckServer] checks a server of HTTP and WebSockets,
// request by request. A [Monitor] checks those that can be seen on any
// traffic, live or recorded.
//
// # Files of rules
//
// Rules are in archives in the txtar format, rules/SIDE/TOPIC.txtar. A member is
// a rule with the id SIDE/TOPIC/NAME: a sentence, lines about it, a blank line and
// the scenario.
//
//	-- unknown-request --
//	An unknown request is refused with -32601, and the connection continues.
//	level must
//	cite S20
//
//	call $r _check/unknown {}
//	error $r -32601
//	alive
//
// The lines are
//
//	level must | should | may | quirk
//	cite S20 S21        statements of the specification
//	versions 1 2        of the protocol; both if it is missing
//	needs session.fork  a capability without which the rule does not apply
//	lacks session.fork  one with which it does not apply
//	except http         a transport, http or websocket, that decides this by itself
//	experimental        it is about what only drafts have
//	fresh               the scenario needs an initialized connection of its own
//	bare                it needs a connection on which nothing was sent
//	turn                for clients: it needs a turn of its own
//
// A capability is a path in what the peer offers in initialize, in the words of
// version 2, which are translated (session.fork is sessionCapabilities.fork in
// version 1, session.load is loadSession, session.prompt.image is
// promptCapabilities.image), or of the version that is spoken; "needs v1
// terminal" is about one version only. authMethods is the list beside them.
//
// Scenarios of a topic are played on a connection that they share, one after another,
// and agents' in one session, as long as none fails; those that make or end sessions
// by themselves get another one. Clients' scenarios of all topics share a connection, and
// a turn unless they have a step stop.
//
// With [Options.Jobs], [CheckAgent] plays several scenarios at a time, each on a connection
// that no other one uses meanwhile. Which of them share a connection does not depend on how
// many. One with a step measure, login or logout is played alone.
//
// A scenario that fails, or cannot be played, on a connection that was used or beside others
// is played again when all others have ended, alone and on a new connection, and only that
// counts. So is one that leaves its rule unseen after a step has waited in vain. A client's is
// played again at once, and only if it has failed on a connection that was used.
//
// # Scenarios
//
// A step is a line; values may continue on the next lines. Lines after v1: or v2:
// belong to one version, those after both: to both again. # begins a comment.
//
//	call $r METHOD [PARAMS]      makes a request; $r is its id
//	result $r [PATTERN]          it must be answered with a result
//	error $r CODE|CODE [PATTERN] or with an error of these codes, or of any
//	reply $r [PATTERN]           or somehow; the pattern is of the whole frame
//	settled                      every call so far must be answered
//	notify METHOD [PARAMS]       sends a notification
//	send [$r] FRAME              sends a value as it is; a request is the call $r
//	line "TEXT"                  sends a text as a frame, with Go's escapes
//	raw "BYTES"                  writes bytes between frames, where that is possible
//	alive                        the peer must answer a request
//
//	expect WHAT      it must come
//	await WHAT       if it does not come, the rule is unseen
//	before $r WHAT   it must come before the answer to $r
//	never WHAT       it must not come, from here to the end of the scenario, which is when
//	                 the peer has answered two more requests
//	quiet TIME [WHAT] nothing may come for a while, or not this
//	answer $q RESULT answers a request of the peer
//	refuse $q CODE ["MESSAGE"]
//
//	WHAT is  METHOD [$q] [PATTERN of params]   $q names a request
//	         update [PATTERN of the update]     of $session
//	         frame PATTERN                      any message, in never only
//	                                            those that answer no call
//
//	let $x VALUE        $x stands for a value from here on
//	fill $x N "TEXT"    for a text repeated N times
//	join $x "TEXT" $y … for texts, and what names stand for, as one text
//	is $x PATTERN       it must match; isnt: it must not
//	need $x PATTERN     if it does not match, the rule is unseen
//	repeat N … end      does steps N times; $n counts from 0. What is captured within
//	                    is captured anew each time
//	each $x $list … end does steps for each element; $n counts likewise
//	together … end      sends what the steps send in one write
//	within TIME         how long steps wait from here on, for a peer of usual speed
//	wait TIME           receives for a while
//	deaf [TIME], listen stops reading, and continues at the latest after TIME
//	measure $u          $u is the memory and number of the peer's processes
//	spare N             they take no more than that, and N MiB
//	eof                 ends the peer's input
//	closed              the peer must close the connection
//	exit N|any          its process must end, with a status
//	hangup              closes the connection
//
// When an agent is checked:
//
//	session                     $session is the session scenarios share
//	session new [MEMBERS]       or one of its own, with members of the params
//	session $s [MEMBERS]        or another one, called $s
//	initialize [MEMBERS]        initializes a bare connection
//	initialize $r [MEMBERS]     only sends the request, whose answer is judged
//	list $all [MEMBERS]         $all is all sessions, of all pages of session/list
//	restart                     ends the agent and starts it again
//	login $r, logout $r         signs in or out, as far as the options allow
//	probe $m stdio | http       starts an MCP server; $m is its entry in mcpServers
//	connected                   the agent must connect to it
//	file $f "TEXT"              makes a file that the client has; $f is its path
//	prompt $r PURPOSE [$s]      sends a prompt that makes the agent do something
//	ended $r [PATTERN]          the turn must end, with such a stopReason
//	done $r                     the prompt must be refused, or its turn end
//	busy $r TIME                the turn must not end for so long, and before the answer to
//	                            another request
//	said $r PATTERN             what the agent has said in it so far, as one string
//	counted $r N                which is the numbers from 0 to N-1; unseen if it is none
//
// The purposes are those of [Purposes]. A scenario whose prompt is not configured
// is unseen. $cwd is a directory for sessions, $hello the params of initialize,
// $init the result, and $version the version of the protocol.
//
// When a client is checked:
//
//	tell UPDATE                 sends an update of $session
//	say "TEXT"                  sends a piece of the agent's message
//	allow $r [MEMBERS]          asks for permission, with members of the params
//	stop [REASON] [MEMBERS]     ends the turn, with members of the result, or of the
//	                            state that ends it
//	over                        the client must continue: answer a request, prompt
//	                            again or close the connection
//	either WHAT                 it must come, or the connection be closed
//	pause TIME                  receives for a while; the client may leave
//	saved "ID"                  lists a session of that id, which the client may open
//	stderr N "TEXT"             writes a text N times to the agent's standard error
//	greet $q [RESULT]           answers initialize, that was waited for with expect,
//	                            and is how it is answered from here on
//	turn                        waits for the next prompt
//	initialize [MEMBERS]        on a bare connection: waits for initialize and
//	                            answers it, with members of the result
//	session [MEMBERS]           likewise for session/new
//
// $init is the params of the client's initialize, $session the session of the
// turn, $prompt the params of its session/prompt, $cwd the directory of the last
// session that was opened, and $file a path in it for files that the client is
// asked to write. If a scenario waits for session/new and the client continues an
// old session, or the other way round, the rule is unseen. If a client leaves in
// good order when its turn has ended, what a scenario would try afterwards stays
// unseen.
//
// When a server is checked, each scenario has connections of its own. The rules need
// http, websocket, token, loopback or tls, and may cite RFD, the specification of the
// transport, and RFCs. A header is a text "Name: value" in which $name stands for its
// value; without a value it is left out. Requests have those that a correct client
// sends: the media types, Acp-Connection-Id if there is a connection, and
// Acp-Session-Id if params.sessionId is there.
//
//	connect ["HEADER"…]         opens a connection, whose id is $connection
//	session [$s]                opens a session, $session, on it, and reads the stream
//	                            of the connection, $stream
//	post FRAME|"TEXT" ["HEADER"…]
//	get, delete ["HEADER"…]
//	request METHOD ["HEADER"…]  the same with any method; the response is $response
//	status CODE|CODE            of the last response
//	header NAME PATTERN         it must have the header
//	without NAME                it must not
//	optional NAME $x            $x is the header, if it is there
//	body PATTERN                JSON, or a string
//	prompt $r PURPOSE [$s]      posts a prompt
//	stream $s ["HEADER"…]       reads a stream; if that is impossible the rule cannot
//	                            be tried
//	reads $s ["HEADER"…]        the same, but it must be possible
//	reopen $s ["HEADER"…]       the same, when the reader before has just left
//	event $s PATTERN            such a message must come on it
//	await $s PATTERN            without it, the rule is unseen
//	anywhere PATTERN            likewise, on any stream
//	never $s PATTERN            it must not have come, beside what steps were about
//	arrives $s N                so many events must come, of whatever form
//	counting $s N               messages of the agent that are the numbers from 0
//	wellformed $s, unnamed $s   what came must be messages, and have no names
//	comment $s                  a comment must come; without one, the rule is unseen
//	ended $s                    the stream must end
//	leave $s                    stops reading it
//	differ $x $y N              the first or the last N bytes must differ
//
//	upgrade ["HEADER"…]         asks for a WebSocket; $accept is the proof that is due
//	socket ["HEADER"…]          opens one
//	greet                       initializes it
//	send FRAME, text "TEXT"     sends a message
//	part "TEXT", last "TEXT"    sends a message in several frames
//	binary "TEXT"               sends a binary message
//	ping "TEXT", pong "TEXT"    sends a ping; waits for a pong
//	bytes "TEXT"                sends bytes past the WebSocket
//	receive PATTERN             such a message must come
//	silent PATTERN              it must not have come
//	plain                       what came must be text frames, one message in each
//	refused                     what was sent last must not be taken as a request
//	close CODE                  sends a close frame
//	closed CODE|CODE|any        the WebSocket must be closed
//
// The steps let, fill, is, isnt, need and within are there, too.
//
// Requests of the peer that no step of the scenario is about are answered in the
// background, as a correct peer does: permission is given once, files
// are those of the scenario, terminals say hello, forms are declined, and unknown
// methods are refused. After a step of the scenario has answered a question for
// permission, further questions are answered the same way; in a cancelled turn they are
// answered as cancelled. A request that a later step may be about waits for
// that step, and is answered at the end of the scenario at the latest.
//
// Patterns are JSON in which ... stands for anything, for whatever other members
// an object has and, once or at both ends, for any elements of an array; $name for
// any value, the same wherever the name comes; string, number, integer, boolean,
// object, array for values of that type; ~"regexp" for a matching string; a | b
// for either; !a for anything else; and "name"?: for a member that may be missing.
// Patterns of errors need no ... for other members.
//
// # Bounds
//
// A step waits for [DefaultTimeout], or [Options.Timeout]. A peer that has answered
// nothing but initialize in 5 trials in a row, each on a connection of its own, is
// asked for a session, or a client for what it must refuse; if that is not
// answered either, nothing more is tried, and [Report.Mute] says so. What the peer sends is
// read ahead up to 4096 frames and 16 MiB; then reading stops until a step receives
// it. A scenario fails when it has received 200,000 frames or 256 MiB. Of a server's
// stream or WebSocket 4096 messages are kept, of up to 16 MiB. A result
// keeps 32 frames, of each the first 2 kB. No goroutine outlives a check, unless closing a
// stream does not end its read and write; such streams are abandoned after 5 s.
package conformance
