package shellline

import (
	"slices"
	"strings"

	"github.com/goacp/acp/acphost"
)

// bourne are the shells whose language this package reads.
var bourne = setOf("sh bash dash ash zsh ksh ksh93 mksh rbash rzsh posh yash")

// A foreign shell has a language of its own, which is not parsed.
type foreign struct {
	names    string
	source   string // where its options are documented
	slashes  bool   // options may begin with a slash
	commands bool   // operands are a command, not a file
}

var foreigns = []foreign{
	{names: "fish", source: "https://fishshell.com/docs/current/cmds/fish.html"},
	{names: "csh tcsh", source: "csh(1), tcsh(1)"},
	{names: "elvish", source: "https://elv.sh/ref/command.html"},
	{names: "nu", source: "https://www.nushell.sh/book/"},
	{names: "xonsh", source: "https://xon.sh/launch.html"},
	{names: "rc es", source: "rc(1), es(1)"},
	{names: "pwsh", source: "https://learn.microsoft.com/powershell/module/microsoft.powershell.core/about/about_pwsh", slashes: true},
	{names: "powershell", source: "https://learn.microsoft.com/powershell/module/microsoft.powershell.core/about/about_powershell_exe", slashes: true, commands: true},
}

var foreignOf = byName(foreigns, func(f *foreign) string { return f.names })

// takes reports whether a word may give a shell text to run. A shell that is not in the table takes it
// from options only.
func (f *foreign) takes(w word) bool {
	return w.Open || strings.HasPrefix(w.Text, "-") || f != nil && (f.commands || f.slashes && strings.HasPrefix(w.Text, "/"))
}

// shell examines a shell.
func (s *scan) shell(n int, words []word) {
	name := shown(words[0])
	if !bourne()[base(words[0].Text)] && !(len(words) == 2 && has("--version --help", words[1].Text)) {
		if slices.ContainsFunc(words[1:], foreignOf()[tableName(base(words[0].Text))].takes) {
			s.part(n).Opaque = true
			s.unsure(name + " runs text in a language that is not taken apart")
			return
		}
	}
	text, i := false, 1
options:
	for ; i < len(words); i++ {
		t := words[i].Text
		switch {
		case words[i].Open && !words[i].mayBeOption():
			break options
		case words[i].Open:
			s.unsure("what " + name + " runs is not written out")
			return
		case t == "--" || t == "-":
			i++
			break options
		case t == "--version" || t == "--help":
			return
		case t == "--rcfile" || t == "--init-file":
			s.part(n).Options = append(s.part(n).Options, acphost.CommandOption{Word: i, Name: t, Does: "runs a file"})
			i++
		case strings.HasPrefix(t, "--"):
		case len(t) > 1 && (t[0] == '-' || t[0] == '+'):
			text = text || t[0] == '-' && strings.Contains(t, "c")
			if t[0] == '-' && strings.Contains(t, "s") {
				s.unsure(name + " reads what it runs")
			}
			i += strings.Count(strings.ToLower(t), "o") // names of options follow
		default:
			break options
		}
	}
	switch {
	case i < len(words) && !text && isInput(words[i].Text):
		s.unsure(name + " reads what it runs")
	case i < len(words) && text:
		dir := s.dir
		s.line(n, words[i:i+1])
		s.dir = dir
		s.part(n).Wrapper = isStandard(words[0].Text) && len(s.part(n).Options) == 0
	case i >= len(words):
		s.unsure(name + " reads what it runs")
	}
}
