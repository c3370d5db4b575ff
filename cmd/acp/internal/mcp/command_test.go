package mcp

import (
	"fmt"
	"os"
	"os/exec"
)

func command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Env = os.Environ()
	return cmd
}

func typeName(v any) string { return fmt.Sprintf("%T", v) }
