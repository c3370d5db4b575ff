package acp_test

import (
	"context"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/internal/leaktest"
)

// agentName is the program that [Example_client] starts: this one, under another name.
const agentName = "some-agent"

func TestMain(m *testing.M) {
	if strings.HasPrefix(filepath.Base(os.Args[0]), agentName) {
		Example_agent()
		return
	}
	if os.Getenv("ACP_TEST_PROXY") != "" {
		if err := new(acp.Proxy).Serve(context.Background(), acp.Stdio()); err != nil {
			log.Fatal(err)
		}
		return
	}
	dir, err := os.MkdirTemp("", "acp-agent-")
	if err == nil {
		err = installAgent(dir)
	}
	if err != nil {
		log.Print("Example_client will fail: ", err)
	}
	leaktest.Main(m, func() { _ = os.RemoveAll(dir) })
}

// installAgent puts the agent into a directory, and that into PATH.
func installAgent(dir string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	name := agentName
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if err := os.Symlink(program, filepath.Join(dir, name)); err != nil {
		return err
	}
	return os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}
