//go:build unix

package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp"
)

// countRole makes the test binary an agent that counts to countTo, and asks in between.
const countRole = "count"

const countTo = 300

func init() { roles[countRole] = playCount }

func playCount() error {
	agent := &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		for i := range countTo {
			if err := t.Say(fmt.Sprint(i)); err != nil {
				return "", err
			}
			if i%50 == 49 {
				if answer, err := t.Ask(acp.Permission{Title: fmt.Sprint("May I, after ", i, "?")}); err != nil || !answer.Allowed {
					return "", fmt.Errorf("not allowed: %w", err)
				}
			}
			time.Sleep(2 * time.Millisecond) // so that the turn lasts
		}
		return acp.StopEndTurn, t.Say("end")
	}}
	return agent.Serve(context.Background(), acp.Stdio())
}

// gatewayProcess is acp serve, as a process that is started again and again.
type gatewayProcess struct {
	t    *testing.T
	bin  string
	env  []string
	urls string // the file with its URL
	cmd  *exec.Cmd
}

func newGateway(t *testing.T) *gatewayProcess {
	t.Helper()
	bin, env := program(t)
	sockets, err := os.MkdirTemp("", "acpg") // short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	g := &gatewayProcess{t: t, bin: bin, env: append(env, "XDG_RUNTIME_DIR="+sockets), urls: filepath.Join(sockets, "url")}
	g.start()
	t.Cleanup(g.kill)
	return g
}

func (g *gatewayProcess) start() {
	g.t.Helper()
	self, err := os.Executable()
	if err != nil {
		g.t.Fatal(err)
	}
	g.cmd = exec.Command(g.bin, "serve", "--no-auth", "--listen", "127.0.0.1:0", "--", "env", roleVar+"="+countRole, self)
	g.cmd.Env = g.env
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		g.t.Fatal(err)
	}
	if err := g.cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		g.t.Fatal(err)
	}
	if err := os.WriteFile(g.urls+".new", []byte(url), 0o600); err != nil {
		g.t.Fatal(err)
	}
	if err := os.Rename(g.urls+".new", g.urls); err != nil {
		g.t.Fatal(err)
	}
}

func (g *gatewayProcess) kill() {
	_ = g.cmd.Process.Kill()
	_ = g.cmd.Wait()
}

// TestGatewayRestarted: clients on the official SDK, as they are, see everything of a turn once and in order
// though the gateway is killed and started again in the middle of it.
func TestGatewayRestarted(t *testing.T) {
	need(t)
	for _, version := range []string{"1", "2"} {
		for _, transport := range []string{"http", "ws"} {
			t.Run("v"+version+" "+transport, func(t *testing.T) {
				g := newGateway(t)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				client := exec.CommandContext(ctx, "node", "gateway_client.mjs", version, transport, g.urls)
				out, err := client.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := client.Start(); err != nil {
					t.Fatal(err)
				}
				defer client.Wait()
				kills, last := 0, ""
				for lines := bufio.NewScanner(out); lines.Scan(); last = lines.Text() {
					var n int
					if _, err := fmt.Sscanf(lines.Text(), "seen %d", &n); err == nil && n/60 > kills && kills < 4 {
						kills++
						g.kill()
						g.start()
					}
				}
				var got struct {
					All   []string
					Asked int
				}
				if err := json.Unmarshal([]byte(last), &got); err != nil {
					t.Fatalf("%q: %v", last, err)
				}
				var want []string
				for i := range countTo {
					want = append(want, fmt.Sprint(i))
				}
				want = append(want, "end")
				if strings.Join(got.All, " ") != strings.Join(want, " ") {
					t.Errorf("after %d kills: %d of %d: %q", kills, len(got.All), len(want), got.All)
				}
				if kills != 4 || got.Asked < countTo/50 {
					t.Errorf("%d kills, %d questions", kills, got.Asked)
				}
				t.Logf("%d kills, %d updates, %d questions", kills, len(got.All), got.Asked)
			})
		}
	}
}
