// Package gateway hosts the sessions of agents for many clients. Northbound it is an agent of the Agent
// Client Protocol, southbound a client, and between them is the log of package engine.
//
//	client ── acp.Agent ─┐                        ┌─ acp.Client ── agent
//	client ── acp.Agent ─┼─ session ── engine log ┤
//	client ── acp.Agent ─┘                        └─ (one for each session)
//
// What holds:
//
//   - What an agent says is committed to the log before any client sees it. Each client has a follower
//     of its own, so one that stalls holds up nobody else.
//   - Prompts of all clients of a session wait in one queue, first in first out. Each client gets the
//     answer to its own, after everything the agent said before.
//   - A question of the agent is put to every client. The first answer is committed before the agent
//     sees it; the questions to the others are withdrawn.
//   - A client that leaves ends nothing: its turn continues.
//   - An agent that has ended is started again when it is needed.
package gateway
