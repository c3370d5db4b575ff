// Package acphost is what a client lends to an agent: files below given
// directories, terminals, and a policy that answers permission requests.
//
//	client := &acp.Client{
//		Files:             acphost.Dir(root),
//		Terminals:         func(*acp.ClientConn) acp.TerminalHost { return acphost.Local(root) },
//		RequestPermission: policy.RequestPermission,
//	}
//
// Nothing in this package confines an agent: it is a program of the user's,
// which can open files and run commands by itself. A [Policy] decides only what
// the agent asks about, by what the agent says about it, and nothing holds the
// agent to what it has said. Neither are files and terminals tied to what was
// permitted: an agent may read and write any file that [Dir] lends, and run
// anything in a terminal, without a request for permission. [Files.PermitRead],
// [Files.PermitWrite] and [Terminals.Permit] are called before that happens and
// can ask.
//
// Errors that are the agent's doing are [*jsonrpc.Error] values, made to be the
// answer. All others are failures on this side.
package acphost

import (
	"errors"
	"io/fs"

	"github.com/goacp/acp/jsonrpc"
)

// invalid says that a member of the params is wrong, and why.
func invalid(member, reason string) *jsonrpc.Error {
	return jsonrpc.ErrInvalidParams.WithData(map[string]string{"path": "params." + member, "reason": reason})
}

// notFound says that there is no such file or terminal (S29).
func notFound(member, value string) *jsonrpc.Error {
	return jsonrpc.ErrResourceNotFound.WithData(map[string]string{member: value})
}

// fileError says as much of what went wrong with a file as the agent can use.
func fileError(path string, err error) error {
	var e *jsonrpc.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	case errors.Is(err, fs.ErrNotExist):
		return notFound("path", path)
	case errors.Is(err, fs.ErrPermission):
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, "Permission denied").WithData(map[string]string{"path": path})
	}
	return err
}
