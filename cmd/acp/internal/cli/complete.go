package cli

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/store"
)

// completing bounds how long one completion may take, because the user is waiting for it.
const completing = time.Second

// addCompletions makes shells complete names of agents, ids of sessions and rules. Errors are
// swallowed: the shell would print them into the command line that the user is typing. A
// completion starts no agent and writes nothing.
func addCompletions(root *cobra.Command, a *app.App, g *globals) {
	type list = []cobra.Completion
	const none = cobra.ShellCompDirectiveNoFileComp
	agents := func(cmd *cobra.Command, args []string, _ string) (list, cobra.ShellCompDirective) {
		if g.apply(a) != nil {
			return nil, none
		}
		all, err := a.Roster()
		if err != nil {
			return nil, none
		}
		return all.Suggestions(), none
	}
	sessions := func(cmd *cobra.Command, _ []string, prefix string) (found list, _ cobra.ShellCompDirective) {
		if g.apply(a) != nil {
			return nil, none
		}
		ctx, cancel := context.WithTimeout(context.Background(), completing)
		defer cancel()
		kept, err := a.Store(ctx)
		if err != nil || kept == nil {
			return nil, none
		}
		matches, err := kept.List(ctx, store.Query{Limit: 50})
		if err != nil {
			return nil, none
		}
		names, err := kept.Names(ctx)
		if err != nil {
			return nil, none
		}
		for _, s := range matches {
			name := names.Of(s.Session)
			// An id that a terminal or a shell would not pass through unchanged is not offered.
			id := safetext.Line(name, 100)
			if id == name && !strings.ContainsAny(id, " \t") && strings.HasPrefix(id, prefix) {
				found = append(found, cobra.CompletionWithDesc(id, safetext.Line(s.Title, 60)))
			}
		}
		return found, none
	}
	rules := func(*cobra.Command, []string, string) (list, cobra.ShellCompDirective) {
		return list{
			cobra.CompletionWithDesc("kind:read,search", "reading and searching files"),
			cobra.CompletionWithDesc("kind:edit", "changing files"),
			cobra.CompletionWithDesc("kind:execute", "running commands"),
			cobra.CompletionWithDesc("kind:fetch", "fetching from the network"),
			cobra.CompletionWithDesc("command:", "a command"),
			cobra.CompletionWithDesc("path:", "files"),
			cobra.CompletionWithDesc("server:", "an MCP server"),
		}, none | cobra.ShellCompDirectiveNoSpace
	}
	_ = root.RegisterFlagCompletionFunc("agent", agents)
	_ = root.RegisterFlagCompletionFunc("allow", rules)
	_ = root.RegisterFlagCompletionFunc("deny", rules)
	proxies := func(*cobra.Command, []string, string) (list, cobra.ShellCompDirective) {
		found := slices.Clone(config.ReadyProxies)
		if g.apply(a) == nil {
			if cfg, err := a.Config(); err == nil {
				found = append(found, slices.Sorted(maps.Keys(cfg.Proxies))...)
			}
		}
		return found, none
	}
	for _, cmd := range root.Commands() {
		if cmd.Flags().Lookup("proxy") != nil {
			_ = cmd.RegisterFlagCompletionFunc("proxy", proxies)
		}
		switch cmd.Name() {
		case "exec", "chat", "bridge":
			if cmd.Flags().Lookup("session") != nil {
				_ = cmd.RegisterFlagCompletionFunc("session", sessions)
			}
			if cmd.ValidArgsFunction == nil {
				cmd.ValidArgsFunction = first(agents)
			}
		}
	}
}

// first completes the first argument only.
func first(f cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return f(cmd, args, prefix)
	}
}
