// Package holder keeps the standard input and output of an agent while the gateway that uses the
// agent restarts, crashes or is upgraded.
//
// An agent that is a child of its gateway dies with it, and its turn and the permissions it waits
// for die, too. Therefore each agent has a holder: a small process of its own, which starts the
// agent, outlives whoever has started it, and listens on a Unix socket. The gateway attaches to that socket. When
// the gateway is gone, the holder keeps what the agent writes until another gateway attaches, and
// ends the agent if none does in time.
//
// [Start] starts a holder and attaches to it, [Attach] attaches again, and [List] finds the holders
// that an earlier gateway has left. What they return is an [Agent], a [jsonrpc.Stream]. [Run] and
// [Main] are the other side: the process.
//
// # Numbers
//
// Every event of the agent has a number, beginning with 1: each line that it writes, and its end.
// The gateway acknowledges an event when it has committed it, see [Agent.Ack]. The holder keeps
// what is not acknowledged, and sends it again to the gateway that attaches next, which says what
// the last event is that it has. So no event is lost and none is delivered twice.
//
// The frames of the gateway have numbers of their own. The holder accepts each of them once and in
// order. An accepted frame is written to the agent whatever becomes of the gateway. To a gateway
// that attaches the holder says how many frames it has accepted, see [Agent.Sent]; the gateway sends
// those that follow, and no other.
//
// # Bounds
//
//   - Unacknowledged events take at most Config.Ring bytes, plus one line of at most Config.MaxFrame
//     bytes. Each event counts for 64 bytes more than its text. At the bound the holder stops
//     reading, so the agent waits in its next write and nothing is lost.
//   - A line longer than Config.MaxFrame is skipped. In its place there is an event that has its
//     length and its first 64 kB; ReadFrame returns it as a [*jsonrpc.FrameTooLargeError].
//   - While events that were sent and are not acknowledged take 1 MiB, no other is sent: together they
//     take less than that and one event. How large the next one is makes no difference.
//   - Frames that the agent has not read take at most 1 MiB, or one frame. At the bound WriteFrame
//     waits.
//   - Of standard error the last 64 KiB are kept.
//   - At most 8 connections may be waiting to show their token, each for at most 5 s.
//
// # The lease
//
// A holder lives as long as its lease. Everything that the attached gateway sends renews it for
// Config.Lease; [Agent] does so by itself while it is attached, also when there is nothing to say.
// [Agent.Renew] renews it for longer. Attaching begins a new lease. When the lease ends, the holder
// ends the agent with everything that it has started, in three stages: its input ends, it is asked
// to terminate, it is killed. Then the holder removes its socket and exits. It also exits when the
// end of the agent was acknowledged.
//
// If the holder itself is killed, a watchdog kills the agent and its process group on every Unix
// system; on Linux the kernel kills the agent, too, and the watchdog looks for a second for daemons
// that have left the group. See package internal/process. Even without a
// watchdog, when there is no shell, the agent's standard input ends. Its socket stays until [List]
// finds that nobody listens there.
//
// # The wire
//
// Both sides send packets: a byte that says what it is, the length of the rest as 4 bytes, and the
// rest. Numbers are big endian. Most packets begin with a number of 8 bytes.
//
//	gateway  H  JSON {version, token, have}       first packet; have is the last event it has
//	         F  number, frame                     a frame for the agent
//	         A  number                            all events up to this one are committed
//	         R  milliseconds                      renews the lease; 0 for its usual length
//	         E                                    asks for the standard error
//	         S  0 or 1                            end the agent; 1 without waiting
//	holder   W  JSON {version, accepted, written, …}  the answer to H
//	         X  JSON {code, text}                 the other answer to H; the connection ends
//	         F  number, line                      an event: a line of the agent
//	         L  number, length, beginning         an event: a line that is too long
//	         Q  number, JSON {code, signal, …}    an event: the end of the agent, the last one
//	         D  number                            frames up to this one were written to the agent
//	         C  text                              the agent's input is closed, and why
//	         E  text                              the last of its standard error
//	         T                                    another gateway has attached; the connection ends
//	         G  JSON {code, signal, …}            the agent is gone, and so will be the holder
//
// The token is compared in constant time. A connection that sends anything but a valid H, or later
// breaks these rules, is closed; the agent and the lease do not notice.
//
// The version is 1. A gateway may find holders of the version before it, so it must be able to
// speak with them when it is upgraded.
//
// # Systems
//
// Where there are no sessions of processes, such as on Windows, every function fails with an error
// that wraps [errors.ErrUnsupported].
package holder
