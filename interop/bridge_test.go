package interop

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
)

// inexpressible is one line of bridge-exceptions.txt.
type inexpressible struct {
	client string // its version, v1 or v2, before an agent of the other, or v1v1 or v2v2
	check  string
}

var bridgedPairs = []string{"v1", "v2", "v1v1", "v2v2"}

// readInexpressible reads lines "client check # reason", each once.
func readInexpressible(r io.Reader) ([]inexpressible, error) {
	var list []inexpressible
	scan := bufio.NewScanner(r)
	for n := 1; scan.Scan(); n++ {
		text := strings.TrimSpace(scan.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		rule, reason, _ := strings.Cut(text, "#")
		f := strings.Fields(rule)
		if len(f) != 2 || !slices.Contains(bridgedPairs, f[0]) || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("line %d: want: %s check # reason", n, strings.Join(bridgedPairs, "|"))
		}
		e := inexpressible{f[0], f[1]}
		if slices.Contains(list, e) {
			return nil, fmt.Errorf("line %d: %s %s is listed twice", n, f[0], f[1])
		}
		list = append(list, e)
	}
	return list, scan.Err()
}

// The scripted agent passes the suites of one version through the bridge while
// it speaks the other, and while it speaks the same.
func TestSuiteBridge(t *testing.T) {
	need(t)
	f, err := os.Open("bridge-exceptions.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	listed, err := readInexpressible(f)
	if err != nil {
		t.Fatalf("bridge-exceptions.txt: %v", err)
	}
	bridge, testy := example(t, "bridge"), example(t, "testy")
	for _, tt := range []struct {
		version int // of the client and its suite
		agent   int // its version
		stable  bool
		checks  int // of the suite, those that fail included
		probes  int
	}{
		{1, 2, false, 90, 66}, {1, 2, true, 72, 0}, {2, 1, false, 82, 76}, {2, 1, true, 68, 0},
		{1, 1, false, 90, 66}, {2, 2, false, 82, 76},
	} {
		name := fmt.Sprintf("v%d client v%d agent", tt.version, tt.agent)
		pair := fmt.Sprintf("v%d", tt.version)
		if tt.agent == tt.version {
			pair += pair
		}
		if tt.stable {
			name += " stable"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{script("v%d_client.mjs", tt.version), "--timeout=5000"}
			agent := []string{"--", bridge, testy,
				fmt.Sprintf("-protocol=%d", tt.agent), fmt.Sprintf("-script=%d", tt.version)}
			if tt.stable {
				args, agent = append(args, "--stable"), append(agent, "-stable")
			}
			if tt.probes > 0 {
				args = append(args, "--raw")
			}
			r := suite(t, nil, slices.Concat(args, agent)...)
			excepted := 0
			for _, e := range listed {
				if e.client != pair || rawCheck(e.check) && tt.probes == 0 {
					continue
				}
				if got := r.results[e.check]; got != "FAIL" && got != "WARN" {
					t.Errorf("%s is listed in bridge-exceptions.txt and does not fail: %q", e.check, r.lines[e.check])
				}
				delete(r.results, e.check)
				excepted++
			}
			r.code = 0 // the FAIL lines are what counts
			green(t, r)
			passed := r.count(false) + r.count(true)
			if want := tt.checks + tt.probes; passed+excepted != want {
				t.Errorf("%d checks and probes passed, %d are excepted, want %d together", passed, excepted, want)
			}
			t.Logf("%d checks and %d probes passed, %d are excepted", r.count(false), r.count(true), excepted)
		})
	}
}

func TestReadInexpressible(t *testing.T) {
	list, err := readInexpressible(strings.NewReader("# about\n\nv1 a/b # why\nv2 a/b # why\n"))
	if err != nil || !slices.Equal(list, []inexpressible{{"v1", "a/b"}, {"v2", "a/b"}}) {
		t.Errorf("%v, %v", list, err)
	}
	for _, line := range []string{"v1 a", "v1 a # ", "v3 a # why", "v1 # why", "v1 a b # why", "v1 z # twice"} {
		if _, err := readInexpressible(strings.NewReader("v1 z # once\n\n" + line)); err == nil || !strings.Contains(err.Error(), "line 3") {
			t.Errorf("%q: error = %v, want one naming line 3", line, err)
		}
	}
}
