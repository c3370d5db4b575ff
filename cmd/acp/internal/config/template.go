package config

import (
	"fmt"
	"slices"
	"strings"
)

// Template returns a file of settings in which everything is a comment: what there
// is, what it means and what is in force without it.
func Template() string {
	var b strings.Builder
	b.WriteString("# Settings of acp. Lines that begin with # say what is in force without them.\n")
	table := ""
	for _, s := range Known() {
		p, err := parseKey(s.Key)
		if err != nil {
			continue // keys of the program's own are right
		}
		at := len(p) - 1
		if p[at] == "NAME" {
			at-- // a table of texts has no line of its own
		}
		if t := p[:at].String(); t != table {
			table = t
			fmt.Fprintf(&b, "\n# [%s]\n", t)
		}
		n, err := find(p)
		if err != nil {
			continue
		}
		v, value := zero(n), ""
		if n.def != "" {
			v, _ = n.parse(n.def) // tests try all of them
		}
		if value = format(v); slices.Contains(n.enum, "ask") {
			value = `"ask"`
		}
		help := s.Help
		if n.enum != nil {
			help += " (" + strings.Join(n.enum, ", ") + ")"
		}
		if help != "" {
			help = " # " + help
		}
		fmt.Fprintf(&b, "# %s = %s%s\n", p[at:], value, help)
	}
	return b.String()
}
