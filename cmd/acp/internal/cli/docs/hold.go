package docs

// hold says how far permission rules reach.
const hold = `## What rules can hold

Rules decide what an agent asks for, and what it has done by acp. An agent is a
program of yours, and acp does not confine it.

| what the agent does | what rules do |
|---|---|
| asks for permission | allow, deny or ask |
| reads a file by acp (version 1) | deny or ask; reading what no rule is about needs no permission in the directories of the session |
| writes a file or runs a command by acp (version 1) | allow, deny or ask; what was permitted just before is not asked again |
| uses files, commands and other tools by itself without asking | nothing: acp compares what it tells with the rules that deny |
| the built-in agent reads, lists, searches, edits, runs or uses MCP servers | deny or ask, also as ` + "`acp agent`" + ` in an editor, by the rules of the settings and its flags |

A file has two names, the one that is used and the one that links lead to. A rule that
denies or asks needs to match one of them, a rule that allows both.

If there are rules that deny or ask and they cannot hold an agent, acp says so once in
a conversation: at the beginning if the agent speaks version 2 of the protocol, in which
agents use their own files and commands; otherwise when the agent does something without
asking. ` + "`acp agents doctor`" + ` says it as well.

If an agent reports that it did, or is doing, what a rule denies, acp reports it at once
and keeps it in the conversation; ` + "`acp exec`" + ` ends with status 12. Only what is
certain counts: a tool call that is completed or has output, that was not permitted,
and that the agent describes well enough. A denied call that is reported as completed
does not count, because agents also report that of calls they did not make.
`
