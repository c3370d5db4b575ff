package acphost

import "github.com/goacp/acp"

// ToolCallCommand returns the command that a tool call shows and whether it is
// certain, as [Request.Shows] does for a request about that call.
func ToolCallCommand(call *acp.ToolCallUpdate) (command string, certain bool) {
	var r Request
	r.toolCall(call)
	return r.Shows()
}

// Shows returns the command that the request has shown and whether it is certain,
// as [Request.Shows] does, cut as the texts of a record are.
func (r *Record) Shows() (command string, certain bool) {
	switch {
	case r.CommandUnknown:
		return r.Shown, false
	default:
		return r.Command, true
	}
}
