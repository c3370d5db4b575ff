package plain

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/store"
)

// ownPrefix reaches a command of this program even if the agent has a command of the same name.
const ownPrefix = "/acp:"

const ownHelp = `Type a prompt and press Enter. To continue it on the next line, end the line
with a backslash. Ctrl-C cancels the turn, Ctrl-D leaves.
Commands of this program (if the agent has a command of the same name, write
/acp: in front, as in /acp:help):
  /help             show this text and the agent's commands
  /cancel           cancel the turn
  /options          list the mode, the model and other options
  /options ID VALUE set an option
  /sessions         list earlier sessions; acp chat --session ID resumes one
  /quit             leave`

// runOwnCommand runs a command of this program. isOwn is false if text is not one.
func (c *conversation) runOwnCommand(ctx context.Context, text string, running bool) (quit, isOwn bool) {
	if !strings.HasPrefix(text, "/") || strings.Contains(text, "\n") {
		return false, false
	}
	name, arg, _ := strings.Cut(strings.TrimSpace(text), " ")
	short, explicit := strings.CutPrefix(name, ownPrefix)
	if !explicit {
		short = strings.TrimPrefix(name, "/")
		for _, cmd := range c.commands() {
			if cmd.Name == short {
				return false, false
			}
		}
	}
	switch short {
	case "help":
		c.help()
	case "quit", "exit":
		return true, true
	case "cancel":
		c.queue = nil
		if !running {
			c.show.line("No turn is running.")
		} else if err := c.session.Cancel(ctx); err != nil {
			c.show.line("Cancelling failed: " + safetext.Line(err.Error(), 500))
		}
	case "options":
		c.options(ctx, strings.Fields(arg))
	case "sessions":
		c.sessions(ctx)
	default:
		if explicit {
			c.show.line("There is no command " + safetext.Line(name, 100) + "; " + ownPrefix + "help lists all commands.")
		}
		return false, explicit
	}
	return false, true
}

// commands returns the agent's commands of the known kinds.
func (c *conversation) commands() (list []*acpv2.Command) {
	for _, cmd := range c.session.Client().Commands() {
		switch cmd := cmd.(type) {
		case *acpv2.Command:
			list = append(list, cmd)
		case *acpv2.Skill:
			list = append(list, &acpv2.Command{Name: cmd.Name, Description: "skill: " + cmd.Description})
		}
	}
	return list
}

// help lists the commands of this program, then those of the agent.
func (c *conversation) help() {
	c.show.line(ownHelp)
	list := c.commands()
	if len(list) == 0 {
		return
	}
	c.show.line("Commands of the agent:")
	for _, cmd := range list {
		c.show.line(fmt.Sprintf("  /%s  %s", safetext.Line(cmd.Name, 60), safetext.Line(cmd.Description, maxTitle)))
	}
}

// options lists the options of the session, or sets one.
func (c *conversation) options(ctx context.Context, args []string) {
	list := c.session.Client().Options()
	if len(list) == 0 {
		c.show.line("The agent has no options.")
		return
	}
	if len(args) == 1 {
		c.show.line("To set an option, type /options ID VALUE; to list all, type /options.")
		return
	}
	for _, o := range list {
		if len(args) > 1 && string(o.ConfigID) != args[0] {
			continue
		}
		if len(args) == 0 {
			c.show.line("  " + optionLine(o))
			continue
		}
		var v acpv2.SessionConfigOptionValue
		value := strings.Join(args[1:], " ")
		switch o.Kind.(type) {
		case *acpv2.SessionConfigBoolean:
			v = &acpv2.SessionConfigOptionValueBoolean{Value: value == "true" || value == "on" || value == "yes"}
		default:
			v = &acpv2.SessionConfigOptionValueID{Value: acpv2.SessionConfigValueID(value)}
		}
		if err := c.session.SetOption(ctx, o.ConfigID, v); err != nil {
			c.show.line("The option was not set: " + safetext.Line(err.Error(), 500))
			return
		}
		c.show.line("Set: " + safetext.Line(args[0]+" = "+value, maxTitle))
		return
	}
	if len(args) > 1 {
		c.show.line("There is no option " + safetext.Line(args[0], 100) + ".")
	}
}

func optionLine(o acpv2.SessionConfigOption) string {
	line := fmt.Sprintf("%s (%s): ", safetext.Line(string(o.ConfigID), 60), safetext.Line(o.Name, 60))
	switch kind := o.Kind.(type) {
	case *acpv2.SessionConfigBoolean:
		line += fmt.Sprintf("%v; true or false", kind.CurrentValue)
	case *acpv2.SessionConfigSelect:
		line += safetext.Line(string(kind.CurrentValue), 60)
		if list, ok := kind.Options.(acpv2.SessionConfigSelectOptionList); ok {
			var names []string
			for _, v := range list {
				names = append(names, string(v.Value))
			}
			line += "; one of " + safetext.Line(strings.Join(names, ", "), 500)
		}
	}
	return line
}

// sessions lists the latest sessions in this directory.
func (c *conversation) sessions(ctx context.Context) {
	kept, err := c.app.Store(ctx)
	if err != nil || kept == nil {
		c.show.line("Conversations are not stored.")
		return
	}
	list, err := kept.List(ctx, store.Query{Cwd: c.app.Cwd, Limit: 20})
	if err != nil {
		c.show.line("Listing failed: " + safetext.Line(err.Error(), 500))
		return
	}
	names, err := kept.Names(ctx)
	if err != nil {
		names = new(store.Names)
	}
	if len(list) == 0 {
		c.show.line("There are no earlier sessions in this directory.")
	}
	for _, s := range list {
		title := safetext.Line(s.Title, maxTitle)
		if title == "" {
			title = "no title"
		}
		c.show.line(fmt.Sprintf("  %s, %s, %s: %s", safetext.Line(names.Of(s.Session), 60), safetext.Line(s.Agent, 60), s.Updated.Local().Format(time.DateTime), title))
	}
}
