// Package transcript folds the updates of a session, in either version of the
// protocol, into the state of one conversation: its messages, tool calls, plans,
// terminals and so on in the order in which they first appeared, and the state of the
// session as a whole.
//
//	c := transcript.New(transcript.Config{})
//	for u := range updates {
//		change := c.Apply(u)
//		show(c.Snapshot(), change)
//	}
//
// Taking a [Snapshot] takes the same short time however long the conversation is, so
// one can be taken after every chunk. A Snapshot never changes and may be read by any
// goroutine. A [Change] says what is new in it.
//
// # What updates do
//
// An id that appears for the first time creates an entry, whatever the update: a piece
// of a message, an update of a tool call or a permission request for one, a chunk of
// terminal output.
//
//	what                                      is
//	a field that is absent                    left as it was
//	a field that is null                      cleared
//	a field with a value                      replaced; capabilities as a whole
//	metadata                                  merged by its top-level keys; that of chunks is dropped
//	an unknown member of an update            dropped; within content and the like it is kept
//	an unknown status of a tool call          in progress
//	an unknown state of the session           busy
//	an update of an unknown kind              an entry, an [Unknown]
//
// Nothing is an error. Whatever a peer sends is kept within the bounds of a [Config]. At
// a bound the oldest content is dropped first, and every loss is counted in the entry
// and in [Snapshot.Loss].
//
// A session that is loaded again sends its history again, replayed. A conversation that
// has it already must be emptied first: see [Conversation.Reset].
//
// Permission requests and the ends of turns are not updates. [Conversation.Asked],
// [Conversation.Answered] and [Conversation.TurnEnded] add them to the entries.
//
// # The JSON form
//
// MarshalJSON and UnmarshalJSON of [Snapshot] write and read an object:
//
//	{
//	  "version": 1,
//	  "entries": [
//	    {"kind": "message", "update": {"sessionUpdate": "agent_message", "messageId": "m1", "content": [...]}},
//	    {"kind": "terminal", "update": {"sessionUpdate": "terminal_update", ...}, "text": "ok\n", "skipped": 4096},
//	    {"kind": "permission", "title": "Write?", "options": [...], "outcome": {"outcome": "selected", "optionId": "yes"}}
//	  ],
//	  "session": {
//	    "state": {"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"},
//	    "info": {"sessionUpdate": "session_info_update", "title": "Tests"}
//	  },
//	  "dropped": {}
//	}
//
// The kind of an entry is an [EntryKind]. Its update is the update of protocol version 2
// that creates the entry in an empty conversation: see [Entry], method Update. Programs
// that know the protocol therefore know the form, and sending the updates in order
// replays the conversation. An entry may have more members:
//
//   - dropped: the number of bytes that were dropped at the bounds.
//   - removed: true for a plan that the agent has removed.
//   - text: the output of a terminal without control sequences, which the update has
//     in base64; skipped: the number of bytes of output before it; head: the first of
//     these, in base64, if they are kept.
//   - title, description, subject, options, _meta and outcome, for a permission, instead
//     of an update. They are those of the protocol's session/request_permission. The
//     subject has only the id of a tool call. Without outcome there is no answer yet.
//   - stopReason, by, said, error and others, for the end of a turn, instead of an
//     update. They are the fields of [TurnEnd].
//
// The session has the updates that set its fields, as far as they are known: state,
// usage, configOptions, commands and info; and dropped. The last member, dropped, counts
// entries, bytes and updates as [Loss] does. Counts that are 0 are omitted.
//
// Later versions of this package may add members and kinds of entries; readers must
// skip what they do not know. Any other change would be version 2.
package transcript
