package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
	agentcmd "github.com/goacp/acp/cmd/acp/internal/cli/agent"
	"github.com/goacp/acp/cmd/acp/internal/cli/agents"
	"github.com/goacp/acp/cmd/acp/internal/cli/attach"
	"github.com/goacp/acp/cmd/acp/internal/cli/audit"
	"github.com/goacp/acp/cmd/acp/internal/cli/auth"
	"github.com/goacp/acp/cmd/acp/internal/cli/bridge"
	"github.com/goacp/acp/cmd/acp/internal/cli/cancel"
	chatcmd "github.com/goacp/acp/cmd/acp/internal/cli/chat"
	"github.com/goacp/acp/cmd/acp/internal/cli/check"
	"github.com/goacp/acp/cmd/acp/internal/cli/completion"
	"github.com/goacp/acp/cmd/acp/internal/cli/conductor"
	"github.com/goacp/acp/cmd/acp/internal/cli/config"
	"github.com/goacp/acp/cmd/acp/internal/cli/connect"
	"github.com/goacp/acp/cmd/acp/internal/cli/devices"
	"github.com/goacp/acp/cmd/acp/internal/cli/docs"
	"github.com/goacp/acp/cmd/acp/internal/cli/exec"
	"github.com/goacp/acp/cmd/acp/internal/cli/models"
	nodecmd "github.com/goacp/acp/cmd/acp/internal/cli/node"
	"github.com/goacp/acp/cmd/acp/internal/cli/proxy"
	"github.com/goacp/acp/cmd/acp/internal/cli/serve"
	"github.com/goacp/acp/cmd/acp/internal/cli/sessions"
	"github.com/goacp/acp/cmd/acp/internal/cli/tap"
	"github.com/goacp/acp/cmd/acp/internal/cli/trace"
	"github.com/goacp/acp/cmd/acp/internal/cli/version"
	"github.com/goacp/acp/cmd/acp/internal/store"
)

// addCommands adds all commands to root. It returns the chat command, which acp without arguments
// runs.
//
// If args begin with the name of one that programs start, and often, it is alone: the others are half of what is
// left to do between main and the command.
func addCommands(root *cobra.Command, a *app.App, args []string) (chat *cobra.Command) {
	add := func(group string, cmds ...*cobra.Command) {
		for _, cmd := range cmds {
			cmd.GroupID = group
			root.AddCommand(cmd)
		}
	}
	if len(args) > 0 {
		switch args[0] {
		case "version":
			add(groupSet, version.NewCommand(a, nil))
			return nil
		case "agent":
			add(groupWire, agentcmd.NewCommand(a, nil))
			return nil
		}
	}
	chat = chatcmd.NewCommand(a, nil)
	resume := func(ctx context.Context, s store.Session) error { return resume(ctx, a, s) }
	resumeAt := func(ctx context.Context, where, id string) error {
		return chatcmd.Run(ctx, &chatcmd.Options{App: a, At: where, Session: id})
	}
	choose := func(ctx context.Context) (store.Session, bool, error) { return chatcmd.Choose(ctx, a) }
	forget := func(cwd string, prompts []string) error { return chatcmd.Forget(a, cwd, prompts) }
	add(groupTalk, chat, exec.NewCommand(a, nil), attach.NewCommand(a, nil), cancel.NewCommand(a, nil), sessions.NewCommandResume(a, sessions.Interfaces{ResumeSession: resume, ResumeAt: resumeAt, Choose: choose, Forget: forget}, nil))
	add(groupSet, agents.NewCommand(a, nil), models.NewCommand(a, nil), auth.NewCommand(a, nil), devices.NewCommand(a, nil), audit.NewCommand(a, nil), nodecmd.NewCommand(a, nil), config.NewCommand(a, nil),
		completion.NewCommand(a, nil), version.NewCommand(a, nil))
	add(groupWire, agentcmd.NewCommand(a, nil), bridge.NewCommand(a, nil), conductor.NewCommand(a, nil), proxy.NewCommand(a), serve.NewCommand(a, nil), connect.NewCommand(a, nil), tap.NewCommand(a, nil), trace.NewCommand(a, nil), check.NewCommand(a, nil), check.NewConnect(a), newMCPConnect(), newHold(), newIsolate(), docs.NewCommand(a))
	return chat
}

// resume continues a stored session, in the directory where it took place: the agent's tools and
// the rules about paths depend on it. An agent whose name is no longer known is started by the
// command line that the store recorded.
func resume(ctx context.Context, a *app.App, s store.Session) error {
	dir, err := directory("the directory of the session", s.Cwd)
	if err != nil {
		return fmt.Errorf("%w; to save the conversation, use acp sessions export", err)
	}
	a.Cwd = dir
	return chatcmd.Run(ctx, chatcmd.Continue(&chatcmd.Options{App: a}, s))
}
