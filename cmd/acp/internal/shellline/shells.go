package shellline

import (
	"strings"

	"github.com/goacp/acp/acphost"
)

// Shells. Those that are not Bourne shells have a language of their own.
var (
	bourne = set("sh bash dash ash zsh ksh ksh93 mksh rbash rzsh posh yash")
	shells = union(bourne, set("fish csh tcsh elvish nu xonsh pwsh powershell rc es"))
)

// shell looks at a shell.
func (s *scan) shell(n int, words []word) {
	name := shown(words[0])
	if !bourne[base(words[0].Text)] && !(len(words) == 2 && has("--version --help", words[1].Text)) {
		for _, w := range words[1:] {
			if w.Open || name == "powershell" || strings.HasPrefix(w.Text, "-") || strings.HasPrefix(w.Text, "/") && strings.HasPrefix(name, "p") {
				s.part(n).Opaque = true
				s.unsure(name + " runs text in a language that is not taken apart")
				return
			}
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
