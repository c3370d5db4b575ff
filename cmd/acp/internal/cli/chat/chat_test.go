package chat

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

func TestArguments(t *testing.T) {
	tests := []struct {
		args []string
		want Options
		err  string
	}{
		{args: nil},
		{args: []string{"gemini"}, want: Options{Agent: "gemini"}},
		{args: []string{"gemini", "-p", "hello there"}, want: Options{Agent: "gemini", Prompt: "hello there"}},
		{args: []string{"--continue"}, want: Options{Continue: true}},
		{args: []string{"-s", "abc", "--no-bell"}, want: Options{Session: "abc", NoBell: true}},
		{args: []string{"--", "my-agent", "--acp", "-c"}, want: Options{Command: []string{"my-agent", "--acp", "-c"}}},
		{args: []string{"gemini", "hello"}, err: "--prompt"},
		{args: []string{"gemini", "--", "x"}, err: "both gemini and the command after --"},
		{args: []string{"--"}, err: "command is missing after --"},
		{args: []string{"-c", "-s", "x"}, err: "cannot be combined"},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			a := new(app.App)
			var got *Options
			cmd := NewCommand(a, func(_ context.Context, o *Options) error { got = o; return nil })
			cmd.SetArgs(append([]string{}, tt.args...))
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			err := cmd.ExecuteContext(t.Context())
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || exitcode.Of(err) != exitcode.Usage {
					t.Fatalf("error %v with status %d", err, exitcode.Of(err))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			tt.want.App = a
			if diff := cmp.Diff(tt.want.Command, got.Command); diff != "" {
				t.Error(diff)
			}
			tt.want.Command, got.Command = nil, nil
			if got.Agent != tt.want.Agent || got.Session != tt.want.Session || got.Continue != tt.want.Continue ||
				got.Prompt != tt.want.Prompt || got.NoBell != tt.want.NoBell {
				t.Errorf("got %+v, want %+v", *got, tt.want)
			}
		})
	}
}

// TestCommandName: a command line has the name that acp exec gives it, by which its sessions are found.
func TestCommandName(t *testing.T) {
	home := t.TempDir()
	a := &app.App{Cwd: home, Environ: []string{"HOME=" + home}}
	o := &Options{App: a, Command: []string{"sh", "-c", "my agent --acp"}}
	got, err := o.agent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want, err := a.CommandAgent(o.Command)
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != want.Name || got.Name == "sh -c my agent --acp" || got.Title != "sh" {
		t.Errorf("name %q, want %q; title %q", got.Name, want.Name, got.Title)
	}
}
