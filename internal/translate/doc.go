// Package translate converts values of the two protocol versions into each other, and
// the updates of sessions of either version into those of the other. The API of this
// module uses the vocabulary of version 2; peers of version 1 are served through this
// package.
//
// The functions convert values: they do no input or output, do not modify their
// arguments, and may be called from any goroutine. Results share memory with arguments,
// so neither may be modified afterwards. Names end in FromV1 for the direction from
// version 1 to version 2, and in ToV1 for the other. [FromV1] and [ToV1] convert the
// updates of one session, for which they remember earlier ones.
//
// Nothing that both versions can express is lost: metadata, unknown members, unknown
// variants, which remain raw JSON, and unknown values of open enums are preserved. An
// unknown member is dropped if the other version has a member of that name, because it
// was not meant to be that one. Values from the wire become values that can be encoded;
// functions that return an error or false state the exceptions.
//
// # What version 1 cannot say
//
// Content and tools:
//   - the icons of a resource link, and a size of more than 63 bits;
//   - that a tool call can be cancelled, a status paused or cancelled, which
//     become in_progress and failed, and statuses neither version knows, which
//     become in_progress (S85);
//   - that the name of a tool is removed;
//   - an edit as a patch: it becomes the old and the new text of each file that
//     changes, as far as the patch contains them or [ToV1.Texts] has set them. A move
//     becomes an edit of the file in its new place, a copy a new file, a deletion an
//     edit that leaves nothing; a change of an unknown kind is left out;
//   - a terminal of the agent: its output becomes text, in a block of console
//     output with the last 64 KiB, in the tool calls that show it. A client that
//     declares that it shows terminals which tool calls report in their metadata gets
//     it there, if the announcement of the tool call shows it. Its directory,
//     size and capabilities are lost, and so is all of it if no tool call shows it.
//
// Messages: that a message is replaced, unless the new one begins with the text that was
// sent before: then the rest is sent; that a message is removed; metadata of a message
// without new content.
//
// Plans: an entry that is cancelled, which is left out; for clients that do not
// advertise plans with ids, more than one plan at a time, where the last one
// sent is shown, a plan in Markdown or in a file, which becomes a plan of one
// entry, and a plan of an unknown kind.
//
// Settings: for clients that do not advertise boolean options, these; a value of
// an unknown kind, see [OptionValueToV1].
//
// Permissions: an option of an unknown kind, a subject other than a tool call or a
// command. A command, a title beside that of the tool call and a description
// become text; see [ToV1.Permission].
//
// Sessions: state_update, which has no form at all: a turn of version 1 is a
// request and its answer; work in the background, including that of subagents; the stop
// reason error, see [StopReasonToV1]; what a session is doing, in an answer to
// session/status; that a cost is withdrawn; that metadata is cleared or merged by key; an
// empty cursor.
//
// Cursors: one with an anchor of an unknown kind, which is left out. Suggested prompts: one with
// content of an unknown kind or a skill, which is left out. The end of a replay, which is the
// answer to session/load. That a tool call is about another session.
//
// Capabilities, sign-in and commands: a skill's path, and that it is a skill; the metadata of the markers of version 2
// where version 1 has booleans; a variable of a terminal sign-in that is set twice,
// and its metadata; a command or an input of an unknown kind, except its name and
// description.
//
// Notices, compactions, subagents, messages between sessions, suggested prompts and cursors are
// left out for clients that do not advertise them.
//
// # What version 2 cannot say
//
//   - a priority outside 0 to 1, a negative size, line 0: left out;
//   - a choice without values: its current value becomes the only one;
//   - a form with a list of no choices: see [ElicitationFromV1];
//   - that an agent lacks session/list, resume, close or load, that it takes MCP
//     servers over sse, that it answers logout; and what a client says about files,
//     terminals and the extras of sessions: see [AgentCapabilitiesFromV1] and
//     [ClientCapabilitiesFromV1];
//   - a way to sign in of an unknown kind without id or name, and a plan of an
//     unknown kind without id: left out;
//   - the modes of a session and the legacy models: they are options, see
//     [SessionOptionsFromV1].
//
// An update of an unknown kind whose name means something in the other version
// is dropped: see [FromV1.Append].
package translate
