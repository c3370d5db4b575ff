//go:build !unix

package pty

import (
	"context"
	"errors"
	"os"
	"os/exec"

	"github.com/goacp/acp/acphost"
)

// Available reports that there are no pseudo-terminals on this system.
const Available = false

// Terminals cannot be used on this system.
type Terminals struct {
	Size Size
}

// Start fails with [errors.ErrUnsupported].
func (Terminals) Start(context.Context, acphost.PTYCommand) (acphost.PTYProcess, error) {
	return nil, errors.ErrUnsupported
}

// Run runs a program with the user's terminal, as it is.
func Run(ctx context.Context, cmd *exec.Cmd, in, out *os.File) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, out
	if err := cmd.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	return cmd.Wait()
}
