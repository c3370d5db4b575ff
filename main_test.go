package acp_test

import (
	"bufio"
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
	switch os.Getenv("ACP_TEST_PROXY") {
	case "":
	case "relay":
		copyLines()
		return
	default:
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

// copyLines is a process that only copies.
func copyLines() {
	in, out := bufio.NewReaderSize(os.Stdin, 64<<10), os.Stdout
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		if _, err := out.Write(line); err != nil {
			return
		}
	}
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
