package docs

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Man writes the manual pages of all commands into dir, which it creates if necessary. The pages
// carry no date of their own, so that packages built from the same source are identical.
func Man(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("manual pages: %w", err)
	}
	for _, cmd := range visible(root) {
		var b strings.Builder
		manual(&b, cmd)
		name := filepath.Join(dir, page(cmd)+".1")
		if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
			return fmt.Errorf("manual pages: %w", err)
		}
	}
	return nil
}

// page is what the page of a command is called.
func page(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manual writes a page in the language of man(7).
func manual(w io.Writer, cmd *cobra.Command) {
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	fmt.Fprintf(w, ".TH \"%s\" \"1\" \"\" \"acp\" \"acp\"\n.nh\n.ad l\n", roff(strings.ToUpper(page(cmd))))
	fmt.Fprintf(w, ".SH NAME\n%s \\- %s\n", roff(page(cmd)), roff(cmd.Short))
	if cmd.Runnable() {
		fmt.Fprintf(w, ".SH SYNOPSIS\n\\fB%s\\fP\n", roff(cmd.UseLine()))
	}
	fmt.Fprintf(w, ".SH DESCRIPTION\n")
	prose(w, text)
	options(w, "OPTIONS", cmd.NonInheritedFlags())
	options(w, "OPTIONS OF ALL COMMANDS", cmd.InheritedFlags())
	if cmd.Example != "" {
		fmt.Fprintf(w, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(dedent(cmd.Example)))
	}
	var also []string
	if cmd.HasParent() {
		also = append(also, page(cmd.Parent()))
	}
	for _, sub := range visible(cmd)[1:] {
		if sub.Parent() == cmd {
			also = append(also, page(sub))
		}
	}
	for i, name := range also {
		also[i] = `\fB` + roff(name) + `\fP(1)`
	}
	if len(also) > 0 {
		fmt.Fprintf(w, ".SH SEE ALSO\n%s\n", strings.Join(also, ",\n"))
	}
}

// prose writes help text: lines that are indented stay as they are, others are filled.
func prose(w io.Writer, text string) {
	asIs := false
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if indented := strings.HasPrefix(line, "  "); indented != asIs && line != "" {
			asIs = indented
			fmt.Fprintln(w, map[bool]string{true: ".nf", false: ".fi"}[asIs])
		}
		if line == "" {
			line = ".PP"
		} else {
			line = roff(line)
		}
		fmt.Fprintln(w, line)
	}
	if asIs {
		fmt.Fprintln(w, ".fi")
	}
}

// options writes a section about flags.
func options(w io.Writer, title string, set *pflag.FlagSet) {
	if !set.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(w, ".SH %s\n", title)
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name, usage := described(f)
		text := `\fB` + roff("--"+f.Name) + `\fP`
		if f.Shorthand != "" {
			text = `\fB` + roff("-"+f.Shorthand) + `\fP, ` + text
		}
		if name != "" {
			text += ` \fI` + roff(name) + `\fP`
		}
		fmt.Fprintf(w, ".TP\n%s\n%s\n", text, roff(usage))
	})
}

// described returns what a flag takes and does, with its default where that says something: false and 0 do not.
func described(f *pflag.Flag) (name, usage string) {
	name, usage = pflag.UnquoteUsage(f)
	if def := f.DefValue; def != "" && def != "false" && def != "[]" && def != "0" && def != "0s" {
		usage += " (default " + def + ")"
	}
	return name, usage
}

var roffEscapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", `\(ga`, "'", `\(aq`, "^", `\(ha`, "~", `\(ti`)

// roff returns text that roff prints as it is. The characters that begin a request do so at the beginning of a line only.
func roff(text string) string {
	lines := strings.Split(roffEscapes.Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
