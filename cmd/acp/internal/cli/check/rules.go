package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/conformance"
)

// newRules returns the command that lists and explains rules.
func newRules(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rules [RULES…]",
		Short: "List the rules, or explain some of them",
		Long: `List all rules, or explain some of them: RULES is an id, the beginning of ids, or a
pattern. For a rule whose full id you give, the explanation includes the conversation
that tests it, in the language of the Go package conformance. The numbers of statements
refer to docs/behaviour.md.`,
		Example:           "  acp check rules\n  acp check rules agent/initialize\n  acp check rules agent/cancel/at-once\n  acp check rules 'client/*/unknown-*'",
		ValidArgsFunction: completeRules,
		RunE: func(_ *cobra.Command, args []string) error {
			var rules []*conformance.Rule
			for _, r := range conformance.Rules() {
				if len(args) == 0 || slices.ContainsFunc(args, func(p string) bool { return conformance.Names(p, r.ID) }) {
					rules = append(rules, r)
				}
			}
			if len(rules) == 0 {
				return exitcode.Errorf(exitcode.Usage, "there is no rule %q: see acp check rules", strings.Join(args, " "))
			}
			if asJSON {
				return rulesJSON(a, rules)
			}
			if len(args) > 0 {
				return explain(a, rules, args)
			}
			return list(a, rules)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line, one for each rule")
	return cmd
}

func completeRules(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var ids []string
	for _, r := range conformance.Rules() {
		ids = append(ids, r.ID+"\t"+r.Text)
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

func list(a *app.App, rules []*conformance.Rule) error {
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RULE\tLEVEL\tVERSION\tCITES")
	for _, r := range rules {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.ID, r.Level, versions(r), strings.Join(r.Cites, " "))
	}
	return w.Flush()
}

func versions(r *conformance.Rule) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(r.Versions), "[]"), " ", ", ")
}

// explain prints what the rules say and, for those in names, the conversation that tests them.
func explain(a *app.App, rules []*conformance.Rule, names []string) error {
	var b strings.Builder
	for i, r := range rules {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s\n", r.ID)
		for _, l := range wrap(r.Text, 76) {
			fmt.Fprintf(&b, "    %s\n", l)
		}
		about := []string{"level " + string(r.Level), "versions " + versions(r)}
		if len(r.Cites) > 0 {
			about = append(about, strings.Join(r.Cites, ", "))
		}
		if len(r.Needs) > 0 {
			about = append(about, "if it offers "+strings.Join(r.Needs, " and "))
		}
		if len(r.Lacks) > 0 {
			about = append(about, "if it does not offer "+strings.Join(r.Lacks, " or "))
		}
		if len(r.Except) > 0 {
			about = append(about, "not over "+strings.Join(r.Except, " or "))
		}
		if r.Experimental {
			about = append(about, "of drafts only")
		}
		if r.Observed {
			about = append(about, "seen in recordings, too")
		}
		for _, l := range wrap(strings.Join(about, " · "), 76) {
			fmt.Fprintf(&b, "    %s\n", l)
		}
		if slices.Contains(names, r.ID) && r.Scenario != "" {
			b.WriteString("\n")
			for l := range strings.SplitSeq(r.Scenario, "\n") {
				fmt.Fprintf(&b, "%s\n", strings.TrimRight("        "+l, " "))
			}
		}
	}
	_, err := a.Out.Write([]byte(b.String()))
	return err
}

// rulesJSON prints rules for programs.
func rulesJSON(a *app.App, rules []*conformance.Rule) error {
	enc := json.NewEncoder(a.Out)
	enc.SetEscapeHTML(false)
	for _, r := range rules {
		if err := enc.Encode(struct {
			Rule         string            `json:"rule"`
			Side         conformance.Side  `json:"side"`
			Level        conformance.Level `json:"level"`
			Text         string            `json:"text"`
			Cites        []string          `json:"cites"`
			Versions     []int             `json:"versions"`
			Needs        []string          `json:"needs,omitempty"`
			Lacks        []string          `json:"lacks,omitempty"`
			Except       []string          `json:"except,omitempty"`
			Experimental bool              `json:"experimental,omitempty"`
			Observed     bool              `json:"observed,omitempty"`
			Scenario     string            `json:"scenario,omitempty"`
		}{r.ID, r.Side, r.Level, r.Text, r.Cites, r.Versions, r.Needs, r.Lacks, r.Except, r.Experimental, r.Observed, r.Scenario}); err != nil {
			return err
		}
	}
	return nil
}
