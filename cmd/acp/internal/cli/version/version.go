// Package version is the command acp version. It also is where the rest of the program learns its
// version, which the build records.
package version

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
)

// Number is the version of the program if the linker sets it (-ldflags -X). Otherwise it is empty,
// and the version is the one that the go command records in the binary.
var Number = ""

// Options are the flags of the command.
type Options struct {
	App  *app.App
	JSON bool
}

// An Info describes the program. It is what --json prints.
type Info struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Time     string `json:"time,omitempty"`     // of the commit, RFC 3339
	Modified bool   `json:"modified,omitempty"` // the checkout differed from the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Protocol []int  `json:"protocolVersions"`
}

// Read returns what the build has recorded about the program. A build from a checkout without a
// version is called 0.0.0-devel.
func Read() Info {
	info := Info{Version: Number, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Protocol: []int{1, 2}}
	build, ok := debug.ReadBuildInfo()
	if ok {
		if info.Version == "" {
			info.Version = build.Main.Version
		}
		for _, s := range build.Settings {
			switch s.Key {
			case "vcs.revision":
				info.Commit = s.Value
			case "vcs.time":
				info.Time = s.Value
			case "vcs.modified":
				info.Modified = s.Value == "true"
			}
		}
	}
	if info.Version == "" || info.Version == "(devel)" {
		info.Version = "0.0.0-devel"
	}
	return info
}

// String returns the version of the program without the leading v.
func String() string {
	v := Read().Version
	if len(v) > 1 && v[0] == 'v' {
		return v[1:]
	}
	return v
}

// NewCommand returns the command. If runF is not nil, it is called instead of the command itself.
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program and of the protocol",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return run(o)
		},
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print an object with version, commit, go, platform and protocolVersions")
	return cmd
}

func run(o *Options) error {
	info := Read()
	if o.JSON {
		data, err := json.Marshal(info)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(o.App.Out, "%s\n", data)
		return err
	}
	commit := info.Commit
	if len(commit) > 12 {
		commit = commit[:12]
	}
	if commit != "" {
		commit = ", commit " + commit
		if info.Modified {
			commit += " with changes"
		}
	}
	_, err := fmt.Fprintf(o.App.Out, "acp %s%s\n%s, %s, protocol versions 1 and 2\n", String(), commit, info.Go, info.Platform)
	return err
}
