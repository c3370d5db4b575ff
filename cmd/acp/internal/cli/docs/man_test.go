package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// odd is a command whose texts have what roff would take for something else.
func odd() *cobra.Command {
	root := &cobra.Command{Use: "acp", Short: "Talk", Long: "First `line` of -x,\n.config is no request\nand 'this' \\n neither.\n\nTable:\n\n  .a   1\n  'b'  2\n\nEnd.", Example: "  acp 'x y'\n  .acp"}
	root.PersistentFlags().Bool("all", false, "take all")
	sub := &cobra.Command{Use: "odd-one FILE", Short: "Be odd", Run: func(*cobra.Command, []string) {}}
	sub.Flags().StringP("mode", "m", "a~b", "the `MODE` ^ of it")
	sub.Flags().Bool("hidden", false, "not said")
	_ = sub.Flags().MarkHidden("hidden")
	root.AddCommand(sub, &cobra.Command{Use: "secret", Short: "Not said", Hidden: true, Run: sub.Run})
	return root
}

// TestMan holds the pages of two commands.
func TestMan(t *testing.T) {
	dir := t.TempDir()
	if err := Man(odd(), filepath.Join(dir, "new")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"acp.1": `.TH "ACP" "1" "" "acp" "acp"
.nh
.ad l
.SH NAME
acp \- Talk
.SH DESCRIPTION
First \(galine\(ga of \-x,
\&.config is no request
and \(aqthis\(aq \en neither.
.PP
Table:
.PP
.nf
  .a   1
  \(aqb\(aq  2
.PP
.fi
End.
.SH OPTIONS
.TP
\fB\-\-all\fP
take all
.SH EXAMPLES
.nf
acp \(aqx y\(aq
\&.acp
.fi
.SH SEE ALSO
\fBacp\-odd\-one\fP(1)
`,
		"acp-odd-one.1": `.TH "ACP\-ODD\-ONE" "1" "" "acp" "acp"
.nh
.ad l
.SH NAME
acp\-odd\-one \- Be odd
.SH SYNOPSIS
\fBacp odd\-one FILE [flags]\fP
.SH DESCRIPTION
Be odd.
.SH OPTIONS
.TP
\fB\-m\fP, \fB\-\-mode\fP \fIMODE\fP
the MODE \(ha of it (default a\(tib)
.SH OPTIONS OF ALL COMMANDS
.TP
\fB\-\-all\fP
take all
.SH SEE ALSO
\fBacp\fP(1)
`,
	} {
		got, err := os.ReadFile(filepath.Join(dir, "new", name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	if entries, _ := os.ReadDir(filepath.Join(dir, "new")); len(entries) != 2 {
		t.Errorf("there are %d pages", len(entries))
	}
}

// TestManRead: groff, if it is there, finds nothing wrong and prints the text as it was.
func TestManRead(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("there is no groff")
	}
	dir := t.TempDir()
	if err := Man(odd(), dir); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), groff, "-man", "-Tascii", "-P-cbou", "-ww", filepath.Join(dir, "acp.1")).CombinedOutput()
	if err != nil || strings.Contains(string(out), "warning") {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"First `line` of -x, .config is no request and 'this' \\n neither.", "  .a   1\n", "  'b'  2\n", "acp 'x y'\n", " .acp\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
