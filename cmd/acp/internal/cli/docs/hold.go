package docs

// hold describes the limits of permission rules: what acp can enforce, and what it can only detect.
// Users rely on these promises; packages acphost and backend keep them.
const hold = `## What rules can hold

Rules decide about what an agent asks permission for and about what acp does on its
behalf. The agent itself is a program that runs as you; acp does not confine it.

| what the agent does | what rules do |
|---|---|
| asks for permission | allow, deny or ask |
| reads a file through acp (version 1) | deny or ask; in the directories of the session, reading needs no permission unless a rule applies |
| writes a file or runs a command through acp (version 1) | allow, deny or ask; acp does not ask again about what was permitted just before |
| uses its own files, commands and tools without asking | nothing; acp compares what the agent reports with the deny rules |
| the built-in agent reads, lists, searches, edits, runs or uses MCP servers | deny or ask, by the rules of the settings and its flags; also as ` + "`acp agent`" + ` in an editor |

A file can have two names: the one that is used, and the one that its links resolve to.
A rule that denies or asks applies if it matches either of them. A rule that allows must
match both.

If an agent can bypass your rules that deny or ask, acp says so once per conversation:
at the start if the agent speaks version 2 of the protocol, in which agents use their
own files and commands; otherwise as soon as the agent does something without asking.
` + "`acp agents doctor`" + ` reports it as well.

If an agent reports that it has done, or is doing, something that a rule denies, acp
reports this at once and records it in the conversation; ` + "`acp exec`" + ` ends with
status 12. Only clear cases count: the tool call has completed or has produced output,
it was not permitted, and the agent describes it precisely enough. A call that was
denied and is reported as completed does not count, because agents also report calls as
completed that they did not make.
`
