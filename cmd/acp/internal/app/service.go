package app

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// ServiceState is where deploy/acp.service has acp serve keep its state.
const ServiceState = "/var/lib/acp"

// StateFlag declares --state on a command about what a server keeps.
func (a *App) StateFlag(f *pflag.FlagSet) {
	f.StringVar(&a.State, "state", "", "what the server keeps is in `DIR`, such as "+ServiceState+" for the service (default: your directory for state)")
}

// stateDir returns the directory for state that --state names.
func (a *App) stateDir() (string, error) {
	dir, err := filepath.Abs(a.State)
	if err != nil {
		return "", fmt.Errorf("--state: %w", err)
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return "", exitcode.Errorf(exitcode.Usage, "--state: %w", err)
	case !info.IsDir():
		return "", exitcode.Errorf(exitcode.Usage, "--state: %s is not a directory", dir)
	}
	if owner, mine := ownerOf(info); !mine { // files that somebody else makes in there are of no use to the server
		return "", exitcode.Errorf(exitcode.Usage, "--state: %s belongs to %s: run the command as that user, as with sudo -u %s", dir, owner, owner)
	}
	return dir, nil
}

// Elsewhere returns what follows an error that a server has kept nothing in the directory for state: where that of another one
// is, which people who operate a service mean.
func (a *App) Elsewhere() string {
	if a.State != "" {
		return ""
	}
	return cmp.Or(a.Service(), "; --state names the directory of another server")
}

// Service returns what follows an error that there is no server: where that of the machine is, or "" if there is none either.
func (a *App) Service() string {
	info, err := os.Stat(ServiceState)
	if a.State != "" || err != nil {
		return ""
	}
	owner, _ := ownerOf(info)
	return fmt.Sprintf("; the service of this machine has %s: sudo -u %s acp … --state %s", ServiceState, owner, ServiceState)
}
