// Package version is the command acp version. It also is where the rest of the program learns its
// version, which the build records.
package version

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

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
	Released bool   `json:"released,omitempty"` // a release that was made from the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Protocol []int  `json:"protocolVersions"`
}

// A release is one of the program: its version (v1.2.3), the commit that it was made from, and the time
// of that (RFC 3339). The commit of the release itself, which has the tags, follows that one and changes
// nothing but what names the version. It cannot contain its own hash.
type release struct{ version, commit, time string }

// pseudo matches the version that the go command gives to a commit without a tag.
var pseudo = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^v.*[-.][0-9]{14}-([0-9a-f]{12})$`) })

// Read returns what the build has recorded about the program. A build from a checkout without a
// version is called 0.0.0-devel. A build that has recorded no commit, as the go command does for
// modules that it has downloaded, is of the commit that its release was made from.
func Read() Info {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = &debug.BuildInfo{}
	}
	return read(build, Number, latest)
}

func read(build *debug.BuildInfo, number string, latest release) Info {
	info := Info{Version: number, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Protocol: []int{1, 2}}
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
	if info.Version == "" || info.Version == "(devel)" {
		info.Version = "0.0.0-devel"
	}
	if info.Commit != "" {
		return info
	}
	if m := pseudo().FindStringSubmatch(info.Version); m != nil {
		info.Commit = m[1]
	} else if latest.version != "" && strings.TrimPrefix(info.Version, "v") == latest.version[1:] {
		info.Commit, info.Time, info.Released = latest.commit, latest.time, true
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
		Long: `Print the version of the program and of the protocol, and the commit. A release names
the commit that it was made from: the one before the commit that has the tag.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return run(o)
		},
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print an object with version, commit, released, go, platform and protocolVersions")
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
	switch {
	case info.Released:
		commit = ", released from commit " + commit
	case info.Modified:
		commit = ", commit " + commit + " with changes"
	case commit != "":
		commit = ", commit " + commit
	}
	_, err := fmt.Fprintf(o.App.Out, "acp %s%s\n%s, %s, protocol versions 1 and 2\n", String(), commit, info.Go, info.Platform)
	return err
}
