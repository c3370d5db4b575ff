package backend

import (
	"errors"
	"strings"
	"testing"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/jsonrpc"
)

// TestUnknownTerminal: an error about a terminal names it as the agent does.
func TestUnknownTerminal(t *testing.T) {
	h := &terminals{acphost.Local(t.TempDir()), "tag-"}
	for _, id := range []acpv1.TerminalID{"other", "tag-none", ""} {
		_, output := h.TerminalOutput(t.Context(), &acpv1.TerminalOutputRequest{TerminalID: id})
		_, wait := h.WaitForTerminalExit(t.Context(), &acpv1.WaitForTerminalExitRequest{TerminalID: id})
		_, kill := h.KillTerminal(t.Context(), &acpv1.KillTerminalRequest{TerminalID: id})
		_, release := h.ReleaseTerminal(t.Context(), &acpv1.ReleaseTerminalRequest{TerminalID: id})
		for _, err := range []error{output, wait, kill, release} {
			said := (*jsonrpc.Error)(nil)
			if !errors.As(err, &said) || !errors.Is(err, jsonrpc.ErrResourceNotFound) || !strings.Contains(string(said.Data), `"terminalId":"`+string(id)+`"`) {
				t.Errorf("%q: %v %s", id, err, said.Data)
			}
		}
	}
}
