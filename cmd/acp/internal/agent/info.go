package agent

import (
	"fmt"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/agent/tool"
	"github.com/goacp/acp/cmd/acp/internal/model"
)

var modes = []string{modeAsk, modeAuto, modeFull, modeReadOnly}

// runHelp carries out /help.
func runHelp(k *task) error {
	var b strings.Builder
	b.WriteString("I am the agent that is built into this program. ")
	if m := k.s.current(); m != nil {
		fmt.Fprintf(&b, "The language model %s answers you and works for you. These commands I carry out without it:\n\n", prose.Inline(nameOf(m.Info())))
	} else {
		b.WriteString("I have **no language model**: I do not understand sentences, I carry out commands.\n\n")
	}
	for _, c := range commands() {
		fmt.Fprintf(&b, "- `%s` — %s\n", strings.TrimSpace("/"+c.name+" "+c.hint), c.about)
	}
	b.WriteString("\nWords with spaces go in quotes. To change a text of several lines:\n\n" +
		"```\n/edit PATH\n<<<<<<<\nwhat is there\n=======\nwhat shall be there\n>>>>>>>\n```\n\n" +
		"I ask before I change a file or run a command; `/mode` says otherwise, and choosing a mode forgets what you allowed or rejected for the whole session. " +
		"Commands are run by a shell as they are typed, with your rights: nothing confines them.")
	k.say(b.String())
	return nil
}

// runMode carries out /mode. A mode that is chosen forgets the answers for the rest of the session,
// as the option does.
func runMode(k *task) error {
	args, err := words(k.rest, 1)
	if err != nil {
		return misusef("%v", err)
	}
	mode, _ := k.s.currentMode()
	if len(args) == 0 {
		k.say(fmt.Sprintf("The mode is **%s**. The modes are:\n\n"+
			"- `ask`: I ask before I change a file or run a command.\n"+
			"- `auto`: I change files of the session without asking, and ask before I run a command.\n"+
			"- `full`: I do everything without asking; rules still hold.\n"+
			"- `read-only`: I change no file and run no command.", mode))
		return nil
	}
	mode = modeNamed(args[0])
	if mode == "" {
		return misusef("there is no mode %q", prose.OneLine(args[0], 40))
	}
	value := &acp.SessionConfigOptionValueID{Value: acp.SessionConfigValueID(mode)}
	if err := k.turn.Session().ChangeOption(optionMode, value); err != nil {
		return err
	}
	if _, err := k.s.optionChanged(optionMode, value); err != nil {
		return err
	}
	k.s.forgetAnswers()
	k.say(fmt.Sprintf("The mode is **%s** now.", mode))
	return nil
}

// forgetAnswers forgets what was allowed or rejected for the whole session.
func (s *session) forgetAnswers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = map[tool.About]bool{}
}

// runSessions carries out /sessions.
func runSessions(k *task) error {
	args, err := words(k.rest, 1)
	if err != nil {
		return misusef("%v", err)
	}
	q := &acp.SessionQuery{Cwd: k.turn.Session().Cwd()}
	where := " of this directory"
	if len(args) == 1 {
		if args[0] != "all" {
			return misusef("it is not clear what %q means here", prose.OneLine(args[0], 40))
		}
		q.Cwd, where = "", ""
	}
	page, err := k.s.agent.store.list(q, pageSize)
	if err != nil {
		return err
	}
	if len(page.Sessions) == 0 {
		k.say("There are no saved sessions" + where + ".")
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Saved sessions%s, the latest first:\n\n", where)
	for _, i := range page.Sessions {
		title := i.Title
		if title == "" {
			title = "(no title)"
		}
		this := ""
		if i.SessionID == k.turn.Session().ID() {
			this = " (this one)"
		}
		fmt.Fprintf(&b, "- %s%s — `%s`, %s", prose.Inline(title), this, i.SessionID, i.UpdatedAt)
		if q.Cwd == "" {
			fmt.Fprintf(&b, ", %s", prose.Inline(i.Cwd))
		}
		b.WriteByte('\n')
	}
	if page.NextCursor != nil {
		fmt.Fprintf(&b, "\nThere are more than these %d.", len(page.Sessions))
	}
	k.say(b.String())
	return nil
}

// runTitle carries out /title.
func runTitle(k *task) error {
	title := prose.OneLine(k.rest, maxTitle)
	if title == "" {
		if title = k.s.currentTitle(); title == "" {
			k.say("The session has no title.")
		} else {
			k.say("The title is: " + prose.Inline(title))
		}
		return nil
	}
	if err := k.s.setTitle(title); err != nil {
		return err
	}
	_ = k.turn.SetTitle(title)
	k.say("The title is now: " + prose.Inline(title))
	return nil
}

// runUsage carries out /usage. Without a model only the size of the journal is known.
func runUsage(k *task) error {
	if strings.TrimSpace(k.rest) != "" {
		return misusef("nothing may follow")
	}
	k.s.mu.Lock()
	turns, j, talk, m := k.s.turns, k.s.j, k.s.talk, k.s.choice.model
	k.s.mu.Unlock()
	var b strings.Builder
	if m == nil {
		b.WriteString("No tokens and no cost: there is no language model, and so no context window that could fill up.\n\n")
	}
	fmt.Fprintf(&b, "- Prompts in this session: %d\n", turns)
	if m != nil {
		b.WriteString(talk.used(m.Info()))
	}
	switch {
	case j == nil:
		b.WriteString("- Nothing of it could be saved.\n")
	case k.s.agent.store.dir == "":
		fmt.Fprintf(&b, "- Kept in memory: %s of at most %s\n", prose.Size(j.bytes()), prose.Size(maxMemory))
	default:
		fmt.Fprintf(&b, "- Saved in %s: %s of at most %s\n", prose.Inline(k.s.agent.store.path(j.id)), prose.Size(j.bytes()), prose.Size(maxJournal))
	}
	k.say(b.String())
	return nil
}

// nameOf returns what a model is called in settings.
func nameOf(i model.Info) string { return i.Provider + "/" + i.ID }

// used says what the conversation with a model has used.
func (c *conversation) used(i model.Info) string {
	var b strings.Builder
	u := c.usage
	fmt.Fprintf(&b, "- Requests to %s: %d\n", prose.Inline(nameOf(i)), c.requests)
	if !u.Known {
		return b.String()
	}
	fmt.Fprintf(&b, "- Tokens read: %d, of which %d from the provider's cache\n", u.Read(), u.CacheRead)
	b.WriteString(c.cache.misses())
	fmt.Fprintf(&b, "- Tokens written: %d, of which %d for reasoning\n", u.Output, u.Reasoning)
	if i.Context > 0 {
		fmt.Fprintf(&b, "- Context window: %d of %d tokens\n", c.window, i.Context)
	}
	if i.Price.Currency != "" {
		fmt.Fprintf(&b, "- Cost: %.4f %s\n", c.cost, i.Price.Currency)
	}
	return b.String()
}
