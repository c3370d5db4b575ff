package exec

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// run is a turn with an agent in this process.
func run(t *testing.T, version int, prompt func(context.Context, *acp.Turn) (acp.StopReason, error), change func(*Options)) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	a := &app.App{In: strings.NewReader(""), Out: &out, Err: &errs, Cwd: t.TempDir(), Flags: map[string]any{"store.off": true},
		Environ: []string{"HOME=" + t.TempDir()}}
	a.UseBuiltIn(&acp.Agent{MinVersion: version, MaxVersion: version, Prompt: prompt})
	o := &Options{App: a, Agent: "builtin", Prompt: []string{"go"}, NoStdin: true}
	change(o)
	err = Run(t.Context(), o)
	if e := a.Close(); e != nil {
		t.Error(e)
	}
	return out.String(), errs.String(), err
}

// TestJSONLive folds the lines of whole turns: they are in the documented order, have no member that
// is not documented, and make the conversation however the updates were put together.
func TestJSONLive(t *testing.T) {
	const pieces = 5000
	for _, version := range []int{1, 2} {
		stdout, stderr, err := run(t, version, func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
			call := turn.ToolCall(acp.ToolCall{Title: "Think", Kind: acp.ToolKindThink})
			for i := range pieces {
				if err := turn.Say(fmt.Sprint(i, " ")); err != nil {
					return "", err
				}
				if i%100 == 0 {
					_ = turn.Usage(uint64(i), 10000, nil)
				}
			}
			_ = call.Complete()
			if _, err := call.Ask(acp.Permission{Title: "May I?"}); err != nil {
				return "", err
			}
			return acp.StopEndTurn, nil
		}, func(o *Options) { o.JSON = true })
		if exitcode.Of(err) != exitcode.Denied || !strings.HasPrefix(stderr, "denied: ") {
			t.Errorf("v%d: %v, %q", version, err, stderr)
		}
		var want strings.Builder
		for i := range pieces {
			fmt.Fprint(&want, i, " ")
		}
		entries := map[uint64]string{}
		var types []string
		var result resultLine
		for line := range strings.Lines(stdout) {
			var kind struct{ Type string }
			if err := json.Unmarshal([]byte(line), &kind); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			types = append(types, kind.Type)
			into := map[string]any{"session": new(sessionLine), "update": new(updateLine), "permission": new(permissionLine),
				"note": new(noteLine), "result": &result}[kind.Type]
			dec := json.NewDecoder(strings.NewReader(line))
			dec.DisallowUnknownFields()
			if into == nil || dec.Decode(into) != nil {
				t.Fatalf("not as documented: %s", line)
			}
			if kind.Type == "update" {
				fold(t, entries, []byte(line))
			}
		}
		if n := len(types); n < 5 || types[0] != "session" || types[n-1] != "result" || strings.Count(strings.Join(types, " "), "result") != 1 {
			t.Errorf("v%d: lines %q", version, types)
		}
		if result.Text != want.String() || result.Denied != 1 || result.ExitCode != int(exitcode.Denied) || result.StopReason != "end_turn" {
			t.Errorf("v%d: result of %d bytes, %+v", version, len(result.Text), result)
		}
		found := false
		for _, text := range entries {
			found = found || text == want.String()
		}
		if !found {
			t.Errorf("v%d: the message is not among %d entries", version, len(entries))
		}
	}
}

// TestManyDenials: what is listed is bounded, and then the number is told.
func TestManyDenials(t *testing.T) {
	const n = maxDenials + 5
	_, stderr, err := run(t, 2, func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
		for i := range n {
			call := turn.ToolCall(acp.ToolCall{Title: fmt.Sprintf("call %03d", i), Kind: acp.ToolKindEdit})
			if _, err := call.Ask(acp.Permission{}); err != nil {
				return "", err
			}
		}
		return acp.StopEndTurn, nil
	}, func(*Options) {})
	if got := strings.Count(stderr, "denied: "); got != maxDenials+1 || !strings.Contains(stderr, "denied: further requests are not listed\n") {
		t.Errorf("%d lines", got)
	}
	if exitcode.Of(err) != exitcode.Denied || err.Error() != fmt.Sprintf("%d permission requests were denied", n) {
		t.Errorf("%v", err)
	}
}
