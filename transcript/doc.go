// Package transcript folds the updates of a session, of either version of the
// protocol, into the state of one conversation: messages, tool calls, plans,
// terminals and the rest in the order of first sight, and what is known of the
// session as a whole.
//
//	c := transcript.New(transcript.Config{})
//	for u := range updates {
//		change := c.Apply(u)
//		show(c.Snapshot(), change)
//	}
//
// A [Snapshot] costs the same little time however long the conversation is, never
// changes and may be read by any goroutine, so one can be taken after every chunk.
// A [Change] says what is new in it.
//
// # What updates do
//
// An id seen for the first time creates an entry, whatever kind of update it comes in:
// a piece of a message, an update of a tool call or a permission request for one, a
// chunk of terminal output (S90). Fields of updates have three states: absent leaves
// what is there, null clears it and a value replaces it; capabilities are replaced as
// a whole, and metadata of such updates is merged by its top-level keys (S78).
// Metadata of chunks is not kept, nor are members of updates that the schema does
// not know; those within content and the like are. A status of a tool call that is
// unknown means in progress, and a state of the session that is unknown means busy
// (S85). Updates of unknown kinds are entries themselves.
//
// Nothing is an error. What a peer sends, however much and however odd, is kept
// within the bounds of a [Config]: at a bound the oldest content goes first, and
// every loss is counted, in the entry and in [Snapshot.Loss].
//
// Permission requests and the ends of turns are not updates. [Conversation.Asked],
// [Conversation.Answered] and [Conversation.TurnEnded] note them among the entries.
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
// The kind of an entry is an [EntryKind]. Its update is the update of version 2 of the
// protocol that makes the entry out of nothing ([Entry], method Update), so programs
// that know the protocol know the form, and sending the updates in their order
// replays the conversation. An entry may also have
//
//   - dropped: how many bytes the bounds have taken from it;
//   - removed: true for a plan that the agent has taken away;
//   - text: the output of a terminal without control sequences, which the update has
//     in base64; skipped: how many bytes of output came before; head: the first of
//     those, in base64, if they are kept;
//   - title, description, subject, options, _meta, outcome: of a permission, in place
//     of an update. They are those of the protocol's session/request_permission; of
//     a tool call the subject has only the id. Without outcome there is no answer;
//   - stopReason, by, said, error, others: of the end of a turn, in place of an
//     update. They are the fields of [TurnEnd].
//
// The session has the updates that make its fields, as far as they are known: state,
// usage, configOptions, commands and info; and dropped. The last member, dropped,
// counts entries, bytes and updates as [Loss] does. Counts that are 0 are left out.
//
// Later versions of this package may add members and kinds of entries; readers pass
// over what they do not know. Anything else would be version 2.
//
// Numbers such as (S78) refer to the statements in docs/behaviour.md of this module.
package transcript
