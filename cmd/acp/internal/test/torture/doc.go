// Package torture kills the parts of a gateway with SIGKILL while an agent streams and asks: a client, the
// server, the holder of the agent, the agent. Then it compares what every client was sent with the log.
//
// It makes a few kills of each kind. TORTURE_KILLS sets how many, and TORTURE_REPORT the file to which a
// summary is appended, as JSON, a line for each kind.
//
// One test does so with an agent of version 1 that gives nothing an id, and compares what it has said, too.
//
// Another test has the network fail between the clients and the server. NETWORK_PROMPTS sets how many prompts each
// client sends, and NETWORK_REPORT is a file for summaries, too.
package torture
