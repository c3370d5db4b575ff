// Package translate converts the nouns of the two protocol versions into each
// other, and the updates of sessions of either version into those of the other.
// The programming interface of this module speaks the vocabulary of version 2;
// peers of version 1 are served through this package.
//
// The functions convert values: they do no input or output, do not change their
// arguments, and may be called from several goroutines at once. Results share
// memory with arguments, so neither may be changed afterwards. Names end in
// FromV1 for the way from version 1 to version 2 and in ToV1 for the way back.
// [FromV1] and [ToV1] convert the updates of one session, which takes memory of
// what came before.
//
// What both versions can express is not lost: metadata, unknown members, unknown
// variants, which stay raw JSON, and unknown words of open enums are carried
// across. An unknown member is dropped where the other version has a member of
// that name, since it was not meant to be that one. Values from the wire give
// values that can be encoded, with the exceptions stated for functions that
// return an error or false.
//
// # What version 1 cannot say
//
// Content and tools:
//   - the icons of a resource link, and a size of more than 63 bits;
//   - that a tool call can be cancelled, a status paused or cancelled, which
//     become in_progress and failed, and statuses neither version knows, which
//     become in_progress (S85);
//   - that the name of a tool is removed;
//   - an edit as a patch: it becomes the old and new text of each file that
//     changes, as far as the patch holds them unless [ToV1.Texts] told more. A move
//     is an edit of the file in its new place, a copy a new file, a deletion an
//     edit that leaves nothing; a change of an unknown kind is left out;
//   - a terminal of the agent's: its output becomes text, in a block of console
//     output with the last 64 KiB, in the tool calls that show it. Its directory,
//     size and capabilities are lost, and so is all of it if no tool call shows it.
//
// Messages: that a message is replaced, unless by one that begins with what was
// sent before, of which the rest is sent; that it is removed; metadata of a
// message without new content.
//
// Plans: an entry that is cancelled, which is left out; for clients that do not
// advertise plans with ids, more than one plan at a time, where the last one
// sent is shown, a plan in Markdown or in a file, which becomes a plan of one
// entry, and a plan of an unknown kind.
//
// Settings: for clients that do not advertise boolean options, these; a value of
// an unknown kind, see [OptionValueToV1].
//
// Permissions: a description, a title beside that of the tool call, an option of
// an unknown kind, a subject other than a tool call; see [ToV1.Permission].
//
// Sessions: state_update, which has no form at all: a turn of version 1 is a
// request and its answer; work in the background, also of subagents; the stop
// reason error, see [StopReasonToV1]; what a session is doing in an answer to
// session/status; that a cost is taken back; that metadata is cleared or merged
// by key; an empty cursor.
//
// Capabilities, sign-in and commands: the metadata of the markers of version 2
// where version 1 has booleans; a variable of a terminal sign-in that is set twice,
// and its metadata; a command or an input of an unknown kind, of which name and
// description stay.
//
// Notices, compactions, subagents and messages between sessions are left out
// for clients that do not advertise them.
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
