package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/guide"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/agent/tool"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
)

// A command is what the user can type. hint says what follows the name. run
// returns what is wrong with that, or went wrong. role is the least that somebody has to be who uses it in the session of
// a gateway: see [ownmeta.Rank].
type command struct {
	name, hint, about string
	run               func(*task) error
	role              string
}

// What somebody has to be who uses a command. Whoever may send prompts may use those that only say something, and those
// that ask as any tool does. Commands that change what is asked, or with which key, are as options: for those who may
// approve. The names of other sessions are their owner's.
const (
	forPrompters = "prompter"
	forApprovers = "approver"
	forOwners    = "owner"
)

// commands are in the order in which they are shown.
func commands() []command {
	return []command{
		{"help", "", "What this agent can do", runHelp, forPrompters},
		{"read", "PATH[:FROM-TO]", "Show a file, or some lines of it", runRead, forPrompters},
		{"search", "PATTERN [GLOB]", "Search the files of the session with a regular expression", runSearch, forPrompters},
		{"edit", "PATH OLD => NEW", "Replace a text in a file, where it is once (/edit! replaces all)", runEdit, forPrompters},
		{"write", "PATH TEXT", "Write a file", runWrite, forPrompters},
		{"run", "COMMAND", "Run a command of the shell in the session's directory", runRun, forPrompters},
		{"plan", "STEP; STEP; … | next | done N | clear", "Make a plan, or continue it", runPlan, forPrompters},
		{"mode", "[ask | auto | full | read-only]", "What may be done without asking", runMode, forApprovers},
		{"sessions", "[all]", "List the saved sessions of this directory, or all", runSessions, forOwners},
		{"title", "[TEXT]", "Name the session", runTitle, forPrompters},
		{"usage", "", "What the session has used", runUsage, forPrompters},
		{"compact", "", "Replace the conversation with the model by a summary", runCompact, forPrompters},
		{"key", "[PROVIDER]", "Type the key of a provider of language models into a form", runKey, forApprovers},
		{"mcp", "[SERVER [TOOL [JSON]]]", "List the tools of MCP servers, or call one", runMCP, forPrompters},
		{"demo", "[flood N | big N | slow | form]", "Show everything a screen can show; a demonstration, nothing is real", runDemo, forPrompters},
	}
}

// announced returns the commands as clients see them.
func announced(prompts []guide.Prompt) []acp.SlashCommand {
	var all []acp.SlashCommand
	for _, c := range commands() {
		a := acp.SlashCommand{Name: c.name, Description: c.about}
		if c.hint != "" {
			a.Input = &acp.TextCommandInput{Hint: c.hint}
		}
		if c.role != forPrompters {
			a.Meta = ownmeta.Of(ownmeta.Ranked{Role: c.role})
		}
		all = append(all, a)
	}
	for _, p := range prompts {
		a := acp.SlashCommand{Name: p.Name, Description: p.About}
		if p.Hint != "" {
			a.Input = &acp.TextCommandInput{Hint: p.Hint}
		}
		all = append(all, a)
	}
	return all
}

// A task is a command that is being carried out.
type task struct {
	*scribe
	ctx  context.Context
	turn *acp.Turn
	name string // as it was typed
	rest string // what follows it, as it was typed
}

// misusef returns an error about what was typed, as tools do about their input.
func misusef(format string, args ...any) error { return tool.Misusef(format, args...) }

// answer carries out a prompt.
func (b *builtin) answer(ctx context.Context, t *acp.Turn, w *scribe, ask wish) (acp.StopReason, error) {
	name, rest := ask.name, ask.rest
	talks := (!ask.ok || !isCommand(name)) && w.s.find(ctx) != nil
	if !ask.ok && !talks { // one message, which programs know
		text := ask.leftOut() + plainAnswer(typed(t), b.models != nil)
		return acp.StopEndTurn, w.out.Show(&acp.TextContent{Text: text, Meta: ownmeta.Of(ownmeta.Unanswered{Unanswered: true})})
	}
	w.say(ask.leftOut())
	if talks {
		return b.converse(ctx, t, w, ask)
	}
	all := commands()
	i := commandOf(all, name)
	if i < 0 {
		w.say(fmt.Sprintf("There is no command /%s. ", prose.OneLine(name, 40)) + suggestion(name, all))
		return acp.StopEndTurn, nil
	}
	if !w.reaches(all[i].role) {
		w.say(fmt.Sprintf("Not done: you are a %s in this session, and /%s is for an %s.", w.rank, all[i].name, all[i].role))
		return acp.StopEndTurn, nil
	}
	err := all[i].run(&task{scribe: w, ctx: ctx, turn: t, name: name, rest: rest})
	switch err := err.(type) {
	case nil:
	case *tool.Misuse:
		usage := strings.TrimSpace("/" + all[i].name + " " + all[i].hint)
		w.say(fmt.Sprintf("%s.\n\nUsage: `%s`", prose.Sentence(err.Why), usage))
		if all[i].name == "edit" {
			w.say("\n\n" + editForm)
		}
	default:
		if ctx.Err() == nil {
			w.say(prose.Sentence(prose.Error(err)) + ".")
		}
	}
	return acp.StopEndTurn, nil
}

// commandOf returns which command has a name; -1 if none has.
func commandOf(all []command, name string) int {
	if name == "edit!" {
		name = "edit"
	}
	return slices.IndexFunc(all, func(c command) bool { return c.name == name })
}

func isCommand(name string) bool { return commandOf(commands(), name) >= 0 }

// suggestion names the command that was meant, perhaps.
func suggestion(name string, all []command) string {
	for _, c := range all {
		if strings.HasPrefix(c.name, strings.ToLower(name)) || strings.HasPrefix(strings.ToLower(name), c.name) {
			return "Did you mean /" + c.name + "? /help lists them all."
		}
	}
	return "/help lists the commands."
}
