//go:build unix

package completion

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
)

// TestBash completes in a bash that has nothing but itself.
func TestBash(t *testing.T) {
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	var script bytes.Buffer
	a := &app.App{Out: &script}
	root := &cobra.Command{Use: "acp"}
	root.AddCommand(NewCommand(a, nil))
	root.SetArgs([]string{"completion", "bash"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// The program that the script asks.
	fake := "#!/bin/sh\nprintf 'chat\\nconfig\\n:4\\n'\n"
	if err := os.WriteFile(filepath.Join(dir, "acp"), []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	script.WriteString(`
compopt() { :; } # the real one works while the shell completes
COMP_WORDS=(acp c) COMP_CWORD=1 COMP_LINE="acp c" COMP_POINT=5 COMP_TYPE=9
__start_acp
printf '%s\n' "${COMPREPLY[@]}"
`)
	cmd := exec.Command(shell, "--norc", "--noprofile")
	cmd.Stdin = &script
	cmd.Env = []string{"PATH=" + dir + string(filepath.ListSeparator) + os.Getenv("PATH"), "HOME=" + dir}
	out, err := cmd.CombinedOutput()
	if got := strings.Fields(string(out)); err != nil || len(got) != 2 || got[0] != "chat" || got[1] != "config" {
		t.Errorf("completed %q, %v", out, err)
	}
}
