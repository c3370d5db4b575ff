package shellline

import (
	"strings"
	"sync"

	"github.com/goacp/acp/acphost"
)

// programs have a function of their own each.
var programs func() map[string]func(s *scan, n int, words []word)

// runners are programs that run others in a way that is not parsed.
const runners = `
	su runuser script scriptreplay screen tmux zellij at batch crontab systemd-run systemd-inhibit hyperfine concurrently
	entr watchexec nodemon unshare nsenter bwrap firejail proot perf valgrind heaptrack direnv nix nix-shell nix-build
	vagrant adb wsl cmd taskset chrt xvfb-run dbus-run-session faketime fakeroot setpriv capsh prlimit cgexec numactl
	rlwrap tsp nq mise asdf rbenv pyenv nodenv dtruss sem pssh mosh ansible salt sg newgrp start-stop-daemon daemonize
	setarch arch linux32 linux64 torsocks proxychains proxychains4 tsocks sshpass ssh-agent dbus-launch
	pm2 foreman dotenv cross-env cross-env-shell op aws-vault doppler run-parts with-contenv volta fnm nvm proto devbox devenv
	qemu-x86_64 qemu-aarch64 wine gtk-launch start-stop-daemon runcon sg envdir setlock softlimit chpst
	execlineb s6-setuidgid fdmove anacron tcpserver
	retry on_ac_power choom coresched pipexec chezmoi vipe ifne pee
	parallel-ssh pdsh clush dsh mprocs overmind honcho hivemind sops infisical chamber`

func init() { programs = sync.OnceValue(allPrograms) } // not in the declaration: they run what examines them

func allPrograms() map[string]func(s *scan, n int, words []word) {
	all := map[string]func(s *scan, n int, words []word){
		"find": (*scan).find, "gfind": (*scan).find,
		"fd": (*scan).fd, "fdfind": (*scan).fd,
		"sed": (*scan).sed, "gsed": (*scan).sed, "ssed": (*scan).sed,
		"awk": (*scan).awk, "gawk": (*scan).awk, "mawk": (*scan).awk, "nawk": (*scan).awk,
		"goawk": (*scan).awk, "original-awk": (*scan).awk, "bwk": (*scan).awk,
		"ssh":  (*scan).ssh,
		"git":  (*scan).git,
		"curl": (*scan).curl,
		"acp":  (*scan).acp,
		"make": (*scan).make, "gmake": (*scan).make,
		"socat": func(s *scan, _ int, words []word) {
			s.says(words, "socat runs what an address names", func(t string) bool {
				t = strings.ToLower(t)
				return strings.Contains(t, "exec") || strings.Contains(t, "system") || strings.Contains(t, "shell")
			})
		},
		"parallel": func(s *scan, _ int, _ []word) { s.unsure("parallel runs lines that it makes of its words") },
	}
	for i := range clients {
		for name := range strings.FieldsSeq(clients[i].names) {
			all[name] = func(s *scan, _ int, words []word) { s.client(&clients[i], words) }
		}
	}
	for name := range strings.FieldsSeq(runners) {
		all[name] = func(s *scan, n int, words []word) {
			s.part(n).Opaque = true
			s.unsure(shown(words[0]) + " runs another program")
		}
	}
	return all
}

// says makes a line unsure if a word says something.
func (s *scan) says(words []word, why string, is func(string) bool) {
	for _, w := range words[1:] {
		if is(w.Text) {
			s.unsure(why)
		}
	}
}

// find examines the commands that find runs.
func (s *scan) find(n int, words []word) {
	for i := 1; i < len(words); i++ {
		switch words[i].Text {
		case "-exec", "-execdir", "-ok", "-okdir":
		default:
			continue
		}
		end := i + 1
		for end < len(words) && words[end].Text != ";" && (words[end].Text != "+" || words[end-1].Text != "{}") {
			end++
		}
		in := s.in
		if strings.HasSuffix(words[i].Text, "dir") {
			s.enter(starts(words))
		}
		s.inside(n, i+1, nil, filled(words[i+1:end], "./"))
		s.in = in
		i = end
	}
}

// curl examines values that name a file to write, or to send.
func (s *scan) curl(n int, words []word) {
	for i, w := range words[1:] {
		does := ""
		switch before := words[i].Text; {
		case strings.Contains(w.Text, "%output{"):
			does = doesWrite
		case strings.HasPrefix(w.Text, "@") && len(before) > 1 && before[0] == '-', strings.Contains(w.Text, "=@"), strings.Contains(w.Text, "=<"), strings.HasPrefix(w.Text, "-d@"),
			has("--data-urlencode --variable --expand-data-urlencode --url-query", before) && strings.Contains(w.Text, "@"):
			does = doesMove
		}
		if does != "" {
			p := s.part(n)
			p.Options = append(p.Options, acphost.CommandOption{Word: i + 1, Name: w.Source, Does: does})
		}
	}
}

// make examines variables and at the file that says what make runs. Make expands the values of variables,
// those of the environment included, and runs what is in them.
func (s *scan) make(n int, words []word) {
	s.computes = true
	for i, w := range words[1:] {
		name, value, sets := strings.Cut(w.Text, "=")
		file := value
		if !sets {
			file = w.Text
		}
		switch {
		case sets && (strings.HasSuffix(name, "!") || strings.ContainsAny(value, "$`")),
			sets && strings.TrimRight(name, ":?+") == "SHELL", sets && strings.TrimRight(name, ":?+") == ".SHELLFLAGS":
			s.unsure("make runs what " + strings.TrimRight(name, ":?+!") + " says")
		case isInput(strings.TrimPrefix(file, "-f")), w.Text == "-" && strings.HasPrefix(words[i].Text, "-"), w.Text == "-f-", strings.HasPrefix(w.Text, "-") && value == "-":
			s.unsure("make reads what it runs")
		case sets && w.Text[0] != '-':
			if p := s.part(n); isRunVariable(strings.TrimRight(name, ":?+")) {
				p.Runs = append(p.Runs, s.sets(strings.TrimRight(name, ":?+")+"="+value)...)
			}
		}
	}
}

// acp examines what this program starts: an agent after --, and whatever else its words say.
func (s *scan) acp(n int, words []word) {
	s.part(n).Opaque = true
	for i, w := range words {
		if w.Text == "--" && i+1 < len(words) {
			s.inside(n, i+1, nil, words[i+1:])
			return
		}
	}
}

// pushes returns the other forms of a command that does what git push does.
func pushes(name string, words []word) []acphost.CommandForm {
	if len(words) < 2 {
		return nil
	}
	git := func(list ...string) []acphost.CommandForm {
		f := acphost.CommandForm{}
		for _, t := range list {
			f.Words = append(f.Words, acphost.CommandWord{Text: t, Source: t})
		}
		return []acphost.CommandForm{f}
	}
	if name == "hub" {
		f := git("git")
		f[0].Words = append(f[0].Words, plain(words[1:])...)
		return f
	}
	for i := 1; name == "git" && i+1 < len(words); i++ {
		switch words[i].Text + " " + words[i+1].Text {
		case "lfs push", "svn dcommit", "p4 submit":
			return git("git", "push")
		}
	}
	return nil
}

// filled returns the words of a command in which {} stands for the name of a file, which begins
// with a text.
func filled(words []word, begin string) []word {
	out := append([]word(nil), words...)
	for i, w := range out {
		if before, after, ok := strings.Cut(w.Text, "{}"); ok && !w.Open {
			if before == "" {
				before = begin
			}
			out[i].CommandWord = found(before, after, w.Source)
		}
	}
	return out
}

// fd examines the command that fd runs.
func (s *scan) fd(n int, words []word) {
	for i := 1; i < len(words); i++ {
		t := words[i].Text
		long := len(t) > 3 && strings.HasPrefix("--exec-batch", t)
		switch {
		case i+1 < len(words) && (long || t == "-x" || t == "-X"):
			end := i + 1
			for end < len(words) && words[end].Text != ";" {
				end++
			}
			inner := filled(words[i+1:end], "")
			if !strings.Contains(sourceOf(words[i+1:end]), "{") {
				inner = append(inner, word{found("", "", "{}"), true, false})
			}
			s.inside(n, i+1, nil, inner)
			i = end
		case strings.HasPrefix(t, "--exec"), len(t) > 1 && t[0] == '-' && t[1] != '-' && strings.ContainsAny(t, "xX"):
			s.unsure("what " + shown(words[0]) + " runs is not certain")
		}
	}
}

// sourceOf returns words as they are written in the line.
func sourceOf(words []word) string {
	var list []string
	for _, w := range words {
		list = append(list, w.Source)
	}
	return strings.Join(list, " ")
}

// ssh looks for a command for another host.
func (s *scan) ssh(_ int, words []word) {
	operands, none := 0, false
	for i := 1; i < len(words); i++ {
		t := words[i].Text
		if operands == 0 && len(t) > 1 && t[0] == '-' {
			none = none || strings.ContainsRune("NGVQ", rune(t[1]))
			if strings.IndexByte("BbcDEeFIiJLlmOopQRSWw", t[len(t)-1]) >= 0 {
				i++ // its value
			}
			continue
		}
		operands++
	}
	switch {
	case operands > 1:
		s.unsure("ssh runs text on another host")
	case !none:
		s.unsure("ssh reads what it runs")
	}
}

// gitShort are the short options of git's commands that run something or write a file.
var gitShort = sync.OnceValue(func() map[string]string {
	return map[string]string{ // https://git-scm.com/docs
		"rebase": "x", "grep": "O", "diagnose": "o", "clone": "cu", "format-patch": "o", "ls-remote": "", "send-pack": "", "am": "", "replay": "", "bugreport": "o", "difftool": "x", "mailsplit": "o", "index-pack": "o",
	}
})

// git examines the short options of commands.
func (s *scan) git(n int, words []word) {
	command, part := "", s.part(n)
	for i := 1; i < len(words); i++ {
		t := words[i].Text
		if strings.HasPrefix(t, "ext::") { // https://git-scm.com/docs/git-remote-ext
			part.Options = append(part.Options, acphost.CommandOption{Word: i, Name: "ext::", Does: doesRun})
		}
		switch {
		case t == "--" && !mayTakeNext(words[i-1]):
			return
		case len(t) > 1 && t[0] == '-' && command == "":
			if len(t) == 2 && strings.Contains("cC", t[1:]) || t == "--git-dir" || t == "--work-tree" || t == "--namespace" || t == "--config-env" {
				i++ // its value
			}
		case command == "":
			command = t
		case len(t) > 1 && t[0] == '-' && t[1] != '-' && gitShort()[command] != "" && strings.ContainsAny(t[1:], gitShort()[command]):
			part.Options = append(part.Options, acphost.CommandOption{Word: i, Name: t, Does: doesRun})
		}
	}
}
