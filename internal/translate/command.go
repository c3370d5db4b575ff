package translate

import (
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

// CommandsFromV1 converts a list of slash commands.
func CommandsFromV1(list []acpv1.AvailableCommand) []acpv2.AvailableCommand {
	return each(list, func(c acpv1.AvailableCommand) acpv2.AvailableCommand {
		v := &acpv2.Command{Name: c.Name, Description: c.Description, Meta: c.Meta, Unknown: without(c.Unknown, "type")}
		if c.Input != nil {
			v.Input = &acpv2.TextCommandInput{Hint: c.Input.Hint, Meta: c.Input.Meta, Unknown: without(c.Input.Unknown, "type")}
		}
		return v
	})
}

// CommandsToV1 converts a list of commands. A skill becomes a command. One of a kind that this
// library does not know keeps its name and description, an input of such a kind
// is left out: version 1 knows one kind of either.
func CommandsToV1(list []acpv2.AvailableCommand) []acpv1.AvailableCommand {
	return some(list, func(c acpv2.AvailableCommand) (acpv1.AvailableCommand, bool) {
		switch c := c.(type) {
		case *acpv2.Command:
			v := acpv1.AvailableCommand{Name: c.Name, Description: c.Description, Meta: c.Meta, Unknown: c.Unknown}
			if in, ok := c.Input.(*acpv2.TextCommandInput); ok {
				v.Input = &acpv1.UnstructuredCommandInput{Hint: in.Hint, Meta: in.Meta, Unknown: in.Unknown}
			}
			return v, true
		case *acpv2.Skill:
			return acpv1.AvailableCommand{Name: c.Name, Description: c.Description, Meta: c.Meta, Unknown: without(c.Unknown, "input")}, true
		case *acpv2.UnknownAvailableCommand:
			return acpv1.AvailableCommand{Name: c.Name, Description: c.Description}, true
		}
		return acpv1.AvailableCommand{}, false
	})
}
