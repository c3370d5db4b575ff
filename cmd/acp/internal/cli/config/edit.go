package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/roster"
)

// edit opens the user's file in an editor and checks it afterwards. It returns when the editor
// exits and ignores ctx, because Ctrl-C in the editor is meant for the editor.
func (o *Options) edit(context.Context) error {
	c, err := o.located()
	if err != nil {
		return err
	}
	if c.UserFile == "" {
		return errNowhere
	}
	if _, err := os.Stat(c.UserFile); errors.Is(err, os.ErrNotExist) {
		if err := create(c.UserFile); err != nil {
			return fmt.Errorf("writing settings: %w", err)
		}
	}
	argv, chosen, err := app.Editor(c.Environ)
	if err != nil {
		return exitcode.With(exitcode.Usage, err)
	}
	if !chosen && !o.App.InTerminal && runtime.GOOS != "windows" {
		return exitcode.Errorf(exitcode.Usage, "%s needs a terminal; set EDITOR to an editor that does not, or use acp config set", argv[0])
	}
	path, err := roster.LookPath(argv[0], o.App.Cwd, c.Environ)
	if err != nil {
		return exitcode.Errorf(exitcode.Usage, "editor %q: %w; set EDITOR", argv[0], err)
	}
	cmd := exec.Command(path, append(argv[1:], c.UserFile)...)
	cmd.Env, cmd.Dir = c.Environ, o.App.Cwd
	cmd.Stdin, cmd.Stdout, cmd.Stderr = o.App.In, o.App.Out, o.App.Err
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("editor %s: %w", argv[0], err)
	}
	_, err = config.Load(source(o.App))
	return err
}

// create writes a settings file that describes all settings in comments.
func create(name string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(config.Template()), 0o600)
}
