// Command release makes the commit and the tags of a release, and the archives for those who do not
// have Go. .ci/release and .ci/archives start it in the root of a clone; docs/adr/0030 says why it
// works as it does. It needs git and go. It pushes nothing.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"golang.org/x/mod/semver"
)

const usage = `usage: .ci/release VERSION                  commit the release VERSION (vX.Y.Z), and tag its three modules
       .ci/archives VERSION DIR [OS/ARCH…]  write the archives of a release that was tagged, and SHA256SUMS
`

// errUsage is returned for arguments that the usage does not allow.
var errUsage = errors.New("wrong arguments")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintf(os.Stderr, "%v\n%s", err, usage)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 1 && (args[0] == "-h" || args[0] == "--help") {
		fmt.Print(usage)
		return nil
	}
	if len(args) == 0 {
		return fmt.Errorf("%w: a version is needed", errUsage)
	}
	root, err := git(ctx, ".", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	c := clone{dir: filepath.FromSlash(root)}
	if args[0] == "archives" {
		if len(args) < 3 {
			return fmt.Errorf("%w: a version and a directory are needed", errUsage)
		}
		if err := checkVersion(args[1]); err != nil {
			return err
		}
		return archives(ctx, c, args[1], args[2], args[3:])
	}
	if len(args) != 1 {
		return fmt.Errorf("%w: one version is needed", errUsage)
	}
	return release(ctx, c, args[0], os.Stdout)
}

// canonical is a version without a pre-release. From v2 on a module path would have to end with the
// number.
var canonical = regexp.MustCompile(`^v[01]\.[0-9]+\.[0-9]+$`)

func checkVersion(v string) error {
	if !semver.IsValid(v) || !canonical.MatchString(v) {
		return fmt.Errorf("%w: the version %q must be like v0.1.0 or v1.2.3", errUsage, v)
	}
	return nil
}

// A clone is a clone of the repository.
type clone struct {
	dir string
	env []string // what is added to the environment of commands
}

func (c clone) git(ctx context.Context, args ...string) (string, error) {
	return command(ctx, c.dir, c.env, "git", args...)
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	return command(ctx, dir, nil, "git", args...)
}

// command runs a program and returns what it printed, without white space around it.
func command(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var out, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		said := strings.TrimSpace(out.String() + stderr.String())
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, said)
	}
	return strings.TrimSpace(out.String()), nil
}
