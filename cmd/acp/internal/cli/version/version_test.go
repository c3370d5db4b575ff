package version

import (
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	latest := release{version: "v0.2.0", commit: "0123456789abcdef0123456789abcdef01234567", time: "2026-11-29T12:00:00Z"}
	vcs := []debug.BuildSetting{
		{Key: "vcs.revision", Value: "fedcba9876543210"}, {Key: "vcs.time", Value: "2026-11-30T12:00:00Z"}, {Key: "vcs.modified", Value: "true"},
	}
	for _, tt := range []struct {
		name, main, number string
		settings           []debug.BuildSetting
		latest             release
		want               Info
	}{
		{"downloaded release", "v0.2.0", "", nil, latest, Info{Version: "v0.2.0", Commit: latest.commit, Time: latest.time, Released: true}},
		{"number of the linker", "(devel)", "0.2.0", nil, latest, Info{Version: "0.2.0", Commit: latest.commit, Time: latest.time, Released: true}},
		{"another version", "v0.2.1", "", nil, latest, Info{Version: "v0.2.1"}},
		{"downloaded commit", "v0.2.1-0.20261130120000-aaaabbbbcccc", "", nil, latest,
			Info{Version: "v0.2.1-0.20261130120000-aaaabbbbcccc", Commit: "aaaabbbbcccc"}},
		{"checkout", "(devel)", "", nil, latest, Info{Version: "0.0.0-devel"}},
		{"checkout with git", "v0.2.0", "", vcs, latest, Info{Version: "v0.2.0", Commit: "fedcba9876543210", Time: "2026-11-30T12:00:00Z", Modified: true}},
		{"before the first release", "", "", nil, release{}, Info{Version: "0.0.0-devel"}},
	} {
		got := read(&debug.BuildInfo{Main: debug.Module{Version: tt.main}, Settings: tt.settings}, tt.number, tt.latest)
		got.Go, got.Platform, got.Protocol = "", "", nil
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: -want +got\n%s", tt.name, d)
		}
	}
}
